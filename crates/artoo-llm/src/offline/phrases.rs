//! The phrases that sentences are made of: places, files, texts, numbers, results (design §18).
//!
//! Owns the words of each phrase. Must not know forms or meanings: a phrase says how many tokens it takes, and what it names.

use super::kinds;
use super::step::{FileSet, Sort, Unit};
use super::words::Token;

/// Words that are no names: a bare name that is one of them has to stand in quotes.
#[rustfmt::skip]
const NO_NAMES: &[&str] = &[
    "a", "all", "an", "and", "any", "are", "at", "by", "contents", "containing", "count", "directory",
    "duplicate", "duplicates", "each", "every", "everything", "file", "files", "folder", "folders", "for",
    "from", "here", "how", "in", "inside", "is", "it", "largest", "lines", "list", "me", "my", "named",
    "number", "of", "or", "result", "that", "the", "them", "then", "there", "these", "this", "those", "to",
    "under", "what", "where", "which", "with", "words",
];

#[rustfmt::skip]
const PREPOSITIONS: &[&str] = &[
    "in", "under", "inside", "within", "below", "beneath", "from", "of", "at", "across", "through",
    "throughout", "on", "into",
];
const FOLDER_WORDS: &[&str] = &["folder", "directory", "dir", "path", "subfolder", "subdirectory"];
#[rustfmt::skip]
const HERE_WORDS: &[&str] = &[
    "folder", "directory", "dir", "repo", "repository", "project", "workspace", "place", "codebase", "tree",
    "checkout",
];
const DETERMINERS: &[&str] = &["all", "the", "of", "every", "each", "any", "my", "single"];
#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];
#[rustfmt::skip]
const RESULT_WORDS: &[&str] = &[
    "result", "results", "number", "numbers", "count", "counts", "total", "output", "answer", "list", "sum",
    "size", "sizes", "path", "paths", "name", "names", "content", "contents", "findings", "matches",
    "duplicates", "listing", "figure", "value",
];

/// How many tokens each fitting alternative takes.
pub(super) fn words<'a>(alternatives: &'a str, tokens: &'a [Token]) -> impl Iterator<Item = usize> + 'a {
    alternatives.split('|').filter_map(move |words| {
        let taken = words.split('_').count();
        let fits = tokens.len() >= taken && words.split('_').zip(tokens).all(|(word, token)| token.is(word));
        fits.then_some(taken)
    })
}

fn skip_words(tokens: &[Token], known: &[&str]) -> usize {
    tokens.iter().take_while(|token| is_one(token, known)).count()
}

fn is_one(token: &Token, known: &[&str]) -> bool {
    known.iter().any(|word| token.is(word))
}

fn at(tokens: &[Token], position: usize) -> Option<&Token> {
    tokens.get(position)
}

/// A bare name, or anything in quotes.
fn name(token: Option<&Token>) -> Option<String> {
    match token? {
        Token::Quoted(text) if !text.trim().is_empty() && !text.contains(['\0', '\n', '\r']) => Some(text.clone()),
        token @ Token::Word(text) if !is_one(token, NO_NAMES) && !text.contains(['*', '?', '"']) => Some(text.clone()),
        Token::Word(_) | Token::Quoted(_) | Token::Stop => None,
    }
}

/// `crates`, `the folder crates`, `the crates folder`, `this folder`, `my home folder`.
pub(super) fn place(tokens: &[Token]) -> Vec<(usize, String)> {
    let mut ways = Vec::new();
    let the = skip_words(tokens, &["the", "my", "this", "our"]);
    let current = skip_words(
        tokens.get(the..).unwrap_or_default(),
        &["current", "working", "present", "whole", "entire"],
    );
    let next = the + current;
    let token = at(tokens, next);
    if token.is_some_and(|token| token.is("here")) {
        ways.push((next + 1, ".".to_owned()));
    }
    if next > 0 && token.is_some_and(|token| token.is("home")) {
        let more = skip_words(tokens.get(next + 1..).unwrap_or_default(), FOLDER_WORDS).min(1);
        ways.push((next + 1 + more, "~".to_owned()));
    }
    let folder = token.is_some_and(|token| is_one(token, FOLDER_WORDS));
    if folder && let Some(name) = name(at(tokens, next + 1)) {
        ways.push((next + 2, name));
    }
    if let Some(name) = name(token) {
        if at(tokens, next + 1).is_some_and(|after| is_one(after, FOLDER_WORDS)) {
            ways.push((next + 2, name.clone()));
        }
        ways.push((next + 1, name));
    }
    // Behind the names, because `the project` could be a folder of that name only with its name in quotes.
    if next > 0 && token.is_some_and(|token| is_one(token, HERE_WORDS)) {
        ways.insert(0, (next + 1, ".".to_owned()));
    }
    ways
}

