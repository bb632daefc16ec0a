//! The grammar: from a sentence to steps, by the table of what can be said (design §18).
//!
//! Owns chains and what is left aside of a sentence: politeness, joints. Must not know single sentences: they are in `rows`.

use super::form;
use super::rows::{Meaning, ROWS};
use super::step::Step;
use super::words::{Token, tokens};

/// Most steps of a chain.
const MAX_STEPS: usize = 8;

/// Words at the beginning that change nothing.
const POLITE: &[&str] = &[
    "please|kindly|now|ok|okay|hey|artoo|first|next|also|just",
    "can_you|could_you|would_you|will_you|i_want_you_to|i_would_like_you_to|i'd_like_you_to|i_need_you_to|i_want_to_know|let_me_know",
    "and|then|after_that|afterwards|finally",
];
/// Words at the end that change nothing.
const TRAILING: &[&str] = &["please", "recursively", "thanks", "altogether", "exactly"];

/// The steps of a request; `None` when any part of it is not understood.
pub(super) fn read_request(sentence: &str) -> Option<Vec<Step>> {
    let tokens = tokens(sentence)?;
    let mut steps = Vec::new();
    chain(&tokens, &mut steps)
        .then_some(steps)
        .filter(|steps| !steps.is_empty())
}

/// The one step of a subtask, which may speak of the result of an earlier one by its number.
pub(super) fn read_subtask(sentence: &str) -> Option<Step> {
    match meaning(trimmed(&tokens(sentence)?))? {
        Meaning::Step(step) => Some(step),
        Meaning::WriteResult { step: Some(step), file } => Some(Step::WriteResult { step, file }),
        Meaning::WriteResult { step: None, .. } | Meaning::CountThem | Meaning::Nothing => None,
    }
}

/// Reads tokens as one step, else as a step, a joint and more steps; the shortest first step that works.
fn chain(all: &[Token], steps: &mut Vec<Step>) -> bool {
    let tokens = trimmed(all);
    let before = steps.len();
    if before < MAX_STEPS && add(tokens, steps) {
        return true;
    }
    for (position, token) in tokens.iter().enumerate().skip(1) {
        if !is_joint(token) {
            continue;
        }
        let (left, right) = tokens.split_at(position);
        if before < MAX_STEPS && add(trimmed(left), steps) && chain(right, steps) {
            return true;
        }
        steps.truncate(before);
    }
    false
}

fn is_joint(token: &Token) -> bool {
    *token == Token::Stop || ["and", "then", "afterwards"].iter().any(|word| token.is(word))
}

/// Adds what the tokens mean after the steps so far.
fn add(tokens: &[Token], steps: &mut Vec<Step>) -> bool {
    let step = match meaning(tokens) {
        Some(Meaning::Step(step)) => step,
        Some(Meaning::CountThem) => match steps.last() {
            Some(Step::Find { files, place }) => Step::Count {
                files: files.clone(),
                place: place.clone(),
            },
            _ => return false,
        },
        Some(Meaning::WriteResult { step, file }) => {
            let step = step.unwrap_or(steps.len());
            if step == 0 || step > steps.len() {
                return false;
            }
            Step::WriteResult { step, file }
        }
        Some(Meaning::Nothing) => return !steps.is_empty(),
        None => return false,
    };
    steps.push(step);
    true
}

fn meaning(tokens: &[Token]) -> Option<Meaning> {
    let tokens: Vec<Token> = tokens.to_vec();
    let mut forms = ROWS
        .iter()
        .flat_map(|row| row.forms.iter().map(move |form| (row, form)));
    forms.find_map(|(row, form)| form::matches(form, &tokens).and_then(row.means))
}

/// Without stops, joints and politeness around.
fn trimmed(mut tokens: &[Token]) -> &[Token] {
    loop {
        let before = tokens.len();
        while let [Token::Stop, rest @ ..] | [rest @ .., Token::Stop] = tokens {
            tokens = rest;
        }
        for lead in POLITE {
            let taken = (1..=tokens.len().min(6)).rev().find(|&n| {
                tokens
                    .get(..n)
                    .is_some_and(|front| form::matches(lead, front).is_some())
            });
            tokens = taken.and_then(|taken| tokens.get(taken..)).unwrap_or(tokens);
        }
        if let [rest @ .., last] = tokens
            && !rest.is_empty()
            && TRAILING.iter().any(|word| last.is(word))
        {
            tokens = rest;
        }
        if tokens.len() == before {
            return tokens;
        }
    }
}

/// The canonical sentence of a step.
pub(super) fn sentence(step: &Step) -> String {
    step.sentence(read_subtask)
}

