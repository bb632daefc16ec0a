//! Variables that a command sets (design §9).
//!
//! Owns which of them no program heeds, and which values stand in the command letter by letter.

/// Variables in capitals that may be set without changing what programs do; names in small letters always may.
const HARMLESS_VARIABLES: &[&str] = &[
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_NUMERIC",
    "TZ",
    "DIR",
    "FILE",
    "FILES",
    "NAME",
    "COUNT",
    "TOTAL",
    "N",
    "I",
    "NO_COLOR",
];

/// Whether a value stands there letter by letter, as one word.
pub(super) fn is_plain_value(value: &str) -> bool {
    !value.is_empty()
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./:,+@%".contains(c))
}

/// Whether no program heeds a variable of this name. Of those in small letters only the settings of npm's kin are read.
pub(super) fn is_harmless_variable(name: &str) -> bool {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (plain && !name.contains("npm_config")) || HARMLESS_VARIABLES.contains(&name)
}
