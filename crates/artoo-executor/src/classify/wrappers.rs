//! Programs that run another program (design §9).
//!
//! Owns the way from a wrapper's arguments to the command it runs. Must not know the shell's syntax.

use super::Walk;
use super::special::placeholder;
use super::words::Arg;

/// Of several words behind an option one would be the program; of none, the next word would belong to the option.
const SEVERAL: &str = "which program runs is known only when it runs";

pub(super) fn env(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let mut rest = args.iter().enumerate();
    while let Some((at, arg)) = rest.next() {
        let text = arg.known();
        match text {
            // Its unknown end could be a value or further options.
            _ if text.starts_with('-') && arg.literal().is_none() => return walk.runs_anything(SEVERAL),
            "-0" | "--null" => {}
            "-i" | "-" | "--ignore-environment" => walk.homeless = true,
            "-u" | "--unset" => match rest.next() {
                Some((_, value)) if value.is_single() => walk.homeless |= value.may_be(&["HOME"]),
                Some(_) | None => return walk.runs_anything(SEVERAL),
            },
            _ if text.starts_with("--unset=") => walk.homeless = true,
            _ if text.starts_with('-') || !arg.is_single() => {
                return walk.runs_anything(format!("`env {text}` can do more than read"));
            }
            _ => match text.split_once('=') {
                Some((variable, _)) => walk.assigned(variable, false),
                None => return walk.argv(args.get(at..).unwrap_or_default()),
            },
        }
    }
}

pub(super) fn command(walk: &mut Walk, name: &str, args: &[Arg]) {
    match args.first().and_then(Arg::literal) {
        Some("-v" | "-V") => {}
        Some("-p") => prefix(walk, name, args.get(1..).unwrap_or_default()),
        _ => prefix(walk, name, args),
    }
}

/// `builtin CMD`, `nohup CMD`: no options of their own.
pub(super) fn prefix(walk: &mut Walk, name: &str, args: &[Arg]) {
    if args.first().is_some_and(|arg| arg.known().starts_with('-')) {
        return walk.runs_anything(format!("`{name}` with options is not understood"));
    }
    walk.argv(args);
}

pub(super) fn nice(walk: &mut Walk, name: &str, args: &[Arg]) {
    let skip = match args.first().and_then(Arg::literal) {
        Some("-n") => 2,
        Some(text) if text.starts_with("--adjustment=") => 1,
        Some(text) if text.strip_prefix('-').is_some_and(|n| n.parse::<i8>().is_ok()) => 1,
        _ => 0,
    };
    let (options, program) = args.split_at_checked(skip).unwrap_or((args, &[]));
    if !options.iter().all(Arg::is_single) {
        return walk.runs_anything(SEVERAL);
    }
    prefix(walk, name, program);
}

pub(super) fn timeout(walk: &mut Walk, name: &str, args: &[Arg]) {
    let mut at = 0;
    loop {
        at += match args.get(at).and_then(Arg::literal) {
            Some("-k" | "-s" | "--kill-after" | "--signal") => 2,
            Some("--preserve-status" | "--foreground" | "-v" | "--verbose") => 1,
            Some(text) if text.starts_with("--kill-after=") || text.starts_with("--signal=") => 1,
            _ => break,
        };
    }
    if !args.iter().take(at).all(Arg::is_single) {
        return walk.runs_anything(SEVERAL);
    }
    match args.get(at..).and_then(<[Arg]>::split_first) {
        Some((duration, rest)) if duration.is_single() && !duration.known().starts_with('-') => {
            prefix(walk, name, rest);
        }
        _ => walk.runs_anything("`timeout` with these arguments is not understood"),
    }
}

pub(super) fn stdbuf(walk: &mut Walk, name: &str, args: &[Arg]) {
    let options = args
        .iter()
        .take_while(|arg| {
            arg.literal()
                .is_some_and(|t| t.len() > 2 && ["-i", "-o", "-e"].iter().any(|o| t.starts_with(o)))
        })
        .count();
    prefix(walk, name, args.get(options..).unwrap_or_default());
}

