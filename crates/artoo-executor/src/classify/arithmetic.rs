//! Arithmetic that cannot run a command (design §9).
//!
//! Bash evaluates the *content* of a variable that stands in an arithmetic expression, array subscripts and command
//! substitutions included. So a variable may stand there only when every value it is given in the same command is a
//! number. Owns that bookkeeping; must not know programs, but for `wc`, whose output is a number.

use std::collections::BTreeSet;

use brush_parser::ast;

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
                // What stands before it would become a part of a name that only comes about when it runs.
                if at
                    .checked_sub(1)
                    .and_then(|before| chars.get(before))
                    .is_some_and(|c| in_a_word(*c))
                {
                    return Err("its arithmetic puts a name together".to_owned());
                }
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

/// An expression with a number in place of each command that puts out nothing else, and these commands.
pub fn without_counts(expression: &str) -> (String, Vec<String>) {
    let (mut plain, mut counts) = (String::new(), Vec::new());
    let mut rest = expression;
    while let Some((before, after)) = rest.split_once("$(") {
        let Some((script, after)) = after.split_once(')').filter(|(script, _)| is_count(script)) else {
            break;
        };
        // Beside a letter or digit the number would become a part of another word.
        if before.ends_with(in_a_word) || after.starts_with(|c| in_a_word(c) || c == '#') {
            break;
        }
        plain.push_str(before);
        plain.push('0');
        counts.push(script.to_owned());
        rest = after;
    }
    plain.push_str(rest);
    (plain, counts)
}

fn in_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Whether a command certainly puts out one number: it is one pipe, and at its end stands `wc` that counts one thing of one input.
fn is_count(script: &str) -> bool {
    use ast::CommandPrefixOrSuffixItem as Item;
    // Quotes may hold a `|` that is none, so only the parser can tell where the last command begins.
    let one_line = !script.contains(['(', ')', '`', ';', '&', '\n', '#', '\\']);
    let Some(program) = one_line.then(|| super::grammar::parsed(script, 0).ok()).flatten() else {
        return false;
    };
    let [line] = program.complete_commands.as_slice() else {
        return false;
    };
    let [ast::CompoundListItem(commands, ast::SeparatorOperator::Sequence)] = line.0.as_slice() else {
        return false;
    };
    let Some(ast::Command::Simple(last)) = commands.first.seq.last().filter(|_| commands.additional.is_empty()) else {
        return false;
    };
    let counts = last.prefix.is_none() && last.word_or_name.as_ref().is_some_and(|word| word.value == "wc");
    let what = |word: &ast::Word| ["-l", "-w", "-c", "-m"].contains(&word.value.as_str());
    let from_a_file = |redirect: &ast::IoRedirect| {
        matches!(
            redirect,
            ast::IoRedirect::File(
                None | Some(0),
                ast::IoFileRedirectKind::Read,
                ast::IoFileRedirectTarget::Filename(_)
            )
        )
    };
    counts
        && match last.suffix.as_ref().map(|suffix| suffix.0.as_slice()) {
            Some([Item::Word(word)]) => what(word),
            Some([Item::Word(word), Item::IoRedirect(redirect)]) => what(word) && from_a_file(redirect),
            _ => false,
        }
}

/// Whether no bracket is closed that was not opened: `$((a); (b))` is no arithmetic, but two commands.
fn is_closed(expression: &str) -> bool {
    let mut open = 0_usize;
    let balanced = expression.chars().all(|c| match c {
        '(' => {
            open += 1;
            true
        }
        ')' => open.checked_sub(1).map(|left| open = left).is_some(),
        _ => !"'\"\\`;\n#".contains(c),
    });
    balanced && open == 0
}

/// Whether a word is certainly a number: an integer, an arithmetic expansion, a count, or a range of integers in braces.
pub fn is_numeric_word(word: &str) -> bool {
    let bare = word
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(word);
    let script = bare.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    if script.is_some_and(is_count) {
        return true;
    }
    let integer = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    if integer(word) {
        return true;
    }
    if let Some(inner) = word.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")) {
        return !inner.contains("))") && is_closed(inner);
    }
    word.strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|range| range.contains("..") && range.split("..").all(integer))
}
