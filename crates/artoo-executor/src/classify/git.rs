//! What a git command could do (design §9).
//!
//! Owns one row per subcommand that is known to read only. Must not know the shell's syntax.

use artoo_protocol::tool::EffectClass;

use super::Walk;
use super::programs::{Offence, offending, option_among};
use super::words::Arg;

/// Options that let a reading subcommand write or run something.
const NOT_READING: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "--filters",
    "--open-files-in-pager",
];

/// Subcommands that read, whatever else they are given.
const READING: &[&str] = &[
    "log",
    "show",
    "diff",
    "status",
    "shortlog",
    "whatchanged",
    "blame",
    "annotate",
    "rev-list",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "cat-file",
    "describe",
    "name-rev",
    "merge-base",
    "diff-tree",
    "diff-index",
    "diff-files",
    "for-each-ref",
    "count-objects",
    "check-ignore",
    "version",
    "grep",
    "cherry",
    "show-ref",
    "show-branch",
    "range-diff",
    "var",
];

/// Subcommands that read in one of these forms: without arguments, or with these alone, or with one of these first.
const LISTING: &[(&str, &[&str], &[&str])] = &[
    (
        "branch",
        &[
            "-a",
            "-r",
            "-v",
            "-vv",
            "-av",
            "-avv",
            "-rv",
            "--all",
            "--remotes",
            "--verbose",
            "--show-current",
        ],
        &["--list", "-l", "--contains", "--merged", "--no-merged", "--points-at"],
    ),
    (
        "tag",
        &[],
        &[
            "--list",
            "-l",
            "-n",
            "--contains",
            "--merged",
            "--no-merged",
            "--points-at",
        ],
    ),
    ("remote", &["-v", "--verbose"], &["get-url"]),
    ("stash", &["list", "show"], &[]),
    ("submodule", &["status"], &["status", "summary"]),
    ("notes", &["list"], &["list", "show"]),
    ("bisect", &["log"], &["log"]),
    ("worktree", &["list"], &[]),
    (
        "config",
        &[
            "--list",
            "-l",
            "list",
            "--global",
            "--local",
            "--system",
            "--show-origin",
        ],
        &["--get", "--get-all", "--get-regexp", "get"],
    ),
    ("reflog", &["--all", "--date=iso", "--date=relative"], &["show"]),
    ("help", &["-a", "-g"], &[]),
];

/// Subcommands known to do more, with their class.
const CHANGING: &[(EffectClass, &[&str])] = &[
    (
        EffectClass::Destroy,
        &[
            "clean",
            "reset",
            "checkout",
            "switch",
            "restore",
            "rm",
            "gc",
            "prune",
            "rebase",
            "filter-branch",
            "stash",
            "branch",
            "tag",
            "worktree",
        ],
    ),
    (
        EffectClass::Modify,
        &[
            "add",
            "commit",
            "merge",
            "init",
            "mv",
            "apply",
            "am",
            "cherry-pick",
            "revert",
            "notes",
            "config",
        ],
    ),
];

pub(super) fn git(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let mut rest = args;
    while let Some((arg, after)) = rest.split_first() {
        match arg.literal() {
            Some("--no-pager" | "--no-optional-locks" | "-P") => rest = after,
            Some("-C") if after.first().is_some_and(Arg::is_single) => rest = after.get(1..).unwrap_or_default(),
            Some("--version") => return,
            // `--git-dir=` among them: git takes a folder that is named for its user's own and runs what its settings say.
            Some(option) if option.starts_with('-') => {
                return walk.unknown(format!("`git {option}` can do more than read"));
            }
            _ => break,
        }
    }
    let Some((subcommand, rest)) = rest.split_first() else {
        return;
    };
    let Some(name) = subcommand.literal() else {
        return walk.unknown("which git command runs is known only when it runs");
    };
    if READING.contains(&name) {
        reading(walk, name, rest);
    } else if !lists(name, rest) {
        match CHANGING.iter().find(|(_, names)| names.contains(&name)) {
            Some((effect, _)) => walk.raise(*effect, format!("`git {name}` changes the repository")),
            None => walk.unknown(format!("`git {name}` can do more than read")),
        }
    }
}

fn reading(walk: &mut Walk, name: &str, args: &[Arg]) {
    // Only `git grep` takes a command behind `-O`; elsewhere it names a file to read.
    let pager = name == "grep"
        && args
            .iter()
            .any(|arg| arg.known().starts_with('-') && !arg.known().starts_with("--") && arg.known().contains('O'));
    match offending("git", args, NOT_READING) {
        Offence::None if !pager => {}
        Offence::Hidden => walk.unknown(format!(
            "an argument of `git {name}` is known only when it runs, and could be an option"
        )),
        Offence::None | Offence::Option(_) => {
            walk.unknown(format!("`git {name}` with these options can do more than read"));
        }
    }
}

fn lists(name: &str, args: &[Arg]) -> bool {
    let Some((_, alone, first)) = LISTING.iter().find(|(known, _, _)| *known == name) else {
        return false;
    };
    let Some((head, rest)) = args.split_first() else {
        // `git stash` and `git worktree` alone are not listings.
        return !matches!(name, "stash" | "worktree" | "config" | "bisect");
    };
    let Some(text) = head.literal() else {
        return false;
    };
    if name == "stash" && ["show", "list"].contains(&text) {
        let good = ["-p", "--patch", "--stat", "--oneline", "--name-only", "--date="];
        return rest.iter().all(|arg| option_among(arg, &good));
    }
    let counts = |text: &str| text.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok());
    let one_word = rest.is_empty() && !text.starts_with('-');
    if (name == "reflog" && rest.is_empty() && counts(text))
        // `git config user.name` shows it; a second word would set it.
        || (name == "config" && one_word && text.contains('.'))
        || (name == "help" && one_word)
        || (name == "remote" && text == "show" && rest.first().and_then(Arg::literal) == Some("-n"))
    {
        return rest.iter().all(|arg| arg.literal().is_some());
    }
    if first.contains(&text) {
        return rest
            .iter()
            .all(|arg| !arg.may_hide_option() && !arg.known().starts_with('-'));
    }
    args.iter().all(|arg| {
        arg.literal()
            .is_some_and(|text| alone.contains(&text) || text.starts_with("--sort=") || text.starts_with("--format="))
    }) && alone.contains(&text)
        || args.iter().all(|arg| {
            arg.literal()
                .is_some_and(|text| text.starts_with("--sort=") || text.starts_with("--format="))
        }) && matches!(name, "branch" | "tag")
}
