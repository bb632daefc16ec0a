//! What a shell command could do, read from its syntax tree (design §9).
//!
//! Owns the walk over the tree and the verdict. Pure: no file is looked at and nothing is run, so whether a written path
//! exists already is judged by the caller. Must not know the gate, the subtask or the user.
//!
//! The rule is one-sided: what is not understood completely is given the worst class and asked about. A command is a
//! read only when every program in it is known, every argument that matters is literal, and nothing is redirected into
//! a file.

mod arithmetic;
mod awk;
mod compound;
mod describe;
mod expansion;
mod git;
mod programs;
mod redirects;
mod sed;
mod special;
mod table;
mod words;
mod wrappers;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use artoo_protocol::tool::EffectClass;
use brush_parser::ast;
use brush_parser::{Parser, ParserOptions};

pub use describe::table_as_markdown;
use words::Arg;

/// Stands among the programs for one whose name is known only when it runs.
pub const UNKNOWN_PROGRAM: &str = "?";

/// Commands longer than this many bytes are not analysed.
const MAX_COMMAND_BYTES: usize = 16 * 1024;
/// Brackets inside brackets beyond which a command is not analysed.
const MAX_NESTING: usize = 12;
/// How often each of these may stand in a command that is analysed. The parser goes back and tries again at each of
/// them, so that its time multiplies; quotes can hide how deep they really nest, hence their number counts.
const MAX_OPENINGS: &[(&str, usize)] = &[("(", 16), ("`", 6), ("{", 60), ("[", 60)];
/// The same for subscripts (`a[`), the slowest of all.
const MAX_SUBSCRIPTS: usize = 8;
/// Words that open a nested command, and how many of them a command may hold: each takes a part of the parser's stack.
const OPENING_WORDS: &[&str] = &[
    "if", "while", "until", "for", "case", "select", "coproc", "function", "elif", "time",
];
const MAX_OPENING_WORDS: usize = 32;
/// How deep commands inside commands (`$(…)`, `sh -c '…'`) are followed.
const MAX_DEPTH: usize = 5;
/// Variables in capitals that may be set without changing what programs do; names in small letters always may.
const HARMLESS_VARIABLES: &[&str] = &[
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_NUMERIC",
    "TZ",
    "DIR",
    "FILE",
    "FILES",
    "NAME",
    "COUNT",
    "TOTAL",
    "N",
    "I",
    "NO_COLOR",
];

/// The answer: the class of everything but the listed writes, which the caller judges by their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandClass {
    /// The worst class of any part, leaving out `writes`.
    pub effect: EffectClass,
    /// Names of the programs and builtins run, without folders, in order, each once; [`UNKNOWN_PROGRAM`] among them.
    pub programs: Vec<String>,
    /// Paths that the command creates or overwrites, as written in it.
    pub writes: Vec<WrittenPath>,
    /// Why it is worse than a read; `None` when it is one.
    pub reason: Option<String>,
}

/// A path that a command writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenPath {
    /// A file, relative to the directory the command starts in; may begin with `~/`.
    File(String),
    /// A folder to be made, relative likewise.
    Folder(String),
    /// Known only when the command runs.
    Unknown,
}

/// Classifies a bash command line.
pub fn classify(command: &str) -> CommandClass {
    let mut walk = Walk::default();
    walk.script(command, 0);
    walk.finish()
}

/// The verdict as it grows.
struct Walk {
    effect: EffectClass,
    reason: Option<String>,
    programs: Vec<String>,
    writes: Vec<WrittenPath>,
    /// Whether the working directory may have changed, so that relative paths mean nothing any more.
    moved: bool,
    variables: arithmetic::Variables,
    /// Variables that a loop sets to files named in the command, those set in another way, and those read from by `<`.
    looped: BTreeSet<String>,
    set: BTreeSet<String>,
    read_from: BTreeSet<String>,
    depth: usize,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            effect: EffectClass::Read,
            reason: None,
            programs: Vec::new(),
            writes: Vec::new(),
            moved: false,
            variables: arithmetic::Variables::default(),
            looped: BTreeSet::new(),
            set: BTreeSet::new(),
            read_from: BTreeSet::new(),
            depth: 0,
        }
    }
}

