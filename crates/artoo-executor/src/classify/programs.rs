//! A program and its arguments against the table (design §9).
//!
//! Owns the reading of options by the rules of [`super::table`]. A program that is not there is of the worst class. Must
//! not know the shell's syntax.

use super::table::{Operands, PROGRAMS, Rule};
use super::words::Arg;
use super::{UNKNOWN_PROGRAM, Walk};

/// Folders whose programs are those of the table.
const SYSTEM_FOLDERS: &[&str] = &[
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/opt/homebrew/bin",
];

impl Walk {
    /// A command as words: the program first.
    pub(super) fn argv(&mut self, args: &[Arg]) {
        let Some((first, rest)) = args.split_first() else {
            return;
        };
        let Some(name) = first.literal() else {
            self.ran(UNKNOWN_PROGRAM);
            return self.runs_anything("which program runs is known only when it runs");
        };
        let (folder, base) = name
            .rsplit_once('/')
            .map_or((None, name), |(folder, base)| (Some(folder), base));
        self.ran(base);
        self.called.insert(name.to_owned());
        if folder.is_some_and(|folder| !SYSTEM_FOLDERS.contains(&folder)) {
            return self.unknown(format!("`{name}` is not a program that is known"));
        }
        match PROGRAMS.iter().find(|(known, _)| *known == base) {
            Some((_, rule)) => self.rule(rule, base, rest),
            None => self.unknown(format!("what `{base}` does is not known")),
        }
    }

    fn rule(&mut self, rule: &Rule, name: &str, args: &[Arg]) {
        let option = |arg: &str| format!("`{name} {arg}` can do more than read");
        let hidden = || format!("an argument of `{name}` is known only when it runs, and could be an option");
        match rule {
            Rule::Pure => {}
            Rule::Without(bad) => match offending(name, args, bad) {
                Offence::None => {}
                Offence::Option(arg) => self.unknown(option(arg)),
                Offence::Hidden => self.unknown(hidden()),
            },
            Rule::Only(good) => {
                if args.is_empty() || !all_among(args, good) {
                    self.unknown(unsure(name));
                }
            }
            Rule::OnlyOrNone(good) => {
                if !all_among(args, good) {
                    self.unknown(unsure(name));
                }
            }
            Rule::First(good) => {
                let known = args
                    .first()
                    .and_then(Arg::literal)
                    .is_some_and(|text| good.contains(&text));
                let options = args
                    .iter()
                    .skip(1)
                    .any(|arg| arg.known().starts_with('-') || arg.may_hide_option());
                if !known || options {
                    self.unknown(unsure(name));
                }
            }
            Rule::Sub(phrases) => {
                let fits = |(phrase, good): &(&str, &[&str])| {
                    let words = phrase.split(' ').count();
                    let begins = phrase
                        .split(' ')
                        .zip(args.iter().map(Some).chain(std::iter::repeat(None)))
                        .all(|(word, arg)| arg.and_then(Arg::literal) == Some(word));
                    begins && args.iter().skip(words).all(|arg| option_among(arg, good))
                };
                if !phrases.iter().any(fits) {
                    self.unknown(unsure(name));
                }
            }
            Rule::Options(good, operands) => {
                if !args
                    .iter()
                    .all(|arg| option_among(arg, good) && operand_fits(arg, *operands))
                    || (*operands == Operands::ToStdout && !ends_with_stdout(args))
                {
                    self.unknown(unsure(name));
                }
            }
            Rule::Needs(one, others, effect, reason) => {
                let good: Vec<&str> = one.iter().chain(others.iter()).copied().collect();
                let needed = args
                    .iter()
                    .filter_map(Arg::literal)
                    .any(|text| text.starts_with('-') && one.iter().any(|option| names(text, option)));
                if !needed || !args.iter().all(|arg| option_among(arg, &good)) {
                    self.raise(*effect, *reason);
                }
            }
            Rule::OneOperand(bad, valued) => {
                let clean = matches!(offending(name, args, bad), Offence::None) && args.iter().all(Arg::is_single);
                if operands(args, valued) > 1 || !clean {
                    self.unknown(format!("`{name}` may write a file"));
                }
            }
            Rule::Always(effect, reason) => self.raise(*effect, *reason),
            Rule::Special(judge, _) => judge(self, name, args),
        }
    }
}

fn unsure(name: &str) -> String {
    format!("what `{name}` does with these arguments is not known")
}

fn all_among(args: &[Arg], good: &[&str]) -> bool {
    args.iter()
        .all(|arg| arg.literal().is_some_and(|text| good.contains(&text)))
}

