//! The programs whose effects are known: one row each (design §9).
//!
//! Owns the table and the reading of options against it. A program that is not here is of the worst class. Must not know
//! the shell's syntax.

use artoo_protocol::tool::EffectClass;

use super::special;
use super::words::Arg;
use super::wrappers;
use super::{UNKNOWN_PROGRAM, Walk, WrittenPath};

/// What a program's arguments decide.
pub(super) enum Rule {
    /// A read, whatever its arguments.
    Pure,
    /// A read unless one of these options is given, anywhere. `-x` also stands for clusters with `x`, and `--long` for
    /// its abbreviations.
    Without(&'static [&'static str]),
    /// The same for programs whose options end at the first other word.
    WithoutLeading(&'static [&'static str]),
    /// A read when every argument is one of these.
    Only(&'static [&'static str]),
    /// A read when the first argument is one of these and no other option follows.
    First(&'static [&'static str]),
    /// A read with at most one operand, for programs that write into a second.
    OneOperand(&'static [&'static str]),
    /// Always of this class.
    Always(EffectClass, &'static str),
    /// Looked at by code of its own.
    Special(fn(&mut Walk, &str, &[Arg])),
}

use EffectClass::{Destroy, External, Modify};
use Rule::{Always, First, OneOperand, Only, Pure, Special, Without, WithoutLeading};

const VERSION: &[&str] = &["--version", "-V", "-version", "version"];

