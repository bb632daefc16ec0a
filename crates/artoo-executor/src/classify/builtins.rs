//! Builtins of the shell whose arguments need more than a row (design §9).
//!
//! Owns the judgement of builtins that set variables, evaluate names or change what later words mean. Must not know the shell's syntax.

use super::words::Arg;
use super::{Walk, is_harmless_variable};

const HIDDEN: &str = "is known only when it runs, and could be an option";

/// `mapfile`: `-C` names a command that is run for lines.
pub(super) fn mapfile(walk: &mut Walk, name: &str, args: &[Arg]) {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.literal() {
            Some("-t") => {}
            Some("-d" | "-n" | "-s" | "-O" | "-u") => {
                if rest.next().is_none_or(|value| value.literal().is_none()) {
                    return walk.runs_anything(format!("an argument of `{name}` {HIDDEN}"));
                }
            }
            Some(array) if !array.starts_with('-') => walk.assigned(array, false),
            Some(_) | None => {
                return walk.runs_anything(format!("what `{name}` does with these arguments is not known"));
            }
        }
    }
}

/// `export NAME=VALUE`: no worse than setting the variable, unless other programs heed it.
pub(super) fn export(walk: &mut Walk, _name: &str, args: &[Arg]) {
    for arg in args {
        let text = arg.known();
        let name = text.split_once('=').map(|(name, _)| name).or_else(|| arg.literal());
        match name {
            Some(name) if !name.starts_with('-') && arg.is_single() => walk.assigned(name, false),
            Some(_) | None => return walk.runs_anything("which variable `export` sets is known only when it runs"),
        }
    }
}

/// `-v` and `-R` evaluate a subscript in the name behind them, so no unknown word may be one of them where a name could follow.
pub(super) fn test(walk: &mut Walk, name: &str, args: &[Arg]) {
    let operands = match args.split_last() {
        Some((_, before)) if name == "[" => before,
        _ => args,
    };
    let names = operands.iter().any(|arg| matches!(arg.literal(), Some("-v" | "-R")));
    let followed = operands.iter().zip(operands.iter().skip(1));
    let unknown_operator = followed
        .filter(|(operator, _)| operator.literal().is_none())
        .any(|(_, operand)| operand.literal().is_none_or(|text| text.contains('[')));
    if names || unknown_operator || args.iter().any(|arg| !arg.is_single()) {
        walk.runs_anything(format!("an argument of `{name}` {HIDDEN}"));
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
        walk.runs_anything("`set` can change what commands mean");
    }
}

/// `read`: its options are read as the builtin does, since `-aNAME` sets a variable, and a value may be one.
pub(super) fn read(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let mut rest = args;
    while let Some((arg, after)) = rest.split_first() {
        let Some(flags) = arg
            .literal()
            .and_then(|text| text.strip_prefix('-'))
            .filter(|flags| !flags.is_empty())
        else {
            break;
        };
        rest = after;
        if flags == "-" {
            break;
        }
        let Some(flag) = flags.trim_start_matches(['r', 's', 'e']).chars().next() else {
            continue;
        };
        let attached = flags.split_once(flag).map_or("", |(_, value)| value);
        let value = if attached.is_empty() {
            let Some((value, after)) = rest.split_first().filter(|(value, _)| value.is_single()) else {
                return walk.runs_anything(format!("an argument of `read` {HIDDEN}"));
            };
            rest = after;
            value.clone()
        } else {
            Arg::text(attached)
        };
        match (flag, value.literal()) {
            ('a', Some(array)) => walk.assigned(array, false),
            ('d' | 'n' | 'N' | 't' | 'p' | 'u' | 'i', _) => {}
            _ => return walk.runs_anything("what `read` does with these arguments is not known"),
        }
    }
    for arg in rest {
        match arg.literal() {
            Some(name) => walk.assigned(name, false),
            None => return walk.runs_anything(format!("an argument of `read` {HIDDEN}")),
        }
    }
}

/// `wait`: `-p` sets a variable.
pub(super) fn wait(walk: &mut Walk, name: &str, args: &[Arg]) {
    let harmless = |arg: &Arg| {
        let job = |text: &str| ["-n", "-f"].contains(&text) || !text.starts_with('-');
        arg.is_job() || arg.literal().map_or(!arg.may_hide_option(), job)
    };
    if !args.iter().all(harmless) {
        walk.runs_anything(format!("what `{name}` does with these arguments is not known"));
    }
}

/// `printf`: `-v` writes into a variable, and so does `%n`.
pub(super) fn printf(walk: &mut Walk, name: &str, args: &[Arg]) {
    let args = match args.split_first() {
        Some((first, rest)) if first.literal() == Some("--") => rest,
        _ => args,
    };
    let Some((format, values)) = args.split_first() else {
        return;
    };
    // `-v` without a format behind it is an error.
    let may_set = format.may_hide_option() || format.known().starts_with("-v");
    if may_set && !(values.is_empty() && format.is_single()) {
        return walk.runs_anything(format!("an argument of `{name}` {HIDDEN}"));
    }
    let counts = format.literal().is_none_or(counts_into_a_variable);
    let matters = |value: &Arg| {
        let name_so_far = value.known().chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        name_so_far && !value.literal().is_some_and(is_harmless_variable)
    };
    if counts && values.iter().any(matters) {
        walk.runs_anything("`%n` of `printf` sets a variable");
    }
}

/// Whether a format holds the conversion `%n`.
fn counts_into_a_variable(format: &str) -> bool {
    let conversions = format.replace("%%", "");
    conversions.split('%').skip(1).any(|conversion| {
        conversion
            .trim_start_matches(|c: char| "-+ #0'*.hlLjzt".contains(c) || c.is_ascii_digit())
            .starts_with('n')
    })
}
