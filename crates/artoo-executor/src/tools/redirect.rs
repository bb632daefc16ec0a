//! A search for the user's own files by name, made with `find`, is made with the tool for it (design §8).
//!
//! Owns the test whether a command is nothing but such a search: a folder of the user's, a name, perhaps a kind. Everything else — another
//! test, an action, a pipe, a count — stays what it is, because its result could be another one. Pure.

use std::path::{Path, PathBuf};

/// What is looked for instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameSearch {
    pub under: PathBuf,
    pub name: String,
    pub ignore_case: bool,
    /// `f` or `d`.
    pub kind: Option<char>,
    /// A limit that is not kept: a person's file lies deeper than one thinks.
    pub depth_left_out: Option<String>,
}

/// Reads a command as a search by name under the home folder; `None` for everything else.
pub(super) fn name_search(command: &str, home: &Path) -> Option<NameSearch> {
    let words = words(command)?;
    let mut words = words.iter().map(String::as_str).peekable();
    if words.next()? != "find" {
        return None;
    }
    let under = under_home(words.next()?, home)?;
    let (mut name, mut kind, mut depth) = (None, None, None);
    while let Some(test) = words.next() {
        match test {
            "-name" | "-iname" if name.is_none() => name = Some((words.next()?.to_owned(), test == "-iname")),
            "-type" if kind.is_none() => {
                let wanted = words.next()?;
                kind = Some(wanted.chars().next().filter(|_| matches!(wanted, "f" | "d"))?);
            }
            "-maxdepth" if depth.is_none() => {
                depth = Some(
                    words
                        .next()
                        .filter(|number| number.parse::<u32>().is_ok_and(|n| n > 0))?
                        .to_owned(),
                );
            }
            "-print" | "2>/dev/null" if words.peek().is_none() => {}
            _ => return None,
        }
    }
    let (name, ignore_case) = name?;
    // Braces mean nothing to `find`, and the tool knows no classes of characters.
    if name.contains(['{', '}', '\\']) || name.contains("[:") {
        return None;
    }
    Some(NameSearch {
        under,
        name,
        ignore_case,
        kind,
        depth_left_out: depth,
    })
}

fn under_home(word: &str, home: &Path) -> Option<PathBuf> {
    let rest = ["~", "$HOME", "${HOME}"]
        .iter()
        .find_map(|start| word.strip_prefix(start));
    let path = match rest {
        Some("" | "/") => home.to_owned(),
        Some(rest) => home.join(rest.strip_prefix('/')?),
        None => PathBuf::from(word),
    };
    let plain = !path
        .components()
        .any(|part| matches!(part, std::path::Component::ParentDir));
    (plain && path.starts_with(home)).then_some(path)
}

/// The words of a command that holds nothing but words. What the shell would do something with, unless it stands in single quotes, or as a
/// pattern in double ones, makes it no such command.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut open) = (Vec::new(), None::<String>, None::<char>);
    let command = command.trim();
    let plain = command.strip_suffix("2>/dev/null").map_or(command, str::trim_end);
    for c in plain.chars() {
        match (open, c) {
            (Some(quote), c) if c == quote => open = None,
            // Here the shell would put something else in its place; for the second, look for files of that name before `find` does.
            (Some('"'), '$' | '`' | '\\') | (None, '*' | '?' | '[') => return None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                open = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            // Only the folder may begin with a variable or with the home folder's sign.
            (None, '$' | '~') if word.is_none() && words.len() == 1 => word.get_or_insert_default().push(c),
            (None, '{' | '}') if word.as_deref().is_some_and(|word| word.starts_with('$')) => {
                word.get_or_insert_default().push(c);
            }
            (None, c) if c.is_alphanumeric() || "_./-+,:@%".contains(c) => word.get_or_insert_default().push(c),
            (None, _) => return None,
        }
    }
    words.extend(word);
    open.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pure_search_by_name_is_made_another_way() {
        let home = Path::new("/home/me");
        let found = |command: &str| name_search(command, home);
        let search = |under: &str, name: &str, ignore_case, kind, depth: Option<&str>| {
            Some(NameSearch {
                under: under.into(),
                name: name.into(),
                ignore_case,
                kind,
                depth_left_out: depth.map(str::to_owned),
            })
        };
        for (command, expect) in [
            ("find ~ -name '*.mp4'", search("/home/me", "*.mp4", false, None, None)),
            (
                "find $HOME -type f -iname \"*.pdf\"",
                search("/home/me", "*.pdf", true, Some('f'), None),
            ),
            (
                "find /home/me/Documents -maxdepth 3 -name report.txt 2>/dev/null",
                search("/home/me/Documents", "report.txt", false, None, Some("3")),
            ),
            (
                "find ~/ -type d -name 'my photos' -print",
                search("/home/me", "my photos", false, Some('d'), None),
            ),
        ] {
            assert_eq!(found(command), expect, "{command}");
        }
        for other in [
            "find . -name '*.rs'",
            "find /etc -name '*.conf'",
            "find ~ -name '*.mp4' | wc -l",
            "find ~ -name '*.mp4' -size +100M",
            "find ~ -name '*.mp4' -delete",
            "find ~ -name '*.mp4' -exec ls -l {} +",
            "find ~ -name '*.mp4' -mtime -1",
            "find ~ -name '*.mp4' -o -name '*.mkv'",
            "find ~ -not -name '*.mp4'",
            "find ~ -name *.mp4",
            "find ~ -name \"$X\"",
            "find ~ -name {a,b}",
            "find ~ -name 'a{b,c}.txt'",
            "find ~ -name '[[:digit:]]*'",
            "find ~ -name 'a[x[:digit:]]*'",
            "find ~ -name 'a\\*'",
            "find ~ -name ~",
            "find ~/{a,b} -name x",
            "find ~ -name '*.mp4' > list.txt",
            "find ~ -name '*.mp4'; rm x",
            "find ~ -name '*.mp4' &",
            "find ~ ~/b -name x",
            "find ~/../other -name x",
            "find $HOMER -name x",
            "find ~other -name x",
            "find ~ -maxdepth 0 -name x",
            "find ~ -type l -name x",
            "find ~ -name 'x",
            "find ~",
            "ls ~",
            "",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