/// The table; a name stands in it once.
#[rustfmt::skip]
pub(super) const PROGRAMS: &[(&str, Rule)] = &[
    // text and files, read only
    ("cat", Pure), ("tac", Pure), ("nl", Pure), ("rev", Pure), ("head", Pure), ("tail", Pure), ("wc", Pure), ("cut", Pure),
    ("tr", Pure), ("paste", Pure), ("join", Pure), ("comm", Pure), ("cmp", Pure), ("diff", Pure), ("fold", Pure), ("fmt", Pure),
    ("expand", Pure), ("unexpand", Pure), ("column", Pure), ("strings", Pure), ("od", Pure), ("hexdump", Pure),
    ("base64", Without(&["-o", "--output"])), ("base32", Pure), ("numfmt", Pure), ("factor", Pure), ("grep", Pure), ("egrep", Pure), ("fgrep", Pure),
    ("jq", Pure), ("zcat", Pure), ("bzcat", Pure), ("xzcat", Pure), ("zipinfo", Pure),
    ("md5sum", Pure), ("sha1sum", Pure), ("sha224sum", Pure), ("sha256sum", Pure), ("sha384sum", Pure), ("sha512sum", Pure),
    ("b2sum", Pure), ("cksum", Pure), ("sum", Pure), ("shasum", Pure), ("md5", Pure),
    ("ls", Pure), ("stat", Pure), ("basename", Pure), ("dirname", Pure), ("realpath", Pure), ("readlink", Pure),
    ("du", Pure), ("df", Pure), ("tokei", Pure),
    ("sort", Without(&["-o", "--output", "--compress-program", "-T", "--temporary-directory"])),
    ("uniq", OneOperand(&[])),
    ("xxd", OneOperand(&["-r", "-revert", "--revert"])),
    ("file", Without(&["-C", "--compile"])),
    ("tree", Without(&["-o", "-R", "--output"])),
    ("iconv", Without(&["-o", "--output"])),
    ("rg", Without(&["--pre", "--hostname-bin"])),
    ("fd", Without(&["-x", "-X", "--exec", "--exec-batch"])),
    ("fdfind", Without(&["-x", "-X", "--exec", "--exec-batch"])),
    ("find", Special(special::find)), ("sed", Special(special::sed)), ("awk", Special(special::awk)),
    ("gawk", Special(special::awk)), ("mawk", Special(special::awk)), ("git", Special(super::git::git)),
    ("tar", Special(special::tar)),
    ("unzip", First(&["-l", "-v", "-lv", "-t", "-Z", "-Z1"])),

    // the system, read only
    ("pwd", Pure), ("whoami", Pure), ("id", Pure), ("groups", Pure), ("users", Pure), ("who", Pure), ("w", Pure), ("uname", Pure),
    ("arch", Pure), ("nproc", Pure), ("free", Pure), ("uptime", Pure), ("vmstat", Pure), ("iostat", Pure), ("lscpu", Pure),
    ("lsblk", Pure), ("ps", Pure), ("pgrep", Pure), ("printenv", Pure), ("locale", Pure),
    ("getconf", Pure), ("tty", Pure), ("cal", Pure), ("sw_vers", Pure), ("mdls", Pure), ("mdfind", Pure), ("netstat", Pure),
    ("which", Pure), ("whereis", Pure), ("last", Pure), ("top", Only(&["-b", "-bn1", "-n", "1", "-l"])),
    ("ss", Without(&["-K", "--kill", "-D", "--diag"])), ("lsof", Without(&["-D"])),
    ("date", Special(special::date)),
    ("hostname", Only(&["-f", "-s", "-i", "-I", "-d", "--fqdn", "--short"])),
    ("mount", Only(&["-l"])),
    ("ip", Only(&["addr", "address", "a", "route", "r", "link", "l", "show", "list", "ls", "-4", "-6", "-br", "-brief", "-j", "-s"])),
    ("systemctl", First(&["status", "list-units", "list-unit-files", "list-timers", "is-active", "is-enabled", "is-failed", "show", "cat"])),
    ("docker", First(&["ps", "images", "version", "info", "inspect", "logs"])),
    ("dpkg", First(&["-l", "-L", "-s", "-S", "--list", "--listfiles", "--status", "--search"])),
    ("dpkg-query", First(&["-l", "-L", "-s", "-S", "-W"])),
    ("brew", First(&["list", "leaves", "--version", "--prefix"])),

    // what only says its version
    ("python", Only(VERSION)), ("python3", Only(VERSION)), ("pip", Only(VERSION)), ("pip3", Only(VERSION)), ("node", Only(&["--version", "-v"])),
    ("npm", Only(&["--version", "-v"])), ("yarn", Only(&["--version", "-v"])), ("rustc", Only(VERSION)), ("cargo", Only(VERSION)),
    ("rustup", Only(VERSION)), ("go", Only(&["version"])), ("java", Only(VERSION)), ("gcc", Only(&["--version"])), ("cc", Only(&["--version"])),
    ("clang", Only(&["--version"])), ("make", Only(&["--version"])), ("cmake", Only(&["--version"])), ("perl", Only(&["--version", "-v"])),
    ("ruby", Only(&["--version", "-v"])), ("php", Only(&["--version", "-v"])), ("lua", Only(&["-v"])), ("ffmpeg", Only(&["-version"])),

    // builtins and small things
    (":", Pure), ("true", Pure), ("false", Pure), ("echo", Pure), ("seq", Pure), ("sleep", Pure), ("expr", Pure), ("yes", Pure),
    ("exit", Pure), ("return", Pure), ("break", Pure), ("continue", Pure), ("shift", Pure), ("wait", Pure), ("jobs", Pure),
    ("type", Pure), ("printf", WithoutLeading(&["-v"])), ("test", Special(special::test)), ("[", Special(special::test)),
    ("cd", Special(special::change_folder)), ("pushd", Special(special::change_folder)), ("popd", Special(special::change_folder)),
    ("set", Special(special::set)), ("read", Special(special::read)),

    // what runs something else
    ("env", Special(wrappers::env)), ("command", Special(wrappers::command)), ("builtin", Special(wrappers::prefix)),
    ("nohup", Special(wrappers::prefix)), ("nice", Special(wrappers::nice)), ("timeout", Special(wrappers::timeout)),
    ("stdbuf", Special(wrappers::stdbuf)), ("xargs", Special(wrappers::xargs)), ("sudo", Special(wrappers::privileged)),
    ("doas", Special(wrappers::privileged)), ("sh", Special(wrappers::shell)), ("bash", Special(wrappers::shell)), ("dash", Special(wrappers::shell)),

    // what makes files: judged by their paths
    ("mkdir", Special(special::mkdir)), ("touch", Special(special::touch)), ("tee", Special(special::tee)),

    // what changes or removes things
    ("rm", Always(Destroy, "it deletes files")), ("rmdir", Always(Destroy, "it deletes folders")), ("unlink", Always(Destroy, "it deletes a file")),
    ("shred", Always(Destroy, "it destroys the content of files")), ("truncate", Always(Destroy, "it cuts files")),
    ("dd", Always(Destroy, "it can overwrite files and devices")), ("mv", Always(Destroy, "it moves files, and can replace others")),
    ("rsync", Always(External, "it can replace files, here or elsewhere")), ("cp", Always(Modify, "it can replace files")),
    ("ln", Always(Modify, "it can replace files")), ("install", Always(Modify, "it can replace files")), ("patch", Always(Modify, "it changes files")),
    ("chmod", Always(Modify, "it changes permissions")), ("chown", Always(Modify, "it changes owners")), ("chgrp", Always(Modify, "it changes groups")),
    ("gzip", Always(Destroy, "it replaces files")), ("gunzip", Always(Destroy, "it replaces files")), ("zip", Always(Modify, "it writes an archive")),

    // what reaches others
    ("curl", Special(special::curl)), ("wget", Always(External, "it uses the network")), ("ssh", Always(External, "it acts on another machine")),
    ("scp", Always(External, "it copies between machines")), ("ping", Always(External, "it uses the network")), ("dig", Always(External, "it uses the network")),
    ("nslookup", Always(External, "it uses the network")), ("host", Always(External, "it uses the network")), ("nc", Always(External, "it uses the network")),
    ("kill", Always(External, "it ends processes")), ("pkill", Always(External, "it ends processes")), ("killall", Always(External, "it ends processes")),
    ("osascript", Always(External, "it controls applications")), ("open", Always(External, "it opens applications")),
    ("eval", Always(External, "it runs text as a command")), ("source", Always(External, "it runs a file as commands")),
    (".", Always(External, "it runs a file as commands")), ("exec", Always(External, "it replaces the shell")), ("alias", Always(External, "it redefines commands")),
];

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
            return self.unknown("which program runs is known only when it runs");
        };
        let (folder, base) = name
            .rsplit_once('/')
            .map_or((None, name), |(folder, base)| (Some(folder), base));
        self.ran(base);
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
            Rule::Without(bad) => match offending(args, bad) {
                Offence::None => {}
                Offence::Option(arg) => self.unknown(option(arg)),
                Offence::Hidden => self.unknown(hidden()),
            },
            Rule::WithoutLeading(bad) => {
                // Behind the first word that is no option, everything is data.
                let leading = args
                    .iter()
                    .take_while(|arg| arg.known().starts_with('-') || arg.may_hide_option())
                    .count();
                let checked = args.get(..leading).unwrap_or_default();
                match offending(checked, bad) {
                    Offence::None => {}
                    Offence::Option(arg) => self.unknown(option(arg)),
                    Offence::Hidden => self.unknown(hidden()),
                }
            }
            Rule::Only(good) => {
                if !args
                    .iter()
                    .all(|arg| arg.literal().is_some_and(|text| good.contains(&text)))
                {
                    self.unknown(format!("what `{name}` does with these arguments is not known"));
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
                    self.unknown(format!("what `{name}` does with these arguments is not known"));
                }
            }
            Rule::OneOperand(bad) => {
                let operands = args
                    .iter()
                    .filter(|arg| arg.literal().is_none_or(|text| !text.starts_with('-')))
                    .count();
                let clean = matches!(offending(args, bad), Offence::None) && args.iter().all(Arg::is_single);
                if operands > 1 || !clean {
                    self.unknown(format!("`{name}` may write a file"));
                }
            }
            Rule::Always(effect, reason) => self.raise(*effect, *reason),
            Rule::Special(judge) => judge(self, name, args),
        }
    }

    /// Adds the operands of a program that makes files or folders at them.
    pub(super) fn writes_operands(&mut self, args: &[Arg], made: fn(String) -> WrittenPath) {
        for arg in args {
            match arg.literal() {
                Some("--") => {}
                Some(text) => self.writes.push(made(text.to_owned())),
                None => self.writes.push(WrittenPath::Unknown),
            }
        }
    }
}

/// What speaks against a list of arguments.
pub(super) enum Offence<'a> {
    None,
    Option(&'a str),
    Hidden,
}

/// Looks for options that are not allowed, up to `--`.
pub(super) fn offending<'a>(args: &'a [Arg], bad: &[&str]) -> Offence<'a> {
    for arg in args {
        if arg.may_hide_option() {
            return Offence::Hidden;
        }
        let text = arg.known();
        if text == "--" && arg.literal().is_some() {
            return Offence::None;
        }
        if text.starts_with('-') && bad.iter().any(|option| names(text, option)) {
            return Offence::Option(text);
        }
    }
    Offence::None
}

/// Whether the argument names the option: exactly, as an abbreviation, with a value, or in a cluster of short ones.
fn names(argument: &str, option: &str) -> bool {
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
