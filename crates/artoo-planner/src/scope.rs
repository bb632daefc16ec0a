//! Where a task may create and change, and whether a plan stays within it (design §6, §9).
//!
//! Owns the comparison of paths by their words alone; R3's gate looks at the real ones. Must not touch the file system.

use std::fmt;

pub use artoo_protocol::places::Places;

/// What the user allowed, and where the machine's places are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    stated: Vec<String>,
    places: Places,
}

impl Allowed {
    /// The paths that the user stated or the caller gave, beside the workspace.
    pub fn new(stated: Vec<String>, places: Places) -> Self {
        // An empty path would stand for the whole working directory.
        let stated = stated.into_iter().filter(|path| !path.trim().is_empty()).collect();
        Self { stated, places }
    }

    /// The paths, as they were stated.
    pub fn stated(&self) -> &[String] {
        &self.stated
    }

    /// The places that paths of a plan may mean.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Whether a path lies within what was allowed.
    pub fn covers(&self, path: &str) -> bool {
        let path = self.parts(path);
        let workspace = (!self.places.workspace.is_empty()).then_some(&self.places.workspace);
        self.stated
            .iter()
            .chain(workspace)
            .any(|allowed| path.starts_with(&self.parts(allowed)))
    }

    /// A path as its parts from the root, without `.` and `..`; what cannot be placed keeps its first part (`~`).
    fn parts(&self, path: &str) -> Vec<String> {
        let path = path.trim();
        let below_home = path
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let joined = match below_home {
            Some(rest) if !self.places.home.is_empty() => format!("{}{rest}", self.places.home),
            Some(_) => path.to_owned(),
            None if path.starts_with('/') => path.to_owned(),
            None => format!("{}/{path}", self.places.cwd),
        };
        let mut parts: Vec<String> = Vec::new();
        if below_home.is_none() && !path.starts_with('/') && self.places.cwd.is_empty() {
            // Nobody knows where this is, so it is nowhere below the root.
            parts.push(".".to_owned());
        }
        for part in joined.split('/') {
            match part {
                "" | "." => {}
                // From the root there is no way up; a way out of `~` or of an unknown folder is no way into anything.
                ".." => {
                    if parts.pop().is_none_or(|last| last == "~" || last == ".") {
                        parts = vec!["..".to_owned()];
                    }
                }
                part => parts.push(part.to_owned()),
            }
        }
        parts
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stated.is_empty() {
            f.write_str("only the workspace")
        } else {
            write!(f, "{} and the workspace", self.stated.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_within_the_scope_or_leaves_it() {
        let places = Places {
            home: "/home/me".into(),
            cwd: "/home/me/site".into(),
            workspace: "/home/me/made".into(),
        };
        let allowed = Allowed::new(vec!["~/src".into(), "docs/".into(), "/srv/data".into()], places);
        for (path, covered) in [
            ("/home/me/src", true),
            ("~/src/../src/a", true),
            ("~/src/../secret", false),
            ("~/srcs", false),
            ("~", false),
            ("docs/a.md", true),
            ("./docs", true),
            ("/home/me/site/docs/x", true),
            ("../docs", false),
            ("/srv", false),
            ("/srv/data/deep/er", true),
            ("/srv/data/../..", false),
            ("/home/me/made/a.txt", true),
            ("/", false),
            ("", false),
        ] {
            assert_eq!(allowed.covers(path), covered, "{path}");
        }
        let blind = Allowed::new(vec!["~/src".into()], Places::default());
        assert!(blind.covers("~/src/a") && !blind.covers("~/../src") && !blind.covers("/src"));
        assert!(!Allowed::default().covers("/") && !Allowed::default().covers("a"));
        let unplaced = Allowed::new(vec!["docs".into(), " ".into()], Places::default());
        assert!(unplaced.covers("docs/a") && !unplaced.covers("/docs/a") && !unplaced.covers("../docs/a"));
        assert!(!unplaced.covers("a") && !unplaced.covers("~/docs"));
    }
}