/// A place with its preposition.
pub(super) fn location(tokens: &[Token]) -> Vec<(usize, String)> {
    if at(tokens, 0).is_some_and(|token| token.is("here")) {
        return vec![(1, ".".to_owned())];
    }
    let prepositions = skip_words(tokens, PREPOSITIONS);
    if prepositions == 0 || prepositions > 2 {
        return Vec::new();
    }
    let rest = tokens.get(prepositions..).unwrap_or_default();
    place(rest)
        .into_iter()
        .map(|(taken, name)| (prepositions + taken, name))
        .collect()
}

/// `README.md`, `the file notes`, `a new file called notes.txt`.
pub(super) fn file(tokens: &[Token]) -> Option<(usize, String)> {
    let the = skip_words(tokens, &["the", "a", "my", "new"]);
    let word = skip_words(tokens.get(the..)?, &["file", "textfile"]).min(1);
    let called = skip_words(tokens.get(the + word..)?, &["called", "named"]).min(word);
    let taken = the + word + called;
    let name = name(at(tokens, taken))?;
    // `the Cargo.toml file`.
    let behind = usize::from(word == 0 && at(tokens, taken + 1).is_some_and(|token| token.is("file")));
    Some((taken + 1 + behind, name))
}

/// Whether a name is more likely a file's than a folder's.
pub(super) fn looks_like_file(name: &str) -> bool {
    let known = [
        "README",
        "LICENSE",
        "LICENCE",
        "Makefile",
        "Dockerfile",
        "CHANGELOG",
        "justfile",
        "Justfile",
    ];
    let base = name.rsplit('/').next().unwrap_or(name);
    let extension = base.rsplit_once('.').map(|(_, extension)| extension);
    let dotted =
        extension.is_some_and(|extension| !extension.is_empty() && extension.chars().all(char::is_alphanumeric));
    dotted || known.contains(&base)
}

pub(super) fn is_quoted(tokens: &[Token]) -> bool {
    matches!(at(tokens, 0), Some(Token::Quoted(_)))
}

/// Text in quotes, or one bare word behind `the word`; with `bare`, one bare word by itself.
pub(super) fn text(tokens: &[Token], bare: bool) -> Option<(usize, String)> {
    let the = skip_words(tokens, &["the", "a"]).min(1);
    let noun = skip_words(
        tokens.get(the..)?,
        &["text", "word", "string", "phrase", "term", "line", "pattern"],
    )
    .min(1);
    let skipped = if noun == 0 { 0 } else { the + 1 };
    let token = at(tokens, skipped)?;
    let usable = |text: &&String| !text.is_empty() && !text.contains(['\0', '\n', '\r']);
    let text = match token {
        Token::Quoted(text) => Some(text),
        Token::Word(text) if (bare || noun > 0) && !is_one(token, NO_NAMES) => Some(text),
        Token::Word(_) | Token::Stop => None,
    };
    text.filter(usable).map(|text| (skipped + 1, text.clone()))
}

pub(super) fn unit(tokens: &[Token]) -> Option<(usize, Unit)> {
    let skipped = skip_words(tokens, &["all", "the", "of", "total"]);
    let token = at(tokens, skipped)?;
    let unit = if is_one(token, &["lines", "line"]) {
        Unit::Lines
    } else if is_one(token, &["words", "word"]) {
        Unit::Words
    } else {
        return None;
    };
    Some((skipped + 1, unit))
}