pub(super) fn xargs(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let mut mark: Option<String> = None;
    let mut batches = false;
    let mut rest = args;
    while let Some((arg, after)) = rest.split_first() {
        let Some(option) = arg.literal().filter(|text| text.starts_with('-')) else {
            break;
        };
        rest = after;
        batches |= option.starts_with("--max-");
        if ["--null", "--no-run-if-empty", "--verbose"].contains(&option)
            || ["--max-args=", "--max-procs=", "--max-lines=", "--delimiter="]
                .iter()
                .any(|long| option.starts_with(long))
        {
            continue;
        }
        let flags = option.trim_start_matches('-').trim_start_matches(['0', 'r', 't', 'x']);
        let mut chars = flags.chars();
        let Some(flag) = chars.next() else {
            continue;
        };
        if option.starts_with("--") || !"nPLdsIEa".contains(flag) {
            return walk.runs_anything(format!("`xargs {option}` is not understood"));
        }
        batches |= matches!(flag, 'n' | 'L');
        let attached = chars.as_str();
        let value = if attached.is_empty() {
            let Some((value, after)) = rest.split_first().filter(|(value, _)| value.is_single()) else {
                return walk.runs_anything("`xargs` with these arguments is not understood");
            };
            rest = after;
            value.literal().map(str::to_owned)
        } else {
            Some(attached.to_owned())
        };
        if flag == 'I' {
            match value.filter(|mark| !mark.is_empty()) {
                Some(value) => mark = Some(value),
                None => return walk.runs_anything("what `xargs` replaces is known only when it runs"),
            }
        }
    }
    if rest.is_empty() {
        return;
    }
    let mut inner: Vec<Arg> = rest.to_vec();
    match &mark {
        Some(mark) => {
            for arg in &mut inner {
                if arg.known().contains(mark.as_str()) {
                    *arg = placeholder(arg, mark, &Arg::one(""));
                }
            }
        }
        None => batches = true,
    }
    // The last of a mark and a number counts.
    if batches {
        inner.push(Arg::any());
    }
    walk.argv(&inner);
}

pub(super) fn privileged(walk: &mut Walk, name: &str, args: &[Arg]) {
    let mut at = 0;
    while let Some(option) = args.get(at).map(Arg::known).filter(|text| text.starts_with('-')) {
        at += if ["-u", "-g", "-h", "-p", "-C", "-T"].contains(&option) {
            2
        } else {
            1
        };
    }
    walk.argv(args.get(at..).unwrap_or_default());
    walk.unknown(format!("`{name}` runs it with other rights"));
}

pub(super) fn shell(walk: &mut Walk, name: &str, args: &[Arg]) {
    if matches!(args, [only] if only.literal() == Some("--version")) {
        return;
    }
    let mut runs_text = false;
    let mut rest = args;
    while let Some((arg, after)) = rest.split_first() {
        let Some(flags) = arg.literal().and_then(|text| text.strip_prefix('-')) else {
            break;
        };
        if flags.is_empty() || !flags.chars().all(|c| "ceuxo".contains(c)) {
            return walk.runs_anything(format!("`{name} {}` is not understood", arg.known()));
        }
        runs_text |= flags.contains('c');
        rest = after;
        if flags.contains('o') {
            match rest.split_first() {
                Some((option, after)) if option.literal() == Some("pipefail") => rest = after,
                _ => return walk.runs_anything(format!("`{name} -o` is not understood")),
            }
        }
    }
    match rest.first().and_then(Arg::literal) {
        Some(script) if runs_text => walk.script(script, walk.depth + 1),
        // A file that is named is what the program was given to run.
        Some(_) => walk.unknown(format!("what `{name}` runs is known only when it runs")),
        None => walk.runs_anything(format!("what `{name}` runs is known only when it runs")),
    }
}
