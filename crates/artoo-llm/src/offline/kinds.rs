//! Which files a word means: languages and kinds by their extensions (design §18).
//!
//! Owns the tables. Must not know sentences.

/// Languages and formats: the words for it, and the patterns of its files. `rust files`, `Markdown files`, `py files`.
#[rustfmt::skip]
const KINDS: &[(&[&str], &[&str])] = &[
    (&["rust", "rs"], &["*.rs"]),
    (&["python", "py"], &["*.py"]),
    (&["markdown", "md"], &["*.md"]),
    (&["toml"], &["*.toml"]),
    (&["json"], &["*.json"]),
    (&["jsonl"], &["*.jsonl"]),
    (&["yaml", "yml"], &["*.yaml", "*.yml"]),
    (&["xml"], &["*.xml"]),
    (&["html", "htm"], &["*.html", "*.htm"]),
    (&["css"], &["*.css"]),
    (&["scss"], &["*.scss"]),
    (&["javascript", "js"], &["*.js", "*.mjs", "*.cjs"]),
    (&["jsx"], &["*.jsx"]),
    (&["typescript", "ts"], &["*.ts", "*.tsx"]),
    (&["tsx"], &["*.tsx"]),
    (&["vue"], &["*.vue"]),
    (&["c"], &["*.c", "*.h"]),
    (&["h", "header"], &["*.h", "*.hpp"]),
    (&["c++", "cpp"], &["*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh"]),
    (&["c#", "cs", "csharp"], &["*.cs"]),
    (&["go", "golang"], &["*.go"]),
    (&["java"], &["*.java"]),
    (&["kotlin", "kt"], &["*.kt", "*.kts"]),
    (&["swift"], &["*.swift"]),
    (&["scala"], &["*.scala"]),
    (&["ruby", "rb"], &["*.rb"]),
    (&["php"], &["*.php"]),
    (&["perl", "pl"], &["*.pl", "*.pm"]),
    (&["lua"], &["*.lua"]),
    (&["haskell", "hs"], &["*.hs"]),
    (&["elixir"], &["*.ex", "*.exs"]),
    (&["erlang", "erl"], &["*.erl"]),
    (&["zig"], &["*.zig"]),
    (&["nix"], &["*.nix"]),
    (&["sql"], &["*.sql"]),
    (&["proto", "protobuf"], &["*.proto"]),
    (&["shell", "bash", "sh"], &["*.sh"]),
    (&["latex", "tex"], &["*.tex"]),
    (&["text", "txt"], &["*.txt"]),
    (&["csv"], &["*.csv"]),
    (&["log", "logs"], &["*.log"]),
    (&["lock"], &["*.lock"]),
    (&["pdf", "pdfs"], &["*.pdf", "*.PDF"]),
    (&["ini"], &["*.ini"]),
    (&["snap", "snapshot"], &["*.snap"]),
    (&["image", "images", "picture", "pictures", "photo", "photos"],
     &["*.jpg", "*.jpeg", "*.png", "*.gif", "*.webp", "*.svg", "*.heic", "*.JPG", "*.JPEG", "*.PNG", "*.GIF", "*.HEIC"]),
    (&["video", "videos", "movie", "movies"], &["*.mp4", "*.mkv", "*.mov", "*.avi", "*.webm", "*.MP4", "*.MKV", "*.MOV", "*.AVI"]),
    (&["audio", "music", "song", "songs"], &["*.mp3", "*.flac", "*.wav", "*.ogg", "*.m4a", "*.MP3", "*.FLAC", "*.WAV"]),
    (&["zip"], &["*.zip"]),
    (&["archive", "archives"], &["*.zip", "*.tar", "*.tar.gz", "*.tgz", "*.tar.xz", "*.7z"]),
    (&["jpg", "jpeg"], &["*.jpg", "*.jpeg", "*.JPG", "*.JPEG"]),
    (&["png"], &["*.png", "*.PNG"]),
];

/// Words that mean files of a kind by themselves: `find all photos`.
const NOUNS: &[&str] = &[
    "images", "pictures", "photos", "videos", "movies", "songs", "pdfs", "logs", "archives",
];

/// The patterns that a bare word means; `None` when it names no kind of file.
pub(super) fn patterns(word: &str) -> Option<Vec<String>> {
    let lower = word.to_lowercase();
    if let Some((_, patterns)) = KINDS.iter().find(|(words, _)| words.contains(&lower.as_str())) {
        return Some(patterns.iter().map(|&pattern| pattern.to_owned()).collect());
    }
    if word.contains('/') {
        return None;
    }
    if word.contains(['*', '?']) {
        return Some(vec![word.to_owned()]);
    }
    match word.strip_prefix('.') {
        Some(extension) if !extension.is_empty() && extension.chars().all(char::is_alphanumeric) => {
            Some(vec![format!("*{word}")])
        }
        // A whole name: `Cargo.toml files`.
        None if word.contains('.') && !word.ends_with('.') => Some(vec![word.to_owned()]),
        Some(_) | None => None,
    }
}

/// The patterns of a word that needs no `files` behind it.
pub(super) fn noun(word: &str) -> Option<Vec<String>> {
    let lower = word.to_lowercase();
    if NOUNS.contains(&lower.as_str()) || word.contains('*') {
        patterns(word)
    } else {
        None
    }
}

/// The pattern of names that end so: `.rs`, `rs`, `_test.go`.
pub(super) fn ending(suffix: &str) -> String {
    if suffix.contains('*') {
        suffix.to_owned()
    } else if suffix.chars().all(char::is_alphanumeric) {
        format!("*.{suffix}")
    } else {
        format!("*{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_files() {
        let check = |word: &str, expected: &[&str]| {
            assert_eq!(patterns(word).unwrap_or_default(), expected, "{word}");
        };
        check("Rust", &["*.rs"]);
        check(".rs", &["*.rs"]);
        check("*.rs", &["*.rs"]);
        check("yml", &["*.yaml", "*.yml"]);
        check("Cargo.toml", &["Cargo.toml"]);
        check("nice", &[]);
        check("src/a.rs", &[]);
        check("...", &[]);
        assert_eq!(noun("photos").unwrap().first().unwrap(), "*.jpg");
        assert_eq!(noun("rust"), None);
        assert_eq!(
            (ending("rs"), ending(".rs"), ending("_test.go")),
            ("*.rs".into(), "*.rs".into(), "*_test.go".into())
        );
    }

    #[test]
    fn a_word_stands_for_one_kind() {
        let mut words: Vec<&str> = KINDS.iter().flat_map(|(words, _)| words.iter().copied()).collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
    }
}
