//! The confinement as a seatbelt profile, for macOS (design §9).
//!
//! Owns the profile's text and its quoting. It is tested as text only: nobody has run it on a Mac yet. Must not start
//! anything.

use std::fmt::Write;
use std::path::Path;

use super::{Allows, Confinement};

/// The program that applies a profile.
pub const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The profile of a confinement; `None` when nothing is to be held back.
///
/// `scratch` is a folder that may be written to in any case. A path that is no UTF-8 is left out, so that it stays closed.
pub fn profile(confinement: &Confinement, scratch: &Path) -> Option<String> {
    let places = match confinement {
        Confinement::Allowed => return None,
        Confinement::Read => &[][..],
        Confinement::Write(places) => places,
    };
    let mut text = String::from(
        "(version 1)\n(allow default)\n(deny network*)\n(deny signal (target others))\n(deny process-info* (target others))\n\
         (deny appleevent-send)\n(deny lsopen)\n(deny file-write*)\n\
         (allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))\n",
    );
    let mut allow = |what: &str, path: &Path| {
        if let Some(path) = path.to_str() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "(allow {what} (subpath {}))", quoted(path));
        }
    };
    allow("file-write*", scratch);
    let mut folders = String::new();
    for place in places {
        match place.allows {
            Allows::Folders => {
                if let Some(path) = place.path.to_str() {
                    let which = format!("(require-all (vnode-type DIRECTORY) (subpath {}))", quoted(path));
                    let _ = writeln!(folders, "(allow file-write-create {which})");
                }
            }
            Allows::Making => allow("file-write-create file-write-data", &place.path),
            Allows::Changing => allow(
                "file-write-create file-write-data file-write-mode file-write-times",
                &place.path,
            ),
        }
    }
    Some(text + &folders)
}

fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::super::Writable;
    use super::*;

    #[test]
    fn a_read_may_write_to_its_scratch_folder_and_nowhere_else() {
        let text = profile(&Confinement::Read, Path::new("/tmp/s")).unwrap();
        assert!(text.starts_with("(version 1)\n(allow default)\n(deny network*)\n"));
        assert!(text.contains("(deny file-write*)"));
        let writes: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("(allow file-write"))
            .collect();
        assert_eq!(
            writes,
            [
                "(allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))",
                "(allow file-write* (subpath \"/tmp/s\"))"
            ]
        );
        assert!(
            text.find("(deny file-write*)") < text.find("(allow file-write* "),
            "the last rule that fits counts"
        );
    }

    #[test]
    fn places_are_opened_for_what_they_allow_and_quoting_holds() {
        let places = vec![
            Writable {
                path: "/w \"a\"\\b".into(),
                allows: Allows::Making,
            },
            Writable {
                path: "/own".into(),
                allows: Allows::Changing,
            },
            Writable {
                path: "/f".into(),
                allows: Allows::Folders,
            },
        ];
        let text = profile(&Confinement::Write(places), Path::new("/tmp/s")).unwrap();
        assert!(text.contains("(allow file-write-create file-write-data (subpath \"/w \\\"a\\\"\\\\b\"))"));
        assert!(text.contains("file-write-times (subpath \"/own\"))"));
        assert!(text.ends_with("(allow file-write-create (require-all (vnode-type DIRECTORY) (subpath \"/f\")))\n"));
        assert!(!text.contains("unlink"), "nothing may be removed");
        assert_eq!(profile(&Confinement::Allowed, Path::new("/tmp/s")), None);
    }
}
