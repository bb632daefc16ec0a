//! Programs whose arguments need more than a row (design §9).
//!
//! Owns the judgement of programs that run others, search with actions, write to their operands or fetch. Must not know
//! the shell's syntax.

use artoo_protocol::tool::EffectClass;

use super::programs::{Offence, offending};
use super::words::Arg;
use super::{Walk, WrittenPath, awk, sed as sed_script};

const HIDDEN: &str = "is known only when it runs, and could be an option";

pub(super) fn find(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let start = args
        .first()
        .filter(|arg| !arg.known().is_empty() && !arg.known().starts_with('-'));
    let found = Arg::one(start.map_or("./", Arg::known));
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg.may_hide_option() {
            return walk.unknown(format!("an argument of `find` {HIDDEN}"));
        }
        match arg.literal() {
            Some("-delete") => walk.raise(EffectClass::Destroy, "`find -delete` deletes files"),
            Some("-exec" | "-execdir") => {
                let inner: Vec<Arg> = rest
                    .by_ref()
                    .take_while(|arg| !matches!(arg.literal(), Some(";" | "+")))
                    .map(|arg| {
                        if arg.known().contains("{}") {
                            placeholder(arg, "{}", &found)
                        } else {
                            arg.clone()
                        }
                    })
                    .collect();
                walk.argv(&inner);
            }
            Some(word) if word.starts_with("-fprint") || ["-ok", "-okdir", "-fls"].contains(&word) => {
                walk.unknown(format!("`find {word}` can do more than read"));
            }
            Some(_) | None => {}
        }
    }
}

/// The argument with a placeholder in it, as far as it is known once something unknown stands there.
pub(super) fn placeholder(arg: &Arg, mark: &str, standing_for: &Arg) -> Arg {
    if arg.literal() == Some(mark) {
        return standing_for.clone();
    }
    Arg::one(arg.known().split(mark).next().unwrap_or_default())
}

pub(super) fn sed(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg.may_hide_option() {
            return walk.unknown(format!("an argument of `sed` {HIDDEN}"));
        }
        let text = arg.known();
        if arg.literal().is_none() || !text.starts_with('-') || text == "-" {
            operands.push(arg);
        } else if let Some(script) = text.strip_prefix("--expression=") {
            scripts.push(Arg::text(script));
        } else if [
            "--quiet",
            "--silent",
            "--regexp-extended",
            "--posix",
            "--separate",
            "--null-data",
        ]
        .contains(&text)
        {
        } else if text == "--expression" || (text.ends_with('e') && text.chars().skip(1).all(|c| "nErsuze".contains(c)))
        {
            scripts.extend(rest.next().cloned());
        } else if text.starts_with("--in-place") || (!text.starts_with("--") && text.contains('i')) {
            return walk.raise(EffectClass::Destroy, "`sed -i` changes files in place");
        } else if !text.chars().skip(1).all(|c| "nErsuz".contains(c)) {
            return walk.unknown(format!("`sed {text}` can do more than read"));
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first().map(|arg| (*arg).clone()));
    }
    let harmless = !scripts.is_empty()
        && scripts
            .iter()
            .all(|arg| arg.literal().is_some_and(sed_script::only_reads));
    if !harmless {
        walk.unknown("what the sed script does is not understood");
    }
}

pub(super) fn awk(walk: &mut Walk, name: &str, args: &[Arg]) {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some(text) = arg.literal() else {
            break;
        };
        if text == "-F" || text == "-v" {
            rest.next();
        } else if !text.starts_with("-F") && !text.starts_with("-v") && text != "--" {
            if text.starts_with('-') || !awk::only_reads(text) {
                walk.unknown(format!("what the {name} program does is not understood"));
            }
            return;
        }
    }
    walk.unknown(format!("the {name} program is known only when it runs"));
}

pub(super) fn date(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let mut value = false;
    for arg in args {
        let known = arg.known();
        let accepted = if value || known.starts_with("--date=") || known.starts_with('+') {
            arg.is_single()
        } else if let Some(long) = known.strip_prefix("--") {
            arg.literal().is_some() && !"set".starts_with(long.split('=').next().unwrap_or_default())
        } else {
            arg.literal()
                .is_some_and(|text| text.starts_with("-I") || (text.starts_with('-') && !text.contains('s')))
        };
        if !accepted {
            return walk.unknown("`date` with these arguments may set the clock");
        }
        value = !value && matches!(arg.literal(), Some("-d" | "--date" | "-r" | "--reference"));
    }
}

/// `tar` that lists; an archive name with a colon means another machine.
pub(super) fn tar(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let lists = args.first().and_then(Arg::literal).is_some_and(|text| {
        let flags = text.strip_prefix('-').unwrap_or(text);
        flags.contains('t') && flags.ends_with('f') && flags.chars().all(|c| "tvzjJf".contains(c))
    });
    let plain = args.iter().skip(1).all(|arg| {
        arg.literal()
            .is_some_and(|text| !text.starts_with('-') && !text.contains(':'))
    });
    if !lists || !plain {
        walk.unknown("`tar` with these arguments can do more than list");
    }
}

