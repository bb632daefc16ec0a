//! How much two plans, or two steps, are the same (design §6).
//!
//! A step is reduced to its words — of intent and context, lower-cased, without punctuation — and to its tools. Criteria
//! do not count: to judge the same work otherwise is no other work. Sameness is Dice's measure over those bags of words,
//! from 0 (nothing in common) to 1 (the same words as often), so the order of steps and how work is cut into steps make
//! no difference. Words of the task itself are left out first, because every plan must name what the task names; what
//! is left is the approach. Two plans that name other tools are never nearly identical, however alike their words are.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use unicode_segmentation::UnicodeSegmentation;

use crate::parse::Step;

/// From here on two plans are nearly identical: about one word in ten differs.
pub const NEARLY_IDENTICAL: f64 = 0.9;

/// A word by a number of 64 bits, the same for the same letters: plans are compared word by word, again and again.
type Word = u64;

/// The words that a task gives, which say nothing about how it is done.
#[derive(Clone, Debug, Default)]
pub struct Given(HashSet<Word>);

impl Given {
    /// Of the texts that every plan for the task knows.
    pub fn of(texts: &[&str]) -> Self {
        Self(texts.iter().flat_map(|text| words(text)).collect())
    }
}

/// The words of one step, in order.
#[derive(Clone, Debug)]
pub struct Spoken<'a> {
    step: &'a Step,
    intent: Vec<Word>,
    context: Vec<Word>,
}

impl<'a> Spoken<'a> {
    /// Of this step.
    pub fn of(step: &'a Step) -> Self {
        Self {
            step,
            intent: words(&step.intent).collect(),
            context: words(&step.context).collect(),
        }
    }

    /// A number for what the step does, the same for every spelling of the same words and tools.
    pub fn fingerprint(&self) -> u64 {
        let mut tools: Vec<&str> = self.step.tools.iter().map(String::as_str).collect();
        tools.sort_unstable();
        let mut hasher = DefaultHasher::new();
        for (words, text) in [(&self.intent, &self.step.intent), (&self.context, &self.step.context)] {
            words.hash(&mut hasher);
            if words.is_empty() {
                text.split_whitespace().for_each(|part| part.hash(&mut hasher));
            }
        }
        tools.hash(&mut hasher);
        hasher.finish()
    }
}

/// A plan or a step as a bag of words, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bag {
    all: Vec<Word>,
    own: Vec<Word>,
    tools: Vec<String>,
}

