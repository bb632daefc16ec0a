//! Criteria and checks in one spelling, in which a repetition shows (design §6, §14).
//!
//! Owns when two of them are the same for everybody: the planner, who keeps what was denied, and the controller, who names what was
//! dropped, must not differ about it.

use super::validate::{Check, Criterion};
use crate::text::one_line;

impl Criterion {
    /// Its words in one spelling: case, spacing and a full stop make no difference.
    pub fn words(&self) -> String {
        let words = one_line(&self.criterion, usize::MAX).to_lowercase();
        words.trim_end_matches(['.', '。']).trim_end().to_owned()
    }
}

impl Check {
    /// The check in one spelling of its path, its digest and the white space at its ends: two checks are the same when these are.
    #[must_use]
    pub fn plain(&self) -> Self {
        let trimmed = |text: &str| text.trim().to_owned();
        match self.clone() {
            Self::FileExists { path } => Self::FileExists {
                path: plain_path(&path),
            },
            Self::FileAbsent { path } => Self::FileAbsent {
                path: plain_path(&path),
            },
            Self::FileContains { path, pattern } => Self::FileContains {
                path: plain_path(&path),
                pattern,
            },
            Self::OutputEquals { value } => Self::OutputEquals { value: trimmed(&value) },
            Self::JsonPath { path, pointer, equals } => Self::JsonPath {
                path: path.as_deref().map(plain_path),
                pointer,
                equals,
            },
            Self::Count {
                of,
                path,
                pattern,
                op,
                value,
            } => Self::Count {
                of,
                path: path.as_deref().map(plain_path),
                pattern,
                op,
                value,
            },
            Self::Sha256 { path, equals } => Self::Sha256 {
                path: plain_path(&path),
                equals: trimmed(&equals).to_lowercase(),
            },
            Self::CommandSucceeds { command } => Self::CommandSucceeds {
                command: trimmed(&command),
            },
            same @ (Self::ExitCode { .. } | Self::OutputMatches { .. }) => same,
        }
    }
}

/// A path without `./` in front and `/` behind.
fn plain_path(path: &str) -> String {
    let mut path = path.trim();
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    match path.trim_end_matches('/') {
        "" => path.to_owned(),
        bare => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn spelling_makes_no_difference_and_everything_else_does() {
        let check = |value: &Value| serde_json::from_value::<Check>(value.clone()).unwrap().plain();
        let (upper, lower) = ("AB".repeat(32), "ab".repeat(32));
        for (one, other, same) in [
            (
                json!({"kind": "file_exists", "path": "./a/"}),
                json!({"kind": "file_exists", "path": " a"}),
                true,
            ),
            (
                json!({"kind": "file_exists", "path": "/"}),
                json!({"kind": "file_exists", "path": ""}),
                false,
            ),
            (
                json!({"kind": "file_exists", "path": "../a"}),
                json!({"kind": "file_exists", "path": "a"}),
                false,
            ),
            (
                json!({"kind": "file_exists", "path": "a"}),
                json!({"kind": "file_absent", "path": "a"}),
                false,
            ),
            (
                json!({"kind": "sha256", "path": "a", "equals": upper}),
                json!({"kind": "sha256", "path": ".//a", "equals": lower}),
                true,
            ),
            (
                json!({"kind": "output_equals", "value": "42\n"}),
                json!({"kind": "output_equals", "value": "42"}),
                true,
            ),
            (
                json!({"kind": "output_matches", "pattern": " a"}),
                json!({"kind": "output_matches", "pattern": "a"}),
                false,
            ),
            (
                json!({"kind": "command_succeeds", "command": "test -f a "}),
                json!({"kind": "command_succeeds", "command": "test -f a"}),
                true,
            ),
            (
                json!({"kind": "count", "of": "lines", "path": "./a", "op": "eq", "value": 1}),
                json!({"kind": "count", "of": "lines", "path": "a", "op": "eq", "value": 1}),
                true,
            ),
            (
                json!({"kind": "count", "of": "lines", "path": "a", "op": "eq", "value": 1}),
                json!({"kind": "count", "of": "lines", "path": "a", "op": "ge", "value": 1}),
                false,
            ),
        ] {
            assert_eq!(check(&one) == check(&other), same, "{one} {other}");
        }
        let words = |text: &str| serde_json::from_value::<Criterion>(json!(text)).unwrap().words();
        assert_eq!(words("The  file\nis there."), words("the file is there"));
        assert_ne!(words("x > 5"), words("x < 5"));
        assert_ne!(words("v1.0"), words("v10"));
    }
}