pub(super) fn number(tokens: &[Token]) -> Option<u32> {
    let Token::Word(word) = at(tokens, 0)? else { return None };
    let lower = word.to_lowercase();
    let spelled = NUMBERS
        .iter()
        .position(|known| *known == lower)
        .and_then(|n| u32::try_from(n).ok());
    spelled
        .or_else(|| lower.parse().ok())
        .filter(|n| (1..=10_000).contains(n))
}

/// `it`, `that`, `the number`, `the list of files`, `its output`.
pub(super) fn result(tokens: &[Token]) -> Option<usize> {
    if at(tokens, 0).is_some_and(|token| is_one(token, &["it", "this", "that", "them", "these", "those"])) {
        let noun = at(tokens, 1).is_some_and(|token| is_one(token, RESULT_WORDS));
        return Some(1 + usize::from(noun));
    }
    let the = skip_words(tokens, &["the", "its", "their", "this", "that"]);
    let adjective = skip_words(
        tokens.get(the..)?,
        &["resulting", "found", "final", "whole", "previous"],
    );
    let noun = the + adjective;
    at(tokens, noun).filter(|token| is_one(token, RESULT_WORDS))?;
    let of = tokens.get(noun + 1..)?;
    let things = [
        "files",
        "lines",
        "words",
        "matches",
        "folders",
        "results",
        "occurrences",
        "duplicates",
    ];
    let tail = match (at(of, 0), at(of, 1)) {
        (Some(of), Some(thing)) if of.is("of") && is_one(thing, &things) => 2,
        _ => 0,
    };
    Some(noun + 1 + tail)
}

/// `Rust code`, `Rust`, `Python source code`.
pub(super) fn code(tokens: &[Token]) -> Option<(usize, FileSet)> {
    let Token::Word(word) = at(tokens, 0)? else { return None };
    let patterns = kinds::patterns(word)?;
    let more = skip_words(tokens.get(1..)?, &["source", "code"]);
    let sort = Sort::Files;
    Some((1 + more, FileSet { sort, patterns }))
}

/// `files`, `all the Rust files`, `*.c or *.h files`, `files ending in .rs`, `folders named x`, `photos`; the longest first.
pub(super) fn files(tokens: &[Token]) -> Vec<(usize, FileSet, bool)> {
    let start = skip_words(tokens, DETERMINERS);
    let rest = tokens.get(start..).unwrap_or_default();
    let mut ways = Vec::new();
    if let Some((taken, sort, single)) = sort_word(rest) {
        if let Some((more, patterns)) = qualifier(rest.get(taken..).unwrap_or_default()) {
            ways.push((start + taken + more, FileSet { sort, patterns }, single));
        }
        let patterns = Vec::new();
        ways.push((start + taken, FileSet { sort, patterns }, single));
    } else if let Some((taken, patterns, alone)) = kind_list(rest) {
        let sort = Sort::Files;
        let more = skip_words(rest.get(taken..).unwrap_or_default(), &["source", "code", "script"]);
        let after = rest.get(taken + more..).unwrap_or_default();
        match at(after, 0) {
            Some(word) if is_one(word, &["files", "sources", "scripts", "modules", "documents"]) => {
                ways.push((start + taken + more + 1, FileSet { sort, patterns }, false));
            }
            Some(word) if is_one(word, &["file", "script", "module", "document"]) => {
                ways.push((start + taken + more + 1, FileSet { sort, patterns }, true));
            }
            _ if alone => ways.push((start + taken, FileSet { sort, patterns }, false)),
            _ => {}
        }
    }
    ways
}

