//! The programs whose effects are known: one row each (design §9).
//!
//! Owns the table alone; a program that is not here is of the worst class. How rows are read stands in `programs`, what
//! needs code of its own in `special`. `docs/safety.md` is written from it. Must not know the shell's syntax.
//!
//! A row that reads must also work in the sandbox: what asks a system service, looks into other processes or needs a
//! set-uid bit would give a wrong answer there, and is asked about instead.

use artoo_protocol::tool::EffectClass;

use super::words::Arg;
use super::{Walk, builtins, git, special, wrappers};

/// What a program's arguments decide.
pub(super) enum Rule {
    /// A read, whatever its arguments.
    Pure,
    /// A read unless one of these options is given, anywhere. `-x` also stands for clusters with `x`, and `--long` for
    /// its abbreviations.
    Without(&'static [&'static str]),
    /// A read when every argument is one of these, and there is one.
    Only(&'static [&'static str]),
    /// A read when every argument is one of these, or there is none.
    OnlyOrNone(&'static [&'static str]),
    /// A read when the first argument is one of these and no other option follows.
    First(&'static [&'static str]),
    /// A read when the arguments begin with one of these phrases and every further option is one of those beside it.
    Sub(&'static [(&'static str, &'static [&'static str])]),
    /// A read when every option is one of these; `--name=` stands for the option with any value. Of the other words
    /// the second part decides.
    Options(&'static [&'static str], Operands),
    /// A read when one of the first options is there and all others are among the second; else of this class.
    Needs(
        &'static [&'static str],
        &'static [&'static str],
        EffectClass,
        &'static str,
    ),
    /// A read with at most one operand, for programs that write into a second: refused options, and those with a value.
    OneOperand(&'static [&'static str], &'static [&'static str]),
    /// Always of this class.
    Always(EffectClass, &'static str),
    /// Looked at by code of its own; in words, when it is a read.
    Special(fn(&mut Walk, &str, &[Arg]), &'static str),
}

/// Which words that are no options a row takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Every word.
    Any,
    /// No word that begins like an address (`http:`, `ephemeral:`).
    Local,
    /// No word with `=` in it.
    NoAssignment,
    /// The last word is `-`, standard output.
    ToStdout,
}

use EffectClass::{Destroy, External, Modify};
use Operands::{Any, Local, NoAssignment, ToStdout};
use Rule::{Always, First, Needs, OneOperand, Only, OnlyOrNone, Options, Pure, Special, Sub, Without};

const VERSION: &[&str] = &["--version", "-V", "-version", "version"];
const PAGER: &[&str] = &[
    "-R", "-r", "-S", "-N", "-F", "-X", "-n", "-i", "-I", "-E", "-e", "-M", "-m",
];
const COMPRESSOR: &str = "that puts out to standard output, or lists or tests without decompressing; else destroy: it replaces files by others";
const SERVICE: &str = "it asks a system service, which can be told to do anything";
const OTHERS: &str = "it looks into other processes, which the sandbox hides";
const RIGHTS: &str = "it needs rights that the sandbox takes away";