impl Walk {
    fn finish(mut self) -> CommandClass {
        if let Some(name) = self.variables.unproven() {
            self.unknown(format!(
                "arithmetic on `{name}`, which may hold anything, can run commands"
            ));
        }
        let known_file = |name: &String| self.looped.contains(name) && !self.set.contains(name);
        if !self.read_from.iter().all(known_file) {
            self.unknown(redirects::READS_UNKNOWN);
        }
        if self.moved {
            for path in &mut self.writes {
                if let WrittenPath::File(text) | WrittenPath::Folder(text) = path
                    && !text.starts_with('/')
                    && !text.starts_with("~/")
                {
                    *path = WrittenPath::Unknown;
                }
            }
        }
        if self.reason.is_none() && !self.writes.is_empty() {
            self.reason = Some("it writes files".to_owned());
        }
        CommandClass {
            effect: self.effect,
            programs: self.programs,
            writes: self.writes,
            reason: self.reason,
        }
    }

    /// Records that a part is of this class; the reason of the worst part is kept.
    fn raise(&mut self, effect: EffectClass, reason: impl Into<String>) {
        if effect > self.effect {
            self.effect = effect;
            self.reason = Some(reason.into());
        }
    }

    /// Records a part that is not understood.
    fn unknown(&mut self, reason: impl Into<String>) {
        self.raise(EffectClass::External, reason);
    }

    fn ran(&mut self, program: &str) {
        if !self.programs.iter().any(|known| known == program) {
            self.programs.push(program.to_owned());
        }
    }

    /// A whole script: the command itself, a substitution, or the text after `sh -c`.
    fn script(&mut self, text: &str, depth: usize) {
        if let Some(why) = unreadable(text, depth) {
            self.ran(UNKNOWN_PROGRAM);
            self.unknown(why);
            return;
        }
        // The parser comes from outside and is fed hostile text: should it panic, the command is merely not understood.
        let parsed = catch_unwind(AssertUnwindSafe(|| {
            Parser::new(text.as_bytes(), &options()).parse_program()
        }));
        let Ok(Ok(program)) = parsed else {
            self.ran(UNKNOWN_PROGRAM);
            self.unknown("its syntax is not understood");
            return;
        };
        let outer = std::mem::replace(&mut self.depth, depth);
        for list in &program.complete_commands {
            self.list(list);
        }
        self.depth = outer;
    }

    fn list(&mut self, list: &ast::CompoundList) {
        for item in &list.0 {
            for (_, pipeline) in &item.0 {
                for command in &pipeline.seq {
                    self.command(command);
                }
            }
        }
    }

    fn command(&mut self, command: &ast::Command) {
        match command {
            ast::Command::Simple(simple) => self.simple(simple),
            ast::Command::Compound(compound, redirects) => {
                self.compound(compound);
                self.redirects(redirects.as_ref());
            }
            ast::Command::Function(_) => self.unknown("it defines a function"),
            ast::Command::ExtendedTest(test, redirects) => {
                self.extended_test(&test.expr);
                self.redirects(redirects.as_ref());
            }
        }
    }