/// The canonical sentence of a chain.
pub(super) fn sentences(steps: &[Step]) -> String {
    steps.iter().map(sentence).collect::<Vec<_>>().join(", then ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::step::{FileSet, Sort, Unit};
    use proptest::prelude::*;

    #[test]
    fn every_example_is_read_as_it_says_and_its_canonical_sentence_as_itself() {
        for row in ROWS {
            assert!(!row.examples.is_empty(), "{}", row.name);
            for (given, canonical) in row.examples {
                let steps = read_request(given).unwrap_or_else(|| panic!("not understood: {given}"));
                assert_eq!(sentences(&steps), *canonical, "{given}");
                assert_eq!(read_request(canonical), Some(steps), "{canonical}");
            }
        }
    }

    #[test]
    fn what_is_not_in_the_grammar_is_not_understood() {
        for sentence in [
            "",
            "hello",
            "write a poem about spring",
            "write a poem about spring to poem.txt",
            "write the result to x.txt",
            "count them",
            "delete all files in src",
            "count the Rust files in crates and delete them",
            "count the Rust files in crates and email me the number",
            "what time is it",
            "what is the capital of France?",
            "find me a good restaurant in Paris",
            "how many people live in Berlin?",
            "read my mail and summarise it",
            "summarise README.md",
            "how many files changed since yesterday in src",
            "count the files in src that are older than a week",
            "do it again",
            "清理这个文件夹",
            "tell me the number",
        ] {
            assert_eq!(read_request(sentence), None, "{sentence}");
        }
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z]{1,8}",
            "[a-zA-Z0-9./~_ -]{1,12}",
            "[^\u{0}\n\r]{1,10}",
            Just("the".to_owned()),
            Just("here".to_owned())
        ]
        .prop_filter("a name says something", |name| !name.trim().is_empty())
    }

    fn file_set() -> impl Strategy<Value = FileSet> {
        let patterns = proptest::collection::vec(prop_oneof!["\\*\\.[a-z]{1,3}", "[^\u{0}\n\r/]{1,8}"], 0..3)
            .prop_filter("patterns say something and differ", |patterns| {
                patterns.iter().all(|p| !p.trim().is_empty())
                    && patterns.iter().collect::<std::collections::HashSet<_>>().len() == patterns.len()
            });
        patterns.prop_map(|patterns| FileSet {
            sort: Sort::Files,
            patterns,
        })
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let unit = || prop_oneof![Just(Unit::Lines), Just(Unit::Words)];
        let folders = |mut files: FileSet, folders: bool| {
            if folders {
                files.sort = Sort::Folders;
            }
            files
        };
        prop_oneof![
            (file_set(), name(), any::<bool>()).prop_map(move |(f, place, d)| Step::Count {
                files: folders(f, d),
                place
            }),
            (file_set(), name(), any::<bool>()).prop_map(move |(f, place, d)| Step::Find {
                files: folders(f, d),
                place
            }),
            (unit(), name()).prop_map(|(unit, file)| Step::Measure { unit, file }),
            (unit(), file_set(), name()).prop_map(|(unit, files, place)| Step::MeasureAll { unit, files, place }),
            name().prop_map(|place| Step::List { place }),
            (name(), file_set(), name()).prop_map(|(text, files, place)| Step::Search { text, files, place }),
            (name(), file_set(), name()).prop_map(|(text, files, place)| Step::FilesWith { text, files, place }),
            (name(), file_set(), name()).prop_map(|(text, files, place)| Step::Occurrences { text, files, place }),
            (1_u32..999, file_set(), name()).prop_map(|(count, files, place)| Step::Largest { count, files, place }),
            name().prop_map(|place| Step::DiskUse { place }),
            name().prop_map(|place| Step::Duplicates { place }),
            name().prop_map(|file| Step::Read { file }),
            (name(), name()).prop_map(|(text, file)| Step::Write { text, file }),
            (1_usize..9, name()).prop_map(|(step, file)| Step::WriteResult { step, file }),
        ]
    }

    proptest! {
        #[test]
        fn every_step_is_read_back_from_its_sentence(step in any_step()) {
            let sentence = sentence(&step);
            prop_assert_eq!(read_subtask(&sentence), Some(step), "{}", sentence);
        }

        #[test]
        fn any_sentence_is_survived(text in any::<String>(), words in "(find|count|the|files|in|\\*\\.rs|and|then|write|it|to|of|a| |,|\"|how many){0,30}") {
            let _ = read_request(&text);
            let _ = read_request(&words);
            let _ = read_subtask(&words);
        }
    }
}