const PIP: &[(&str, &[&str])] = &[
    (
        "list",
        &["--format=", "--local", "--user", "--not-required", "-l", "-v"],
    ),
    ("show", &["-f", "--files"]),
    ("freeze", &["--all", "--local", "--user", "-l"]),
    ("check", &[]),
    ("--version", &[]),
    ("-V", &[]),
];
const NPM: &[(&str, &[&str])] = &[
    (
        "ls",
        &[
            "--depth=", "--depth", "-g", "--global", "--all", "-a", "--json", "--long", "-l", "--omit=",
        ],
    ),
    (
        "list",
        &[
            "--depth=", "--depth", "-g", "--global", "--all", "-a", "--json", "--long", "-l", "--omit=",
        ],
    ),
    ("root", &["-g"]),
    ("prefix", &["-g"]),
    ("--version", &[]),
    ("-v", &[]),
];

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
    ("uniq", OneOperand(&[], &["-f", "-s", "-w"])),
    ("xxd", OneOperand(&["-r", "-revert", "--revert"], &["-l", "-s", "-c", "-g", "-o", "-len", "-cols"])),
    ("file", Without(&["-C", "--compile"])),
    ("tree", Without(&["-o", "-R", "--output"])),
    ("iconv", Without(&["-o", "--output"])),
    ("rg", Without(&["--pre", "--hostname-bin"])),
    ("fd", Without(&["-x", "-X", "--exec", "--exec-batch"])),
    ("fdfind", Without(&["-x", "-X", "--exec", "--exec-batch"])),
    ("find", Special(special::find, "without actions that write or delete; `-exec` counts as what it runs")), ("sed", Special(special::sed, "whose script only prints, without `-i`")), ("awk", Special(special::awk, "whose program neither runs nor writes nor pipes anything")),
    ("gawk", Special(special::awk, "whose program neither runs nor writes nor pipes anything")), ("mawk", Special(special::awk, "whose program neither runs nor writes nor pipes anything")), ("git", Special(git::git, "in its subcommands that only look")),
    ("tar", Special(special::tar, "that lists an archive")),
    ("unzip", First(&["-l", "-v", "-lv", "-t", "-Z", "-Z1", "-p", "-c"])), ("unrar", First(&["l", "lb", "lt", "v", "t"])),
    ("7z", First(&["l", "t"])), ("7za", First(&["l", "t"])), ("7zz", First(&["l", "t"])),
    ("gzip", Special(special::compressor, COMPRESSOR)), ("gunzip", Special(special::compressor, COMPRESSOR)),
    ("bzip2", Special(special::compressor, COMPRESSOR)), ("bunzip2", Special(special::compressor, COMPRESSOR)),
    ("xz", Special(special::compressor, COMPRESSOR)), ("unxz", Special(special::compressor, COMPRESSOR)),
    ("zstd", Special(special::compressor, COMPRESSOR)), ("unzstd", Special(special::compressor, COMPRESSOR)),
    ("zstdcat", Options(&["-q", "-v", "-f"], Any)), ("zgrep", Pure), ("zegrep", Pure), ("zfgrep", Pure), ("bzgrep", Pure), ("xzgrep", Pure),
    ("zcmp", Pure), ("zdiff", Pure), ("less", Options(PAGER, Any)), ("more", Options(&["-d", "-f", "-s", "-u"], Any)),
    ("zless", Options(PAGER, Any)), ("zmore", Options(PAGER, Any)), ("sdiff", Without(&["-o", "--output", "--diff-program"])),
    ("shuf", Without(&["-o", "--output"])), ("bc", Options(&["-l", "-q", "-s", "-w", "--mathlib", "--quiet"], Any)),
    ("dc", Special(special::dc, "with its expression behind `-e`, without `!` and `?`")),
    ("ag", Without(&["--pager"])), ("ack", Without(&["--pager", "--ackrc", "--output"])),
    ("yq", Options(&["-r", "-e", "-o", "-o=", "-P", "-C", "-M", "-p", "-p=", "-j", "-c", "-y"], Any)),
    ("xmllint", Options(&["--xpath", "--noout", "--format", "--nonet", "--html"], Local)),
    ("sqlite3", Special(special::sqlite, "opened `-readonly`, with one query that only selects")),
    ("pdftotext", Options(&["-layout", "-raw", "-nopgbrk", "-q", "-f", "-l", "-enc", "-"], ToStdout)), ("pdfinfo", Pure), ("pdffonts", Pure),
    ("pdfimages", First(&["-list"])), ("mediainfo", Options(&["-f", "--Full", "--Output=JSON"], Local)),
    ("exiftool", Options(&["-s", "-S", "-j", "-n", "-G", "-a", "-u", "-r", "-T", "-q", "-json", "-csv", "-common", "-DateTimeOriginal",
        "-CreateDate", "-Model", "-GPSPosition", "-ImageSize", "-FileType"], Any)),
    ("ffprobe", Options(&["-hide_banner", "-v", "-i", "-of", "-print_format", "-show_format", "-show_streams", "-show_chapters",
        "-show_entries", "-select_streams", "-loglevel", "-count_packets", "-count_frames"], Local)),
    ("identify", Options(&["-verbose", "-ping", "-format", "-quiet"], Local)),
    ("nm", Without(&["--plugin"])), ("readelf", Pure), ("objdump", Pure), ("size", Pure), ("c++filt", Pure),
    ("man", Options(&["-k", "-f", "-w", "-a", "-K", "--whatis", "--apropos", "--where"], Any)), ("whatis", Pure), ("apropos", Pure), ("info", Options(&[], Any)),
    ("ldd", Always(External, "it can run the program that it looks at")),

    // the system, read only
    ("pwd", Pure), ("whoami", Pure), ("id", Pure), ("groups", Pure), ("users", Pure), ("who", Pure), ("w", Pure), ("uname", Pure),
    ("arch", OnlyOrNone(&["--version"])), ("nproc", Pure), ("free", Pure), ("uptime", Pure), ("vmstat", Pure), ("iostat", Pure), ("lscpu", Pure),
    ("lsblk", Pure), ("ps", Pure), ("pgrep", Pure), ("printenv", Pure), ("locale", Pure),
    ("getconf", Pure), ("pstree", Pure), ("pidof", Pure), ("lsusb", Pure), ("lspci", Pure), ("lsmod", Pure), ("findmnt", Pure), ("system_profiler", Pure),
    ("tty", Pure), ("cal", Pure), ("sw_vers", Pure), ("mdls", Pure), ("mdfind", Pure), ("netstat", Without(&["-p", "--programs"])),
    ("which", Pure), ("whereis", Pure), ("last", Pure), ("top", OnlyOrNone(&["-b", "-bn1", "-bn", "-n", "1", "2", "-l", "-o", "%CPU", "%MEM", "cpu", "mem"])),
    ("ss", Without(&["-K", "--kill", "-D", "--diag", "-p", "--processes"])),
    ("dmesg", Without(&["-C", "--clear", "-c", "--read-clear", "-D", "-E", "-n", "--console-on", "--console-off", "--console-level"])),
    ("journalctl", Without(&["--rotate", "--vacuum-size", "--vacuum-time", "--vacuum-files", "--flush", "--sync", "--relinquish-var",
        "--smart-relinquish-var", "--setup-keys", "--update-catalog", "--cursor-file", "--image"])),
    ("getent", First(&["passwd", "group", "services", "protocols"])), ("sysctl", Options(&["-n", "-a", "-N", "-e", "-b"], NoAssignment)),
    ("date", Special(special::date, "that does not set the clock")),
    ("hostname", OnlyOrNone(&["-f", "-s", "-i", "-I", "-d", "--fqdn", "--short"])),
    ("mount", OnlyOrNone(&["-l"])),
    ("ip", Special(special::ip, "that shows addresses, links or routes")),
    ("dpkg", First(&["-l", "-L", "-s", "-S", "--list", "--listfiles", "--status", "--search"])),
    ("dpkg-query", First(&["-l", "-L", "-s", "-S", "-W"])),
    ("brew", First(&["list", "leaves", "--version", "--prefix"])),
    ("apt", Sub(&[("list", &["--installed", "--upgradable", "--all-versions", "-a", "-q"]), ("show", &[]), ("policy", &[]), ("search", &["-n", "--names-only"]), ("depends", &[]), ("--version", &[])])),
    ("apt-cache", Sub(&[("show", &[]), ("policy", &[]), ("search", &["-n", "--names-only"]), ("depends", &[]), ("rdepends", &[]), ("madison", &[]), ("pkgnames", &[]), ("stats", &[])])),
    ("rpm", Needs(&["-q", "--query"], &["-a", "-l", "-i", "-f", "-c", "-d", "-R", "-s", "-p", "--all", "--list", "--info", "--file", "--last", "--requires", "--provides", "--changelog", "--qf", "--queryformat"], External, "it installs and removes packages")),
    ("pacman", Needs(&["-Q"], &["-q", "-s", "-i", "-l", "-e", "-m", "-n", "-t", "-o", "-d"], External, "it installs and removes packages")),
    ("flatpak", Sub(&[("list", &["--app", "--runtime", "--columns="]), ("--version", &[])])),
    ("pip", Sub(PIP)), ("pip3", Sub(PIP)), ("npm", Sub(NPM)), ("pnpm", Sub(NPM)),
    ("cargo", Sub(&[("--version", &[]), ("-V", &[]), ("version", &[]), ("--list", &[]), ("locate-project", &[]), ("help build", &[]), ("help run", &[]), ("help test", &[]), ("help check", &[]), ("help add", &[]), ("help install", &[])])),
    ("rustup", Sub(&[("--version", &[]), ("-V", &[]), ("show", &["-v"]), ("toolchain list", &["-v"]), ("target list", &["--installed"]), ("component list", &["--installed"]), ("which", &[])])),
    ("go", Sub(&[("version", &["-m"]), ("env", &["-json"])])),
    ("kubectl", Sub(&[("version --client", &["-o", "--output="])])), ("docker", Only(&["--version", "-v"])),
    ("openssl", Sub(&[("version", &["-a"]), ("dgst", &["-sha256", "-sha1", "-sha512", "-md5", "-r", "-hex"]),
        ("x509", &["-in", "-noout", "-text", "-dates", "-subject", "-issuer", "-startdate", "-enddate", "-serial", "-fingerprint", "-sha256", "-checkend"])])),
    ("ssh-keygen", Needs(&["-l"], &["-f", "-v", "-E"], External, "it makes and changes keys")),
    ("gpg", Needs(&["--list-keys", "-k", "--version", "--fingerprint"], &["--with-colons", "--keyid-format", "--keyid-format="], External, "it handles keys and secrets")),

    // what only says its version
    ("python", Only(VERSION)), ("python3", Only(VERSION)), ("node", Only(&["--version", "-v"])),
    ("yarn", Only(&["--version", "-v"])), ("rustc", Only(VERSION)), 
    ("java", Only(VERSION)), ("gcc", Only(&["--version"])), ("cc", Only(&["--version"])),
    ("clang", Only(&["--version"])), ("make", Only(&["--version", "-v"])), ("cmake", Only(&["--version"])), ("perl", Only(&["--version", "-v"])),
    ("ruby", Only(&["--version", "-v"])), ("php", Only(&["--version", "-v"])), ("lua", Only(&["-v"])), ("ffmpeg", Only(&["-version"])),

    // builtins and small things
    (":", Pure), ("true", Pure), ("false", Pure), ("echo", Pure), ("seq", Pure), ("sleep", Pure), ("expr", Pure), ("yes", Pure),
    ("exit", Pure), ("return", Pure), ("break", Pure), ("continue", Pure), ("shift", Pure), ("wait", Special(builtins::wait, "with no option but `-n` and `-f`")), ("jobs", Options(&["-l", "-n", "-p", "-r", "-s"], Any)), ("ulimit", Pure), ("history", Options(&[], Any)),
    ("mapfile", Special(builtins::mapfile, "without a callback")), ("readarray", Special(builtins::mapfile, "without a callback")),
    ("export", Special(builtins::export, "of variables that change no program")),
    ("type", Pure), ("printf", Special(builtins::printf, "that sets no variable")), ("test", Special(builtins::test, "a condition")), ("[", Special(builtins::test, "a condition")),
    ("cd", Special(builtins::change_folder, "relative paths that are written count as unknown after it")), ("pushd", Special(builtins::change_folder, "relative paths that are written count as unknown after it")), ("popd", Special(builtins::change_folder, "relative paths that are written count as unknown after it")),
    ("set", Special(builtins::set, "with options that only make the shell stricter")), ("read", Special(builtins::read, "into variables that change no program")),

    // what runs something else
    ("env", Special(wrappers::env, "counts as what it runs; without a program it lists")), ("command", Special(wrappers::command, "counts as what it runs")), ("builtin", Special(wrappers::prefix, "counts as what it runs")),
    ("nohup", Special(wrappers::prefix, "counts as what it runs")), ("nice", Special(wrappers::nice, "counts as what it runs")), ("timeout", Special(wrappers::timeout, "counts as what it runs")),
    ("stdbuf", Special(wrappers::stdbuf, "counts as what it runs")), ("xargs", Special(wrappers::xargs, "counts as what it runs, with arguments that nobody knows")), ("sudo", Special(wrappers::privileged, "never: it gives other rights")),
    ("doas", Special(wrappers::privileged, "never: it gives other rights")), ("sh", Special(wrappers::shell, "counts as the text behind `-c`")), ("bash", Special(wrappers::shell, "counts as the text behind `-c`")), ("dash", Special(wrappers::shell, "counts as the text behind `-c`")),

    // what makes files: judged by their paths
    ("mkdir", Special(special::mkdir, "a write, judged by its paths")), ("touch", Special(special::touch, "a write, judged by its paths")), ("tee", Special(special::tee, "a write, judged by its paths")),

    // what changes or removes things
    ("rm", Always(Destroy, "it deletes files")), ("rmdir", Always(Destroy, "it deletes folders")), ("unlink", Always(Destroy, "it deletes a file")),
    ("shred", Always(Destroy, "it destroys the content of files")), ("truncate", Always(Destroy, "it cuts files")),
    ("dd", Always(Destroy, "it can overwrite files and devices")), ("mv", Always(Destroy, "it moves files, and can replace others")),
    ("rsync", Always(External, "it can replace files, here or elsewhere")), ("cp", Always(Modify, "it can replace files")),
    ("ln", Always(Modify, "it can replace files")), ("install", Always(Modify, "it can replace files")), ("patch", Always(Modify, "it changes files")),
    ("chmod", Always(Modify, "it changes permissions")), ("chown", Always(Modify, "it changes owners")), ("chgrp", Always(Modify, "it changes groups")),
    ("zip", Always(Modify, "it writes an archive")),

    // what reaches others
    ("curl", Special(special::curl, "never: fetching is asked about, sending is worse")), ("wget", Always(External, "it uses the network")), ("ssh", Always(External, "it acts on another machine")),
    ("scp", Always(External, "it copies between machines")), ("ping", Always(External, "it uses the network")), ("dig", Always(External, "it uses the network")),
    ("nslookup", Always(External, "it uses the network")), ("host", Always(External, "it uses the network")), ("nc", Always(External, "it uses the network")),
    ("systemctl", Always(External, SERVICE)), ("loginctl", Always(External, SERVICE)), ("timedatectl", Always(External, SERVICE)), ("hostnamectl", Always(External, SERVICE)),
    ("snap", Always(External, SERVICE)), ("lsof", Always(External, OTHERS)), ("fuser", Always(External, OTHERS)), ("pwdx", Always(External, OTHERS)), ("pmap", Always(External, OTHERS)), ("strace", Always(External, OTHERS)),
    ("crontab", Always(External, RIGHTS)), ("atq", Always(External, RIGHTS)), ("locate", Always(External, RIGHTS)), ("plocate", Always(External, RIGHTS)),
    ("kill", Always(External, "it ends processes")), ("pkill", Always(External, "it ends processes")), ("killall", Always(External, "it ends processes")),
    ("osascript", Always(External, "it controls applications")), ("open", Always(External, "it opens applications")),
    ("eval", Always(External, "it runs text as a command")), ("source", Always(External, "it runs a file as commands")),
    (".", Always(External, "it runs a file as commands")), ("exec", Always(External, "it replaces the shell")), ("alias", Always(External, "it redefines commands")),
];
