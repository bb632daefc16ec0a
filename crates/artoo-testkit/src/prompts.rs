//! The fixed prompts in numbers: characters and estimated tokens of each role (design §18).
//!
//! Owns the count and the table that `docs/prompts.md` holds. Tokens are estimated at four characters each, which is near
//! the truth for English text with the usual tokenisers; the provider's own count of a call is in its journal.

use std::fmt::Write as _;
use std::path::Path;

/// Characters that count as a token.
const CHARACTERS_PER_TOKEN: usize = 4;

/// The files and who is shown them.
const FILES: [(&str, &str); 7] = [
    ("laws", "every role, in its prompt"),
    ("perceiver", "R1"),
    ("planner", "R2, for a plan"),
    ("partial_result", "R2, when a task is given up"),
    ("executor", "R3"),
    ("agent_validator", "R4a"),
    ("meta_validator", "R4b"),
];

/// One prompt in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The file's name without its ending.
    pub name: &'static str,
    /// Who is shown it.
    pub role: &'static str,
    /// Characters of the file.
    pub characters: usize,
    /// Characters as sent, with the laws in their place.
    pub sent: usize,
}

/// The prompts of a folder.
///
/// # Errors
/// [`std::io::Error`] when one cannot be read.
pub fn sizes(folder: &Path) -> std::io::Result<Vec<Size>> {
    let text = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.md")));
    let laws = text("laws")?.trim_end().chars().count();
    FILES
        .iter()
        .map(|&(name, role)| {
            let characters = text(name)?.chars().count();
            let sent = if name == "laws" {
                laws
            } else {
                characters + laws - "{{laws}}".len()
            };
            Ok(Size {
                name,
                role,
                characters,
                sent,
            })
        })
        .collect()
}

/// Characters of all prompts, the laws once.
pub fn total(sizes: &[Size]) -> usize {
    sizes.iter().map(|size| size.characters).sum()
}

/// The same as a table.
pub fn table(sizes: &[Size]) -> String {
    let tokens = |characters: usize| characters.div_ceil(CHARACTERS_PER_TOKEN);
    let mut table = String::from(
        "| prompt | shown to | characters | estimated tokens | as sent, with the laws | estimated tokens |\n|---|---|---|---|---|---|\n",
    );
    for size in sizes {
        let (own, sent) = (tokens(size.characters), tokens(size.sent));
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {own} | {} | {sent} |",
            size.name, size.role, size.characters, size.sent
        );
    }
    let all = total(sizes);
    let _ = writeln!(table, "| all | | {all} | {} | | |", tokens(all));
    table
}
