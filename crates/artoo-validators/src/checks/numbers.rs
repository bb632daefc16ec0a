//! Numbers as people and programs write them: any script's digits, with or without separators of thousands (design §7).
//!
//! Owns when two ways of writing are one number. Knows no language: where a comma may separate thousands or two numbers, both
//! readings count.

/// Zeros of the decimal digits of scripts in use; the nine others follow each.
const ZEROS: &[char] = &[
    '٠', '۰', '߀', '०', '০', '੦', '૦', '୦', '௦', '౦', '೦', '൦', '๐', '໐', '༠', '၀', '០', '᠐', '０',
];

/// What may stand between groups of three digits.
const SEPARATORS: &[char] = &[',', '.', '\'', '’', '_', '\u{a0}', '\u{202f}', '\u{2009}', '٬', '，'];

/// One number as it was written: its groups of digits, as ASCII; one group where there are no separators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number(Vec<String>);

impl Number {
    /// All digits together.
    pub(super) fn joined(&self) -> String {
        self.0.concat()
    }

    /// Whether a text holds this number, however it is written there. Where it may as well be several numbers in a row
    /// (`57,100`), all of them count too.
    pub(super) fn stands_in(&self, text: &str) -> bool {
        let there = numbers(text);
        let joined = self.joined();
        let group = |wanted: &String| there.iter().any(|number| number.0.contains(wanted));
        there.iter().any(|number| number.joined() == joined) || group(&joined) || self.0.iter().all(group)
    }
}

/// Every number in a text.
///
/// `1,234` is one number of two groups, and so are `1.234` and `١٬٢٣٤`; `1, 234` and `12.34` are two each.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let text: Vec<char> = text.chars().map(ascii).collect();
    let group = |at: usize, run: usize| text.iter().skip(at).take(run).collect::<String>();
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let run = digits(&text, at);
        if run == 0 {
            at += 1;
            continue;
        }
        let mut groups = vec![group(at, run)];
        at += run;
        // A separator is the same all through, and three digits follow each.
        let separator = text.get(at).copied().filter(|c| run <= 3 && SEPARATORS.contains(c));
        while separator.is_some() && text.get(at).copied() == separator && digits(&text, at + 1) == 3 {
            groups.push(group(at + 1, 3));
            at += 4;
        }
        found.push(Number(groups));
    }
    found
}

fn digits(text: &[char], at: usize) -> usize {
    text.iter().skip(at).take_while(|c| c.is_ascii_digit()).count()
}

fn ascii(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let value = ZEROS
        .iter()
        .find_map(|zero| (c as u32).checked_sub(*zero as u32).filter(|value| *value < 10));
    value.and_then(|value| char::from_digit(value, 10)).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_one_however_it_is_written() {
        for (text, expect) in [
            ("57 files", vec!["57"]),
            ("1,234,567", vec!["1234567"]),
            ("1.234.567", vec!["1234567"]),
            ("1'234", vec!["1234"]),
            ("1 234", vec!["1", "234"]),
            ("1\u{202f}234", vec!["1234"]),
            ("١٬٢٣٤", vec!["1234"]),
            ("５７", vec!["57"]),
            ("٥٧", vec!["57"]),
            ("५७", vec!["57"]),
            ("1, 234", vec!["1", "234"]),
            ("12.34", vec!["12", "34"]),
            ("1234,567", vec!["1234", "567"]),
            ("1,234.567", vec!["1234", "567"]),
            ("1,2345", vec!["1", "2345"]),
            ("none", vec![]),
        ] {
            let found: Vec<_> = numbers(text).iter().map(Number::joined).collect();
            assert_eq!(found, expect, "{text}");
        }
    }

    #[test]
    fn a_number_is_found_again_however_it_is_written_there() {
        for (written, text, found) in [
            ("1,234", "total 1234", true),
            ("1234", "total 1.234", true),
            ("١٢٣٤", "1 234 and 1,234", true),
            ("1,234", "1 of 12 in row 2340", false),
            ("1,234", "1 of 12345", false),
            ("57", "57,100", true),
            ("57,100", "57 dogs and 100 cats", true),
            ("57,100", "57 dogs", false),
        ] {
            let number = numbers(written).remove(0);
            assert_eq!(number.stands_in(text), found, "{written} in {text}");
        }
    }
}