impl Bag {
    /// Of single steps.
    pub fn of(steps: &[Spoken<'_>], given: &Given) -> Self {
        let said = steps.iter().flat_map(|step| step.intent.iter().chain(&step.context));
        let mut all: Vec<Word> = said.copied().collect();
        all.sort_unstable();
        let own = all.iter().filter(|word| !given.0.contains(word)).copied().collect();
        let named = steps.iter().flat_map(|step| &step.step.tools);
        let mut tools: Vec<String> = named.map(|tool| tool.to_lowercase()).collect();
        tools.sort_unstable();
        tools.dedup();
        Self { all, own, tools }
    }

    /// The tools, sorted.
    pub fn tools(&self) -> &[String] {
        &self.tools
    }

    /// Whether the other one is as good as the same.
    pub fn is_nearly(&self, other: &Self) -> bool {
        self.tools == other.tools && self.sameness(other) >= NEARLY_IDENTICAL
    }

    /// From 0 to 1. Two that say nothing beyond the task's own words are compared by all their words.
    pub fn sameness(&self, other: &Self) -> f64 {
        if self.own.is_empty() && other.own.is_empty() {
            dice(&self.all, &other.all)
        } else {
            dice(&self.own, &other.own)
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = Word> {
    text.unicode_words().map(|word| {
        let mut hasher = DefaultHasher::new();
        if word.is_ascii() {
            word.bytes().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
        } else {
            word.to_lowercase().bytes().for_each(|byte| hasher.write_u8(byte));
        }
        hasher.finish()
    })
}

/// Twice the common words over all words; both sorted.
fn dice(a: &[Word], b: &[Word]) -> f64 {
    let total = a.len() + b.len();
    if total == 0 {
        return 1.0;
    }
    let (mut left, mut right, mut common) = (a.iter().peekable(), b.iter().peekable(), 0_usize);
    while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
        match one.cmp(two) {
            std::cmp::Ordering::Less => drop(left.next()),
            std::cmp::Ordering::Greater => drop(right.next()),
            std::cmp::Ordering::Equal => {
                common += 1;
                left.next();
                right.next();
            }
        }
    }
    2.0 * common as f64 / total as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use proptest::prelude::*;
    use serde_json::json;

    const TASK: &str = "Write the e-mail address of every customer in orders.csv into emails.txt";

    fn bag(steps: &[(&str, &str)]) -> Bag {
        let steps: Vec<_> = steps
            .iter()
            .map(|(intent, tool)| json!({"intent": intent, "tools": [tool], "success_criteria": ["x"]}))
            .collect();
        let plan = parse(&json!({ "subtasks": steps }), 100);
        let spoken: Vec<Spoken<'_>> = plan.steps.iter().map(Spoken::of).collect();
        Bag::of(&spoken, &Given::of(&[TASK]))
    }

    #[test]
    fn a_rewording_is_nearly_identical_and_another_method_is_not() {
        let old = bag(&[(
            "Write every customer's e-mail address from orders.csv into emails.txt: cut the second column at the commas, \
             skip the header line, sort what is left, and drop repeated lines",
            "shell",
        )]);
        for (intent, tool, same) in [
            (
                "Write EVERY customer's e-mail address from orders.csv into emails.txt - cut the second column at the \
                 commas; skip the header line; sort what is left, and then drop repeated lines.",
                "shell",
                true,
            ),
            (
                "Write every customer's e-mail address from orders.csv into emails.txt: read the file and pick out what \
                 looks like an address with a regular expression",
                "shell",
                false,
            ),
            (
                "Write every customer's e-mail address from orders.csv into emails.txt: cut the second column at the \
                 commas, skip the header line, sort what is left, and drop repeated lines",
                "read_file",
                false,
            ),
        ] {
            let new = bag(&[(intent, tool)]);
            assert_eq!(old.is_nearly(&new), same, "{} {intent}", old.sameness(&new));
        }
    }

    #[test]
    fn neither_order_nor_the_cut_into_steps_hides_a_repetition() {
        let one = bag(&[("Read the header, then cut column two", "shell"), ("Sort it", "shell")]);
        let other = bag(&[("Sort it", "shell"), ("Read the header, then cut column two", "shell")]);
        assert!((one.sameness(&other) - 1.0).abs() < f64::EPSILON);
        let split = bag(&[
            ("Read the header", "shell"),
            ("then cut column two", "shell"),
            ("Sort it", "shell"),
        ]);
        assert!(one.sameness(&split) >= NEARLY_IDENTICAL, "{}", one.sameness(&split));
    }

    #[test]
    fn one_word_decides_in_a_short_plan() {
        let with = |program: &str| {
            bag(&[(
                &format!("Write the e-mail address of every customer with {program}"),
                "shell",
            )])
        };
        assert!(with("cut").sameness(&with("grep")) < NEARLY_IDENTICAL);
        assert!((with("cut").sameness(&with("CUT")) - 1.0).abs() < f64::EPSILON);
    }

    proptest! {
        #[test]
        fn sameness_is_a_symmetric_share(a in "[a-e ]{0,30}", b in "[a-e ]{0,30}") {
            let given = Given::default();
            let bag = |intent: &str| {
                let plan = parse(&json!({"subtasks": [{"intent": intent}]}), 1);
                let spoken: Vec<Spoken<'_>> = plan.steps.iter().map(Spoken::of).collect();
                Bag::of(&spoken, &given)
            };
            let (a, b) = (bag(&a), bag(&b));
            let sameness = a.sameness(&b);
            prop_assert!((0.0..=1.0).contains(&sameness));
            prop_assert!((sameness - b.sameness(&a)).abs() < f64::EPSILON);
            prop_assert!((a.sameness(&a) - 1.0).abs() < f64::EPSILON);
        }
    }
}
