//! The table of programs in words, for people (design §9).
//!
//! Owns the wording of rows; `docs/safety.md` holds what it writes. Must not decide anything.

use std::fmt::Write;

use super::table::{Operands, PROGRAMS, Rule};

/// The table as a Markdown table, one row a program, in the order of their names.
pub fn table_as_markdown() -> String {
    let mut rows: Vec<(&str, String)> = PROGRAMS.iter().map(|(name, rule)| (*name, words(rule))).collect();
    rows.sort_unstable_by_key(|(name, _)| *name);
    let mut text = String::from("| program | when it is a read, or what it is |\n|---|---|\n");
    for (name, words) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{name}` | {} |", words.replace('|', "\\|"));
    }
    text
}

fn words(rule: &Rule) -> String {
    match rule {
        Rule::Pure => "read".to_owned(),
        Rule::Without(bad) => format!("read without {}", listed(bad)),
        Rule::Only(good) => format!("read with nothing but {}", listed(good)),
        Rule::OnlyOrNone(good) => format!("read alone or with nothing but {}", listed(good)),
        Rule::First(good) => format!("read when it begins with {} and no option follows", listed(good)),
        Rule::Sub(phrases) => {
            let each: Vec<String> = phrases
                .iter()
                .map(|(phrase, good)| {
                    if good.is_empty() {
                        format!("`{phrase}`")
                    } else {
                        format!("`{phrase}` (with {})", listed(good))
                    }
                })
                .collect();
            format!("read as {}", each.join(", "))
        }
        Rule::Options(good, operands) => {
            let options = if good.is_empty() {
                "read without options".to_owned()
            } else {
                format!("read with no option but {}", listed(good))
            };
            let limit = match operands {
                Operands::Any => "",
                Operands::Local => "; no addresses",
                Operands::NoAssignment => "; no `=`",
                Operands::ToStdout => "; to standard output",
            };
            format!("{options}{limit}")
        }
        Rule::Needs(one, others, effect, reason) => format!(
            "read with one of {} and no other option but {}; else {effect}: {reason}",
            listed(one),
            listed(others)
        ),
        Rule::OneOperand([], _) => "read with at most one file".to_owned(),
        Rule::OneOperand(bad, _) => format!("read with at most one file, without {}", listed(bad)),
        Rule::Always(effect, reason) => format!("{effect}: {reason}"),
        Rule::Special(_, reads) => format!("read: {reads}"),
    }
}

fn listed(options: &[&str]) -> String {
    let each: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
    each.join(" ")
}