/// Whether an argument is no option, or one of these: by itself, as a cluster of short ones, or with `=` and a value.
/// A word that begins with `+` counts as an option, as it does for pagers.
pub(super) fn option_among(arg: &Arg, good: &[&str]) -> bool {
    if arg.may_hide_option() {
        return false;
    }
    let text = arg.known();
    if !text.starts_with(['-', '+']) {
        return true;
    }
    if arg.literal().is_some_and(|text| good.contains(&text)) {
        return true;
    }
    if let Some((name, _)) = text.split_once('=') {
        return good.iter().any(|option| option.strip_suffix('=') == Some(name));
    }
    let Some(text) = arg.literal() else {
        return false;
    };
    let cluster = |flags: &str| {
        !flags.is_empty()
            && flags.chars().all(|c| {
                good.iter()
                    .any(|option| option.strip_prefix('-').is_some_and(|o| o.chars().eq([c])))
            })
    };
    !text.starts_with("--") && text.strip_prefix('-').is_some_and(cluster)
}

/// How many words are no options: `-` is standard input or output, and behind `--` every word counts.
fn operands(args: &[Arg], valued: &[&str]) -> usize {
    let mut rest = args.iter();
    let mut count = 0;
    while let Some(arg) = rest.next() {
        match arg.literal() {
            Some("--") => return count + rest.len(),
            Some(text) if valued.contains(&text) => {
                rest.next();
            }
            Some(text) if text.starts_with('-') && text != "-" => {}
            Some(_) | None => count += 1,
        }
    }
    count
}

/// Whether the last word is `-` and could not be the value of an option.
fn ends_with_stdout(args: &[Arg]) -> bool {
    match args {
        [.., before, last] => last.literal() == Some("-") && !before.known().starts_with('-'),
        _ => false,
    }
}

fn operand_fits(arg: &Arg, operands: Operands) -> bool {
    let text = arg.known();
    match operands {
        Operands::Any | Operands::ToStdout => true,
        // A scheme is a word before the first colon; a path or an assignment there makes it something else.
        Operands::Local => match text.split_once(':') {
            Some((scheme, _)) => scheme.contains(['/', '=', ' ']),
            None => arg.literal().is_some() || text.contains('/'),
        },
        Operands::NoAssignment => arg.literal().is_some() && !text.contains('='),
    }
}

/// What speaks against a list of arguments.
pub(super) enum Offence<'a> {
    None,
    Option(&'a str),
    Hidden,
}

/// Options of several programs that take no value, so that a `--` behind them is none.
const ALONE: &[&str] = &[
    "--oneline",
    "--stat",
    "--name-only",
    "--name-status",
    "--cached",
    "--staged",
    "--follow",
    "--patch",
    "--numstat",
    "--shortstat",
    "--all",
    "--reverse",
    "--graph",
];

/// The same as single letters, for the programs behind which `--` is written most.
const LETTERS_ALONE: &[(&str, &str)] = &[("rg", "ilcnwvFSuHNso"), ("git", "piwv"), ("sort", "bdfginrVcmsuz")];

/// Looks for options that are not allowed, up to a `--` that is no option's value.
pub(super) fn offending<'a>(name: &str, args: &'a [Arg], bad: &[&str]) -> Offence<'a> {
    let mut before = "";
    for arg in args {
        if arg.may_hide_option() {
            return Offence::Hidden;
        }
        let text = arg.known();
        if arg.literal() == Some("--") && !may_take_a_value(name, before) {
            return Offence::None;
        }
        before = text;
        if text.starts_with('-') && bad.iter().any(|option| names(text, option)) {
            return Offence::Option(text);
        }
    }
    Offence::None
}

/// Whether the next word could belong to this one.
fn may_take_a_value(program: &str, text: &str) -> bool {
    let letters = LETTERS_ALONE
        .iter()
        .find(|(of, _)| *of == program)
        .map_or("", |(_, all)| *all);
    let takes_none = |flags: &str| flags.parse::<u32>().is_ok() || flags.chars().all(|c| letters.contains(c));
    match text.strip_prefix('-') {
        None => false,
        Some("") => true,
        Some(flags) => !text.contains('=') && !takes_none(flags) && !ALONE.contains(&text),
    }
}

/// Whether the argument names the option: exactly, as an abbreviation, with a value, or in a cluster of short ones.
pub(super) fn names(argument: &str, option: &str) -> bool {
    if let Some(long) = argument.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or(long);
        return option
            .strip_prefix("--")
            .is_some_and(|option| !name.is_empty() && option.starts_with(name));
    }
    match option.strip_prefix('-') {
        Some(short) if short.chars().count() == 1 => argument.contains(short),
        Some(word) if !option.starts_with("--") => argument
            .strip_prefix('-')
            .is_some_and(|a| !a.is_empty() && word.starts_with(a)),
        _ => false,
    }
}