fn sort_word(tokens: &[Token]) -> Option<(usize, Sort, bool)> {
    let token = at(tokens, 0)?;
    #[rustfmt::skip]
    let table: [(&[&str], Sort, bool); 4] = [
        (&["files"], Sort::Files, false),
        (&["file"], Sort::Files, true),
        (&["folders", "directories", "subfolders", "subdirectories", "dirs"], Sort::Folders, false),
        (&["folder", "directory", "subfolder", "subdirectory"], Sort::Folders, true),
    ];
    let found = table.into_iter().find(|(words, _, _)| is_one(token, words));
    found.map(|(_, sort, single)| (1, sort, single))
}

/// Kinds joined by `or`, `and` or commas; and whether they need no `files` behind them.
fn kind_list(tokens: &[Token]) -> Option<(usize, Vec<String>, bool)> {
    let mut taken = 0;
    let mut patterns: Vec<String> = Vec::new();
    let mut alone = true;
    loop {
        let rest = tokens.get(taken..)?;
        let joined = if taken == 0 { 0 } else { skip_joins(rest) };
        let Some((more, noun)) = kind(rest.get(joined..)?).filter(|_| taken == 0 || joined > 0) else {
            break;
        };
        for pattern in more {
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        alone &= noun;
        taken += joined + 1;
    }
    (taken > 0).then_some((taken, patterns, alone))
}

fn skip_joins(tokens: &[Token]) -> usize {
    tokens
        .iter()
        .take_while(|token| **token == Token::Stop || is_one(token, &["or", "and"]))
        .count()
        .min(2)
}

fn kind(tokens: &[Token]) -> Option<(Vec<String>, bool)> {
    match at(tokens, 0)? {
        // Text in quotes is the pattern itself, and needs `files` behind it unless it is one like `*.rs`.
        Token::Quoted(text) => Some((vec![pattern(text)?], text.starts_with("*."))),
        Token::Word(word) => match kinds::noun(word) {
            Some(patterns) => Some((patterns, true)),
            None => kinds::patterns(word).map(|patterns| (patterns, false)),
        },
        Token::Stop => None,
    }
}

/// A pattern of one name: patterns of paths mean something else to the tools.
fn pattern(text: &str) -> Option<String> {
    let usable = !text.trim().is_empty() && !text.contains(['/', '\0', '\n', '\r']);
    usable.then(|| text.to_owned())
}

/// What leads a qualifier, and the pattern that the name behind it stands for.
type Qualifier = (&'static [&'static str], fn(&str) -> String);

/// `named x`, `ending in .rs`, `with the extension rs`, `of type rs`, `whose name contains x`.
fn qualifier(tokens: &[Token]) -> Option<(usize, Vec<String>)> {
    let table: [Qualifier; 4] = [
        (
            &[
                "named",
                "called",
                "matching",
                "with_the_name",
                "that_match",
                "that_are_named",
                "that_are_called",
                "matching_the_pattern",
            ],
            str::to_owned,
        ),
        (
            &[
                "ending_in",
                "ending_with",
                "that_end_in",
                "that_end_with",
                "which_end_in",
                "which_end_with",
                "ending",
            ],
            kinds::ending,
        ),
        (
            &[
                "with_extension",
                "with_the_extension",
                "with_an_extension_of",
                "with_suffix",
                "with_the_suffix",
                "of_type",
                "of_the_type",
            ],
            |text| {
                kinds::patterns(text)
                    .and_then(|found| found.into_iter().next())
                    .unwrap_or_else(|| kinds::ending(text))
            },
        ),
        (
            &["whose_name_contains", "whose_names_contain", "with_names_containing"],
            |text| format!("*{text}*"),
        ),
    ];
    table.into_iter().find_map(|(leads, make)| {
        let lead = leads.iter().filter_map(|lead| words(lead, tokens).next()).max()?;
        let mut taken = lead;
        let mut patterns = Vec::new();
        loop {
            let joined = usize::from(!patterns.is_empty());
            if joined == 1 && !at(tokens, taken).is_some_and(|token| token.is("or")) {
                break;
            }
            let Some(text) = at(tokens, taken + joined).and_then(Token::text).and_then(pattern) else {
                break;
            };
            patterns.push(make(&text));
            taken += joined + 1;
        }
        (!patterns.is_empty()).then_some((taken, patterns))
    })
}
