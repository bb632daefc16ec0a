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
mod builtins;
mod compound;
mod describe;
mod expansion;
mod git;
mod grammar;
mod limits;
mod programs;
mod redirects;
mod sed;
mod settings;
mod special;
mod table;
mod words;
mod wrappers;

use std::collections::BTreeSet;

use artoo_protocol::tool::EffectClass;
use brush_parser::ast;

pub use describe::table_as_markdown;
use grammar::parsed;
use settings::{is_harmless_variable, is_plain_value};
use words::Arg;

/// Stands among the programs for one whose name is known only when it runs.
pub const UNKNOWN_PROGRAM: &str = "?";

/// The answer: the class of everything but the listed writes, which the caller judges by their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandClass {
    /// The worst class of any part, leaving out `writes`.
    pub effect: EffectClass,
    /// Names of the programs and builtins run, without folders, in order, each once; [`UNKNOWN_PROGRAM`] among them.
    pub programs: Vec<String>,
    /// The same as the command calls them, with folders; [`UNKNOWN_PROGRAM`] among them where any program could run, also
    /// because the command changes what names mean.
    pub called: BTreeSet<String>,
    /// Paths that the command creates or overwrites, as written in it.
    pub writes: Vec<WrittenPath>,
    /// Those of the written files, in the same words, that it opens to put its output into: by a redirection or with `tee`.
    pub opened: BTreeSet<String>,
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
    called: BTreeSet<String>,
    writes: Vec<WrittenPath>,
    opened: BTreeSet<String>,
    /// Whether something is named by way of the home folder, and whether the variable for that may be unset.
    at_home: bool,
    homeless: bool,
    /// Whether the working directory may have changed, so that relative paths mean nothing any more.
    moved: bool,
    variables: arithmetic::Variables,
    /// Variables that a loop sets to files named in the command, those set in another way, and those read from by `<`.
    looped: BTreeSet<String>,
    set: BTreeSet<String>,
    read_from: BTreeSet<String>,
    /// Variables that a loop sets to words that begin like no option, those for which another one does not, and those that were
    /// taken for no option.
    plain: BTreeSet<String>,
    doubtful: BTreeSet<String>,
    relied_on: BTreeSet<String>,
    descriptors: redirects::Descriptors,
    depth: usize,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            effect: EffectClass::Read,
            reason: None,
            programs: Vec::new(),
            called: BTreeSet::new(),
            writes: Vec::new(),
            opened: BTreeSet::new(),
            at_home: false,
            homeless: false,
            moved: false,
            variables: arithmetic::Variables::default(),
            looped: BTreeSet::new(),
            set: BTreeSet::new(),
            read_from: BTreeSet::new(),
            plain: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            relied_on: BTreeSet::new(),
            descriptors: redirects::Descriptors::default(),
            depth: 0,
        }
    }
}

impl Walk {
    fn finish(mut self) -> CommandClass {
        if let Some(name) = self.variables.unproven() {
            self.runs_anything(format!(
                "arithmetic on `{name}`, which may hold anything, can run commands"
            ));
        }
        let known_file = |name: &String| self.looped.contains(name) && !self.set.contains(name);
        if !self.read_from.iter().all(known_file) {
            self.unknown(redirects::READS_UNKNOWN);
        }
        let hidden = |name: &String| self.set.contains(name) || self.doubtful.contains(name);
        if self.relied_on.iter().any(hidden) {
            self.unknown("an argument is known only when it runs, and could be an option");
        }
        if self.descriptors.may_reopen_a_file() {
            self.unknown("it opens by the name of a descriptor what was opened to be read");
        }
        if self.at_home && self.homeless {
            self.unknown("it names the home folder where its name may be unset");
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
            called: self.called,
            writes: self.writes,
            opened: self.opened,
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

    /// Records a part that is not understood and may run any program, or make a name mean another one.
    fn runs_anything(&mut self, reason: impl Into<String>) {
        self.called.insert(UNKNOWN_PROGRAM.to_owned());
        self.unknown(reason);
    }

    fn ran(&mut self, program: &str) {
        if !self.programs.iter().any(|known| known == program) {
            self.programs.push(program.to_owned());
        }
    }

    /// A whole script: the command itself, a substitution, or the text after `sh -c`.
    fn script(&mut self, text: &str, depth: usize) {
        let program = match parsed(text, depth) {
            Ok(program) => program,
            Err(why) => {
                self.ran(UNKNOWN_PROGRAM);
                self.runs_anything(why);
                return;
            }
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
            ast::Command::Function(_) => self.runs_anything("it defines a function"),
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
        let mut before = simple.word_or_name.as_ref();
        if let Some(name) = before {
            args.push(self.word(name));
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            let last = before.take();
            match item {
                ast::CommandPrefixOrSuffixItem::Word(word)
                | ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                    args.push(self.word(word));
                    before = Some(word);
                }
                ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                    if last.is_some_and(redirects::names_a_descriptor) {
                        self.runs_anything("it gives a variable the number of a descriptor");
                    }
                    self.redirect(redirect);
                }
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
        let mut literal = None;
        let numeric = match &assignment.value {
            ast::AssignmentValue::Scalar(word) => {
                self.word(word);
                literal = Some(word.value.as_str()).filter(|value| is_plain_value(value));
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
            self.set.insert(name.clone());
            match literal.filter(|_| !is_harmless_variable(name)) {
                // It may change what programs do, and whoever writes it into a grant has had it in mind.
                Some(value) => {
                    self.called.insert(format!("{name}={value}"));
                    self.unknown(format!("setting `{name}` may change what programs do"));
                    self.variables.assign(name, numeric);
                }
                None => self.takes_value(name, numeric),
            }
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
        let files = !values.is_empty() && values.iter().all(file);
        if files { &mut self.looped } else { &mut self.set }.insert(name.to_owned());
        // A pattern that begins with anything may find a file that is called like an option.
        let plain = files && !values.iter().any(|word| word.value.starts_with(['*', '?']));
        if plain { &mut self.plain } else { &mut self.doubtful }.insert(name.to_owned());
        self.takes_value(name, numeric);
    }

    fn takes_value(&mut self, name: &str, numeric: bool) {
        if !is_harmless_variable(name) {
            self.runs_anything(format!("setting `{name}` may change what programs do"));
        }
        self.variables.assign(name, numeric);
    }

    fn arithmetic(&mut self, expression: &str) {
        let (rest, counts) = arithmetic::without_counts(expression);
        for script in &counts {
            self.script(script, self.depth + 1);
        }
        if let Err(why) = self.variables.expression(&rest) {
            self.runs_anything(why);
        }
    }
}

#[cfg(test)]
mod against_bash;
#[cfg(test)]
mod tests;
