//! Programs whose arguments need more than a row (design §9).
//!
//! Owns the judgement of programs that run others, search with actions, write to their operands or fetch. Must not know
//! the shell's syntax.

use artoo_protocol::tool::EffectClass;

use super::programs::{Offence, names, offending, option_among};
use super::words::Arg;
use super::{Walk, WrittenPath, awk, sed as sed_script};

const HIDDEN: &str = "is known only when it runs, and could be an option";

pub(super) fn find(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let start = args
        .first()
        .filter(|arg| !arg.may_hide_option() && !arg.known().starts_with('-'));
    // Pagers take a file that begins with `+` for an option; the search may begin at several.
    let starts = args.iter().take_while(|arg| !arg.known().starts_with(['-', '(', '!']));
    let found = match start {
        _ if starts.into_iter().any(|arg| arg.known().starts_with('+')) => Arg::one(""),
        Some(start) => start.beginning(),
        None => Arg::one("./"),
    };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg.may_hide_option() {
            return walk.runs_anything(format!("an argument of `find` {HIDDEN}"));
        }
        match arg.literal() {
            Some("-delete") => walk.raise(EffectClass::Destroy, "`find -delete` deletes files"),
            Some(word @ ("-exec" | "-execdir")) => {
                // It runs where the file lies, so that relative paths mean others.
                walk.moved |= word == "-execdir";
                match executed(&mut rest, &found) {
                    Some(inner) => walk.argv(&inner),
                    None => {
                        return walk.runs_anything("where the command of `find -exec` ends is known only when it runs");
                    }
                }
            }
            // The files of which these begin the search are named elsewhere, and may be called like options.
            Some(word)
                if word.starts_with("-fprint") || ["-ok", "-okdir", "-fls", "-files0-from", "-f"].contains(&word) =>
            {
                walk.unknown(format!("`find {word}` can do more than read"));
            }
            Some(_) | None => {}
        }
    }
}

/// The words up to `;`, or up to the `+` that follows `{}`: elsewhere it is a word like others. `None` where another word may turn out to
/// end them, or `{}` before a `+`.
fn executed<'a>(rest: &mut impl Iterator<Item = &'a Arg>, found: &Arg) -> Option<Vec<Arg>> {
    let mut inner: Vec<Arg> = Vec::new();
    let mut behind_a_file = false;
    for arg in rest {
        match arg.literal() {
            Some(";") => break,
            Some("+") if behind_a_file => break,
            None if arg.may_be(&[";", "+", "{}"]) => return None,
            Some(_) | None => {}
        }
        behind_a_file = arg.literal() == Some("{}");
        inner.push(if arg.known().contains("{}") {
            placeholder(arg, "{}", found)
        } else {
            arg.clone()
        });
    }
    Some(inner)
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
        } else if text == "--expression"
            // What stands behind the first `e` of a cluster is a script already.
            || (text.find('e') == Some(text.len() - 1) && text.chars().skip(1).all(|c| "nErsuze".contains(c)))
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
            // Of several words one would be the program.
            if rest.next().is_none_or(|value| !value.is_single()) {
                break;
            }
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
    const LONG: &[&str] = &["--list", "--verbose", "--gzip", "--bzip2", "--xz", "--zstd", "--file"];
    let mut lists = false;
    let mut plain = true;
    for (at, arg) in args.iter().enumerate() {
        let Some(text) = arg.literal() else {
            plain = false;
            continue;
        };
        let flags = match text.strip_prefix('-') {
            Some(flags) => Some(flags),
            None if at == 0 => Some(text),
            None => None,
        };
        let short = |flags: &str| !flags.is_empty() && flags.chars().all(|c| "tvzjJf".contains(c));
        let known = LONG.contains(&text) || text.starts_with("--file=") || flags.is_none_or(short);
        lists |= text == "--list" || flags.is_some_and(|flags| short(flags) && flags.contains('t'));
        plain &= known && !text.contains(':');
    }
    if !lists || !plain {
        walk.unknown("`tar` with these arguments can do more than list");
    }
}

/// A compressor that puts out to standard output, or that only tests or lists. The last of several ways counts for most of
/// them, so testing and decompressing together is neither.
pub(super) fn compressor(walk: &mut Walk, _name: &str, args: &[Arg]) {
    const PUTTING_OUT: &[&str] = &["-c", "--stdout", "--to-stdout"];
    const LOOKING: &[&str] = &["-l", "-t", "--list", "--test"];
    const DECOMPRESSING: &[&str] = &["-d", "--decompress", "--uncompress"];
    const FURTHER: &[&str] = &[
        "-k",
        "-v",
        "-q",
        "-f",
        "-n",
        "--keep",
        "--force",
        "--quiet",
        "--verbose",
    ];
    let known = [PUTTING_OUT, LOOKING, DECOMPRESSING, FURTHER].concat();
    let has = |options: &[&str]| {
        let given = args.iter().map(Arg::known).filter(|text| text.starts_with('-'));
        given
            .into_iter()
            .any(|text| options.iter().any(|option| names(text, option)))
    };
    let reads = has(PUTTING_OUT) || (has(LOOKING) && !has(DECOMPRESSING));
    if !reads || !args.iter().all(|arg| option_among(arg, &known)) {
        walk.raise(EffectClass::Destroy, "it replaces files by others");
    }
}

