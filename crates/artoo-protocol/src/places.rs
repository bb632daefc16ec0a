//! The places of a machine, and the many ways to write one path (design §6, §9).
//!
//! Owns when two texts name the same input, by their words alone: `~`, `//`, `.`, `..` and relative paths hide nothing. Does
//! not touch the file system, so a link is another name and not another spelling.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Characters of a text in which paths are looked for, and of one path.
const TEXT_BYTES: usize = 200_000;
const PATH_BYTES: usize = 4_096;

/// Places that paths may mean; each absolute, or empty where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Places {
    /// What `~` stands for.
    pub home: String,
    /// The user's working directory.
    pub cwd: String,
    /// Where new files go that nobody named a place for.
    pub workspace: String,
}

impl Places {
    /// Whether two inputs are the same, whatever they are: a path, a command, a query.
    pub fn is_same(&self, a: &str, b: &str) -> bool {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        if words(a) == words(b) {
            return true;
        }
        let others = self.paths(b);
        self.paths(a).iter().any(|path| others.contains(path))
    }

    /// The paths that a text can mean, absolute where the places are known. A relative one can be in the working directory
    /// and in the workspace.
    pub fn paths(&self, text: &str) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        self.add_paths(text, &mut paths);
        paths
    }

    fn add_paths(&self, text: &str, paths: &mut BTreeSet<String>) {
        let text = text.trim();
        if text.is_empty() || text.len() > PATH_BYTES || text.contains(['\n', '\0']) {
            return;
        }
        if text.starts_with('/') {
            paths.insert(clean("", text));
            return;
        }
        let below_home = text
            .strip_prefix('~')
            .or_else(|| text.strip_prefix("$HOME"))
            .or_else(|| text.strip_prefix("${HOME}"));
        if let Some(rest) = below_home.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            let home = if self.home.is_empty() { "~" } else { &self.home };
            paths.insert(clean(home, rest));
            return;
        }
        let text = text
            .strip_prefix("$PWD/")
            .or_else(|| text.strip_prefix("${PWD}/"))
            .unwrap_or(text);
        let bases = [self.cwd.as_str(), self.workspace.as_str()];
        let known = bases.iter().filter(|base| !base.is_empty());
        paths.extend(known.map(|base| clean(base, text)));
        if bases.iter().all(|base| base.is_empty()) {
            paths.insert(clean(".", text));
        }
    }

    /// Every path that a word of a text or of a command spells out. A word without slash, tilde and dot is taken for a word.
    pub fn paths_in(&self, text: &str) -> BTreeSet<String> {
        let end = (0..=TEXT_BYTES.min(text.len()))
            .rev()
            .find(|&at| text.is_char_boundary(at));
        let text = text.get(..end.unwrap_or(0)).unwrap_or_default();
        let held = words(text);
        // In prose, comments and here-documents a quote may be an apostrophe, which holds nothing together.
        let apart = |c: char| c.is_whitespace() || ";|&<>()`=,'\"".contains(c);
        let both = held.iter().map(String::as_str).chain(text.split(apart));
        let mut spelled: Vec<&str> = both
            .filter(|word| word.contains(['/', '~', '.', '$']))
            .flat_map(|word| [word, word.trim_end_matches([',', '.', ';', ':', '!', '?', ')'])])
            .collect();
        spelled.sort_unstable();
        spelled.dedup();
        let mut paths = BTreeSet::new();
        for word in spelled {
            self.add_paths(word, &mut paths);
        }
        paths
    }
}

/// A path below a base without empty parts, `.` and `..`, by its words alone.
fn clean(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" => {}
            "." if !parts.is_empty() || base != "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "~" | "." | "..")) => {
                parts.pop();
            }
            // From the root there is no way up.
            ".." if parts.is_empty() => {}
            part => parts.push(part),
        }
    }
    let mut path = String::with_capacity(base.len() + path.len() + 2);
    if base.is_empty() || base.starts_with('/') {
        path.push('/');
    }
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            path.push('/');
        }
        path.push_str(part);
    }
    path
}

/// The words of a text as a shell would cut them: quotes and backslashes hold one together, operators end it.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (Some('"') | None, '\\') => word.extend(characters.next()),
            (None, c)
                if c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`' | '=' | ',') =>
            {
                words.push(std::mem::take(&mut word));
            }
            (_, c) => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            home: "/home/me".into(),
            cwd: "/home/me/site".into(),
            workspace: "/home/me/made".into(),
        }
    }

    #[test]
    fn a_path_is_the_same_in_every_spelling() {
        let places = places();
        for other in [
            "/home/me/site/docs/a.md",
            "/home/me//site/docs/a.md",
            "/home/me/./site/docs/a.md/",
            "/home/me/site/docs/../docs/a.md",
            "//home/me/site/docs/a.md",
            "/../home/me/site/docs/a.md",
            "~/site/docs/a.md",
            "~//site/./docs/a.md",
            "$HOME/site/docs/a.md",
            "docs/a.md",
            "./docs//a.md",
            "../site/docs/a.md",
            " docs/a.md/ ",
        ] {
            assert!(places.is_same("docs/a.md", other), "{other}");
            assert!(places.is_same(other, "/home/me/site/docs/a.md"), "{other}");
        }
        for other in [
            "docs/a.mdx",
            "docs",
            "/docs/a.md",
            "~/docs/a.md",
            "a.md",
            "",
            "/home/me/site/docs/a.md\n/x",
        ] {
            assert!(!places.is_same("docs/a.md", other), "{other}");
        }
        assert!(
            places.is_same("a.md", "/home/me/made/a.md"),
            "a bare name may be in the workspace"
        );
        assert!(places.is_same("grep  -c rs\n.", "grep -c rs ."));
        let blind = Places::default();
        assert!(blind.is_same("~/a", "~//a/") && blind.is_same("./a", "a") && !blind.is_same("a", "/a"));
        assert!(!blind.is_same("../a", "a") && !blind.is_same("~/../a", "~/a"));
    }

    #[test]
    fn words_of_a_text_that_spell_a_path_are_found() {
        let places = places();
        for (text, named) in [
            ("cat /data//old", true),
            ("don't; cat /data//old", true),
            ("use the user's notes and look in /data//old", true),
            ("# it's\ncat /data//old", true),
            ("cat '/data/./old' | wc", true),
            ("cat \"/data/x/../old\";ls", true),
            ("x=/data/old; cat $x", true),
            ("cat </data/old", true),
            ("cat /da\\ta/old", true),
            ("Read ../../../data/old.", true),
            ("Look into (/data/old).", true),
            ("Look into /data/old/new", false),
            ("cat /data/older", false),
            ("data old", false),
        ] {
            let found = places
                .paths_in(text)
                .iter()
                .any(|path| places.is_same(path, "/data/old"));
            assert_eq!(found, named, "{text}");
        }
    }
}
