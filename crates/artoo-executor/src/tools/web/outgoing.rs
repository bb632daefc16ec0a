//! What an address or a query would carry away (design §9).
//!
//! Owns the test whether a text that leaves the machine looks like data of this machine: fetching is free only for what looks like an
//! address that anybody could have written. Pure. Must not know how it is sent.

use std::path::Path;

use percent_encoding::percent_decode_str;

use crate::tools::{Mask, Places};

/// Characters of a query (or of what stands behind `?` and `#`) that pass without a question.
const LONGEST_QUERY: usize = 300;
/// Characters of a whole address that pass without a question.
const LONGEST_ADDRESS: usize = 1000;
/// A piece without any break of this length is data and no word.
const OPAQUE: usize = 48;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// Nothing that could not be written by anybody.
    Plain,
    /// Perhaps data of this machine: the person decides.
    Doubtful(&'static str),
    /// A secret: it is not sent at all.
    Secret,
}

/// Looks at the text of a query.
pub(super) fn query(text: &str, places: &Places, mask: &Mask) -> Outgoing {
    look(text, text.chars().count() > LONGEST_QUERY, places, mask)
}

/// Looks at an address.
pub(super) fn address(url: &reqwest::Url, places: &Places, mask: &Mask) -> Outgoing {
    let behind = url.query().map_or(0, str::len) + url.fragment().map_or(0, str::len);
    let long = behind > LONGEST_QUERY || url.as_str().len() > LONGEST_ADDRESS;
    look(url.as_str(), long, places, mask)
}

fn look(text: &str, long: bool, places: &Places, mask: &Mask) -> Outgoing {
    let once = decoded(text);
    let twice = decoded(&once);
    let forms = [text, once.as_str(), twice.as_str()];
    if forms.iter().any(|form| mask.text(form) != **form) {
        return Outgoing::Secret;
    }
    if forms.iter().any(|form| names_a_place(form, places)) {
        return Outgoing::Doubtful("it holds a path of this machine");
    }
    if long {
        return Outgoing::Doubtful("it is so long that it could carry data away");
    }
    if forms
        .iter()
        .any(|form| form.split(|c: char| !is_packed(c)).any(is_opaque))
    {
        return Outgoing::Doubtful("it holds a long text that is no word and could be data");
    }
    Outgoing::Plain
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " "))
        .decode_utf8_lossy()
        .into_owned()
}

fn names_a_place(text: &str, places: &Places) -> bool {
    let folders = [&places.home, &places.cwd, &places.workspace];
    folders
        .into_iter()
        .any(|folder| is_telling(folder) && text.contains(&*folder.to_string_lossy()))
}

/// `/` and `/tmp` stand in many addresses; `/home/someone` in none.
fn is_telling(folder: &Path) -> bool {
    folder.components().count() > 2
}

const fn is_packed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '='
}

const fn is_opaque(piece: &str) -> bool {
    piece.len() >= OPAQUE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_local_data_is_not_sent_unasked() {
        let places = Places {
            home: "/home/someone".into(),
            cwd: "/".into(),
            workspace: "/home/someone/artoo_workspace".into(),
            own: None,
        };
        let mask = Mask::of_environment(&[("MY_TOKEN".into(), "tok en+value/1".into())]);
        let check = |url: &str| address(&reqwest::Url::parse(url).unwrap(), &places, &mask);
        for plain in [
            "https://en.wikipedia.org/wiki/Rust_(programming_language)#History",
            "https://example.org/a-rather-long-title-of-a-page-from-2024-with-very-many-words-in-it-that-goes-on",
            "https://github.com/x/y/commit/0123456789abcdef0123456789abcdef01234567",
            "https://en.wikipedia.org/wiki/List_of_countries_and_dependencies_by_population_density",
            "https://example.org/search?q=how+to+cook+rice&lang=en",
        ] {
            assert_eq!(check(plain), Outgoing::Plain, "{plain}");
        }
        let data = "4a6f686e20446f65".repeat(4);
        for doubtful in [
            format!("https://evil.example/?d={data}"),
            format!("https://evil.example/{data}"),
            format!("https://evil.example/?d={}", "JohnDoe".repeat(7)),
            format!("https://evil.example/{}/x", "kmfzxqwj".repeat(6)),
            format!("https://evil.example/?d={}", "31415926".repeat(6)),
            format!("https://evil.example/?d={}", "word ".repeat(80)),
            "https://evil.example/?d=%2Fhome%2Fsomeone%2Fnotes".to_owned(),
            "https://evil.example/?d=%252Fhome%252Fsomeone%252Fnotes".to_owned(),
        ] {
            assert!(matches!(check(&doubtful), Outgoing::Doubtful(_)), "{doubtful}");
        }
        for secret in [
            "https://x.example/?t=tok+en%2Bvalue%2F1",
            &format!("https://x.example/?k=sk-{}", "a1".repeat(20)),
        ] {
            assert_eq!(check(secret), Outgoing::Secret, "{secret}");
        }
        assert_eq!(query("weather in Paris", &places, &mask), Outgoing::Plain);
        assert_eq!(query("what is tok en+value/1", &places, &mask), Outgoing::Secret);
        assert!(matches!(
            query(&"x ".repeat(400), &places, &mask),
            Outgoing::Doubtful(_)
        ));
    }
}
