//! Arithmetic that cannot run a command (design §9).
//!
//! Bash evaluates the *content* of a variable that stands in an arithmetic expression, array subscripts and command
//! substitutions included. So a variable may stand there only when every value it is given in the same command is a
//! number. Owns that bookkeeping; must not know words, programs or files.

use std::collections::BTreeSet;

/// Variables that always hold a number.
const ALWAYS_NUMERIC: &[&str] = &["RANDOM", "SECONDS", "LINENO"];

/// What is known of the variables of a command.
#[derive(Debug, Default)]
pub struct Variables {
    numeric: BTreeSet<String>,
    other: BTreeSet<String>,
    used: BTreeSet<String>,
}

impl Variables {
    /// Notes an assignment.
    pub fn assign(&mut self, name: &str, numeric: bool) {
        if numeric { &mut self.numeric } else { &mut self.other }.insert(name.to_owned());
    }

    /// Notes an expression: its variables must prove numeric in the end.
    ///
    /// # Errors
    /// When the expression could evaluate more than numbers and plain variables.
    pub fn expression(&mut self, text: &str) -> Result<(), String> {
        if text.chars().any(|c| "`[]'\"\\{}".contains(c)) || text.contains("$(") {
            return Err("its arithmetic is too involved to be judged".to_owned());
        }
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            if c == '$' {
                at += 1;
                match chars.get(at) {
                    Some(next) if next.is_ascii_alphabetic() || *next == '_' => continue,
                    Some('#' | '?') => {}
                    _ => return Err("its arithmetic uses an argument that may hold anything".to_owned()),
                }
                at += 1;
            } else if c.is_ascii_alphanumeric() || c == '_' {
                let rest = chars.get(at..).unwrap_or_default();
                let token: String = rest
                    .iter()
                    .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
                    .collect();
                at += token.len();
                if !c.is_ascii_digit() {
                    self.variable(&token, chars.get(at..).unwrap_or_default());
                }
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    fn variable(&mut self, name: &str, rest: &[char]) {
        let rest: String = rest.iter().collect::<String>().trim_start().chars().take(3).collect();
        if rest.starts_with('=') && !rest.starts_with("==") {
            self.numeric.insert(name.to_owned());
        }
        self.used.insert(name.to_owned());
    }

    /// The first variable used in arithmetic that is not known to hold numbers only.
    pub fn unproven(&self) -> Option<&str> {
        self.used
            .iter()
            .find(|name| {
                let proven = self.numeric.contains(*name) && !self.other.contains(*name);
                !proven && !ALWAYS_NUMERIC.contains(&name.as_str())
            })
            .map(String::as_str)
    }
}

/// Whether a word is certainly a number: an integer, an arithmetic expansion, or a range of integers in braces.
pub fn is_numeric_word(word: &str) -> bool {
    let integer = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    if integer(word) {
        return true;
    }
    if let Some(inner) = word.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")) {
        return !inner.contains("))");
    }
    word.strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|range| range.contains("..") && range.split("..").all(integer))
}