/// `dc -e EXPRESSION`: `!` runs a command in it, `?` reads more of the program.
pub(super) fn dc(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let known = match args {
        [option, expression] => {
            option.literal() == Some("-e") && expression.literal().is_some_and(|text| !text.contains(['!', '?']))
        }
        _ => false,
    };
    if !known {
        walk.unknown("what `dc` runs is not understood");
    }
}

/// `sqlite3 -readonly FILE QUERY` with one query that only selects, or a listing of the shell's own.
pub(super) fn sqlite(walk: &mut Walk, _name: &str, args: &[Arg]) {
    const OPTIONS: &[&str] = &[
        "-readonly",
        "-header",
        "-csv",
        "-json",
        "-column",
        "-line",
        "-list",
        "-batch",
    ];
    const LISTINGS: &[&str] = &[".tables", ".schema", ".databases", ".indexes"];
    const MARKS: &[&str] = &["writefile", "load_extension", "edit", "attach", "fts", "into", "\n."];
    let words: Option<Vec<&str>> = args.iter().map(Arg::literal).collect();
    let reads = words.is_some_and(|words| {
        let (options, operands): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        let query = operands
            .get(1)
            .map(|query| query.trim().trim_end_matches(';').to_lowercase());
        operands.len() == 2
            && options.contains(&"-readonly")
            && options.iter().all(|option| OPTIONS.contains(option))
            && query.is_some_and(|query| {
                LISTINGS.contains(&query.as_str())
                    || ((query.starts_with("select ") || query.starts_with("pragma table_info"))
                        && !query.contains(';')
                        && !MARKS.iter().any(|mark| query.contains(mark)))
            })
    });
    if !reads {
        walk.unknown("what `sqlite3` does with these arguments is not known");
    }
}

/// `ip` that shows; everything else changes the network or needs more than a look.
pub(super) fn ip(walk: &mut Walk, _name: &str, args: &[Arg]) {
    const OBJECTS: &[&str] = &["addr", "address", "a", "route", "r", "link", "l", "neigh", "n", "rule"];
    const SHOWING: &[&str] = &["show", "list", "ls", "get"];
    let options = args
        .iter()
        .take_while(|arg| {
            arg.literal().is_some_and(|text| {
                ["-4", "-6", "-br", "-brief", "-j", "-json", "-s", "-c", "-p", "-o", "-d"].contains(&text)
            })
        })
        .count();
    let mut words = args.iter().skip(options);
    let object = words.next().map(Arg::literal);
    let verb = words.next().map(Arg::literal);
    let shows = match (object, verb) {
        (None, None) => true,
        (Some(Some(object)), None) => OBJECTS.contains(&object),
        (Some(Some(object)), Some(Some(verb))) => {
            OBJECTS.contains(&object) && SHOWING.contains(&verb) && words.all(|arg| arg.literal().is_some())
        }
        _ => false,
    };
    if !shows {
        walk.unknown("`ip` with these arguments can change the network");
    }
}

pub(super) fn mkdir(walk: &mut Walk, _name: &str, args: &[Arg]) {
    operands_written(walk, args, "pv", &["--parents", "--verbose"], WrittenPath::Folder);
}

pub(super) fn touch(walk: &mut Walk, _name: &str, args: &[Arg]) {
    operands_written(walk, args, "amc", &["--no-create"], WrittenPath::File);
}

fn operands_written(walk: &mut Walk, args: &[Arg], short: &str, long: &[&str], made: fn(String) -> WrittenPath) {
    let mut options_ended = false;
    for arg in args {
        match arg.literal() {
            Some("--") if !options_ended => options_ended = true,
            Some(text) if text.starts_with('-') && !options_ended => {
                if !long.contains(&text) && !text.chars().skip(1).all(|c| short.contains(c)) {
                    return walk.unknown(format!("`{text}` is not understood"));
                }
            }
            Some(_) | None => walk.writes.push(arg.path().map_or(WrittenPath::Unknown, made)),
        }
    }
}

pub(super) fn tee(walk: &mut Walk, _name: &str, args: &[Arg]) {
    let mut options_ended = false;
    for arg in args {
        match arg.literal() {
            Some("--") if !options_ended => options_ended = true,
            Some("-a" | "--append" | "-i") if !options_ended => {}
            Some(text) if text.starts_with('-') && text != "-" && !options_ended => {
                return walk.unknown(format!("`tee {text}` is not understood"));
            }
            _ => walk.writes_file(arg),
        }
    }
}

/// `curl` that only gets: it fetches. Anything that could carry data out, or an address known only later, is external.
pub(super) fn curl(walk: &mut Walk, name: &str, args: &[Arg]) {
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
    if matches!(offending(name, args, &[]), Offence::Hidden) {
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