pub(super) fn test(walk: &mut Walk, name: &str, args: &[Arg]) {
    let operands = args.len() - usize::from(name == "[" && !args.is_empty());
    let unknown_operator = operands == 2 && args.first().is_some_and(|arg| arg.literal().is_none());
    let names = args.iter().any(|arg| matches!(arg.literal(), Some("-v" | "-R")));
    if names || unknown_operator || args.iter().any(|arg| !arg.is_single()) {
        walk.unknown(format!("an argument of `{name}` {HIDDEN}"));
    }
}

pub(super) fn change_folder(walk: &mut Walk, _name: &str, _args: &[Arg]) {
    walk.moved = true;
}

pub(super) fn set(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let harmless = |text: &str| {
        ["pipefail", "errexit", "nounset"].contains(&text)
            || text
                .strip_prefix(['-', '+'])
                .is_some_and(|flags| !flags.is_empty() && flags.chars().all(|c| "euxfo".contains(c)))
    };
    if !args.iter().all(|arg| arg.literal().is_some_and(harmless)) {
        walk.unknown("`set` can change what commands mean");
    }
}

pub(super) fn read(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.literal() {
            Some("-d" | "-n" | "-N" | "-t" | "-p" | "-u" | "-i") => {
                rest.next();
            }
            Some(option) if option.starts_with('-') => {}
            Some(name) => walk.assigned(name, false),
            None => return walk.unknown(format!("an argument of `read` {HIDDEN}")),
        }
    }
}

pub(super) fn mkdir(walk: &mut Walk, _name: &str, args: &[Arg]) {
    operands_written(walk, args, "pv", &["--parents", "--verbose"], WrittenPath::Folder);
}

pub(super) fn touch(walk: &mut Walk, _name: &str, args: &[Arg]) {
    operands_written(walk, args, "amc", &["--no-create"], WrittenPath::File);
}

fn operands_written(walk: &mut Walk, args: &[Arg], short: &str, long: &[&str], made: fn(String) -> WrittenPath) {
    let is_option = |arg: &&Arg| arg.literal().is_some_and(|text| text.starts_with('-') && text != "--");
    for option in args.iter().filter(is_option) {
        let text = option.known();
        if !long.contains(&text) && !text.chars().skip(1).all(|c| short.contains(c)) {
            return walk.unknown(format!("`{text}` is not understood"));
        }
    }
    let operands: Vec<Arg> = args.iter().filter(|arg| !is_option(arg)).cloned().collect();
    walk.writes_operands(&operands, made);
}

pub(super) fn tee(walk: &mut Walk, _name: &str, args: &[Arg]) {
    for arg in args {
        match arg.literal() {
            Some("-a" | "--append" | "-i" | "--") => {}
            Some(text) if text.starts_with('-') && text != "-" => {
                return walk.unknown(format!("`tee {text}` is not understood"));
            }
            _ => walk.writes_file(arg),
        }
    }
}

/// `curl` that only gets: it fetches. Anything that could carry data out, or an address known only later, is external.
pub(super) fn curl(walk: &mut Walk, _name: &str, args: &[Arg]) {
    const PLAIN: &[&str] = &[
        "--silent",
        "--show-error",
        "--fail",
        "--location",
        "--head",
        "--include",
        "--compressed",
        "--verbose",
        "--globoff",
    ];
    const WITH_VALUE: &[&str] = &[
        "-m",
        "--max-time",
        "--connect-timeout",
        "--retry",
        "-w",
        "--write-out",
        "--max-redirs",
    ];
    walk.raise(EffectClass::Fetch, "it uses the network");
    if matches!(offending(args, &[]), Offence::Hidden) {
        return walk.unknown("what `curl` sends is known only when it runs");
    }
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some(text) = arg.literal() else {
            return walk.unknown("what `curl` sends is known only when it runs");
        };
        if WITH_VALUE.contains(&text) {
            rest.next();
        } else if text == "-o" || text == "--output" {
            match rest.next() {
                Some(target) => walk.writes_file(target),
                None => walk.unknown("`curl -o` without a file is not understood"),
            }
        } else if text.starts_with('-') {
            let short = !text.starts_with("--") && text.chars().skip(1).all(|c| "sSfLIivg".contains(c));
            if !short && !PLAIN.contains(&text) {
                return walk.unknown(format!("`curl {text}` can do more than fetch"));
            }
        } else if text.contains("://") && !text.starts_with("http://") && !text.starts_with("https://") {
            return walk.unknown("`curl` with this kind of address can do more than fetch");
        }
    }
}