    fn simple(&mut self, simple: &ast::SimpleCommand) {
        let mut args = Vec::new();
        let mut assignments = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => assignments.push(assignment),
                ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect),
                ast::CommandPrefixOrSuffixItem::Word(word) => args.push(self.word(word)),
                ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, group) => {
                    self.list(&group.list);
                    args.push(Arg::one("/dev/fd/"));
                }
            }
        }
        if let Some(name) = &simple.word_or_name {
            args.push(self.word(name));
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                ast::CommandPrefixOrSuffixItem::Word(word)
                | ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                    args.push(self.word(word));
                }
                ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect),
                ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, group) => {
                    self.list(&group.list);
                    args.push(Arg::one("/dev/fd/"));
                }
            }
        }
        let reads_a_line = args.first().and_then(Arg::literal) == Some("read");
        for assignment in assignments {
            self.assignment(assignment, reads_a_line);
        }
        if !args.is_empty() {
            self.argv(&args);
        }
    }

    fn assignment(&mut self, assignment: &ast::Assignment, reads_a_line: bool) {
        let name = match &assignment.name {
            ast::AssignmentName::VariableName(name) => name,
            ast::AssignmentName::ArrayElementName(name, index) => {
                self.arithmetic(index);
                name
            }
        };
        let numeric = match &assignment.value {
            ast::AssignmentValue::Scalar(word) => {
                self.word(word);
                arithmetic::is_numeric_word(&word.value)
            }
            ast::AssignmentValue::Array(elements) => {
                for (key, value) in elements {
                    if let Some(key) = key {
                        self.arithmetic(&key.value);
                    }
                    self.word(value);
                }
                false
            }
        };
        // `IFS= read -r line` is how lines are read; the setting lasts for that builtin alone.
        if !(reads_a_line && name == "IFS") {
            self.assigned(name, numeric);
        }
    }

    /// Notes that a variable gets a value, and refuses names that change what programs do.
    fn assigned(&mut self, name: &str, numeric: bool) {
        self.set.insert(name.to_owned());
        self.takes_value(name, numeric);
    }

    /// Notes that a loop gives a variable these words in turn.
    fn looped_over(&mut self, name: &str, values: &[ast::Word]) {
        let numeric = !values.is_empty() && values.iter().all(|word| arithmetic::is_numeric_word(&word.value));
        // A pattern gives names that begin as it does; none of these can be one of the shell's network devices.
        let file = |word: &ast::Word| {
            let text = word.value.as_str();
            let device = ["/d", "/*", "/?", "/["].iter().any(|start| text.starts_with(start));
            !device
                && text.starts_with(|c: char| c.is_alphanumeric() || "_.*?/~".contains(c))
                && !text.contains(['$', '`', '{', '(', '\\'])
        };
        if !values.is_empty() && values.iter().all(file) {
            self.looped.insert(name.to_owned());
        } else {
            self.set.insert(name.to_owned());
        }
        self.takes_value(name, numeric);
    }

    fn takes_value(&mut self, name: &str, numeric: bool) {
        let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !plain && !HARMLESS_VARIABLES.contains(&name) {
            self.unknown(format!("setting `{name}` may change what programs do"));
        }
        self.variables.assign(name, numeric);
    }

    fn arithmetic(&mut self, expression: &str) {
        if let Err(why) = self.variables.expression(expression) {
            self.unknown(why);
        }
    }
}

/// Whether a text is outside what may be handed to the parser, and why.
fn unreadable(text: &str, depth: usize) -> Option<&'static str> {
    if depth > MAX_DEPTH {
        return Some("commands are nested too deep");
    }
    if text.len() > MAX_COMMAND_BYTES {
        return Some("it is too long to be analysed");
    }
    let too_many = MAX_OPENINGS
        .iter()
        .any(|(opening, limit)| text.matches(opening).count() > *limit);
    let words = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| OPENING_WORDS.contains(word))
        .count();
    if too_many || words > MAX_OPENING_WORDS || subscripts(text) > MAX_SUBSCRIPTS || deepest(text) > MAX_NESTING {
        return Some("it is nested too deep to be analysed");
    }
    text.chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        .then_some("it holds control characters")
}

/// How often `[` follows a letter, digit or underscore.
fn subscripts(text: &str) -> usize {
    let after_name = |(before, c): &(char, char)| *c == '[' && (before.is_ascii_alphanumeric() || *before == '_');
    text.chars().zip(text.chars().skip(1)).filter(after_name).count()
}

/// An upper bound of how deep brackets nest; quoted ones count too, which only makes the bound larger.
fn deepest(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn options() -> ParserOptions {
    ParserOptions::default()
}

#[cfg(test)]
mod against_bash;
#[cfg(test)]
mod tests;
