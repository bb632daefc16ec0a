//! Known intents by their words, whatever the wording and the script (design §15).
//!
//! Words are cut by ICU's rules and dictionaries, so that Chinese, Japanese or Thai have words too. A word that few intents share
//! says more than one that many share. No model, no chance: the same store gives the same answer.
//!
//! Owns: words and scores. Must not know: keys, what is done with an answer.

use crate::keys;
use crate::kv::KvError;
use crate::records::{Records, lock};
use crate::view::GroupKey;
use artoo_protocol::message::Megram;
use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;
use std::collections::HashMap;
use std::sync::Arc;

/// What the space of an intent begins with.
const INTENT: &str = "intent:";
/// Most words kept of one group of intents.
const WORDS_MAX: usize = 48;
/// Most words read of one question.
const QUERY_MAX: usize = 64;
/// Longest word kept, in characters.
const WORD_MAX: usize = 48;
/// So many groups with the most in common are scored in full.
const CANDIDATES: usize = 256;
/// A word is common when more than one in so many groups has it.
const COMMON: usize = 16;

/// A known group of intents.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// Which.
    pub key: GroupKey,
    /// How much its words are those asked for, from 0 to 1.
    pub score: f64,
}

/// Whether memories of this space are about what was asked for.
pub(crate) fn is_intent(space: &str) -> bool {
    space.starts_with(INTENT)
}

/// The words that a group gets by a new memory, separated by spaces; `None` where they are known already.
pub(crate) fn more_words(known: Option<&str>, megram: &Megram) -> Option<String> {
    let mut all: Vec<String> = known
        .map(|known| known.split(' ').map(str::to_owned).collect())
        .unwrap_or_default();
    let before = all.len();
    for word in words(&intent_of(megram)) {
        if all.len() < WORDS_MAX && !all.contains(&word) {
            all.push(word);
        }
    }
    (all.len() > before || known.is_none()).then(|| all.join(" "))
}

/// The intent in words: what the lesson quotes between “ and ”, as the controller writes it, else what the space says of it.
fn intent_of(megram: &Megram) -> String {
    let quoted = megram
        .content
        .split_once('“')
        .and_then(|(_, rest)| rest.split_once('”'));
    let space = megram.space.strip_prefix(INTENT).unwrap_or_default().replace('_', " ");
    match quoted {
        Some((intent, _)) => format!("{space} {intent}"),
        None => space,
    }
}

/// The words of a text in lower case, each once, in order.
pub fn words(text: &str) -> Vec<String> {
    let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
    let mut words: Vec<String> = Vec::new();
    let mut start = 0;
    for (end, kind) in segmenter.segment_str(text).iter_with_word_type() {
        let word = text.get(start..end).unwrap_or_default();
        start = end;
        if !kind.is_word_like() {
            continue;
        }
        let word: String = word.to_lowercase().chars().take(WORD_MAX).collect();
        if !words.contains(&word) {
            words.push(word);
            if words.len() >= QUERY_MAX {
                break;
            }
        }
    }
    words
}

/// All known intents by their words, in memory: about 100 bytes each.
#[derive(Debug, Default)]
pub(crate) struct Intents {
    groups: Vec<Group>,
    by_key: HashMap<Arc<GroupKey>, u32>,
    terms: Vec<Vec<u32>>,
    by_word: HashMap<String, u32>,
    living: usize,
}

#[derive(Debug)]
struct Group {
    key: Arc<GroupKey>,
    /// Empty for a group that is gone.
    terms: Vec<u32>,
}

impl Intents {
    /// Sets a group's words; none: the group is gone.
    pub(crate) fn set(&mut self, key: &GroupKey, words: &str) {
        let number = match self.by_key.get(key) {
            Some(number) => *number,
            None if words.is_empty() => return,
            None => {
                let number = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
                let key = Arc::new(key.clone());
                self.groups.push(Group {
                    key: key.clone(),
                    terms: Vec::new(),
                });
                self.by_key.insert(key, number);
                number
            }
        };
        let terms: Vec<u32> = words
            .split(' ')
            .filter(|word| !word.is_empty())
            .map(|word| self.term(word))
            .collect();
        let Some(group) = self.groups.get_mut(number as usize) else {
            return;
        };
        self.living = self.living + usize::from(!terms.is_empty()) - usize::from(!group.terms.is_empty());
        let before = std::mem::replace(&mut group.terms, terms.clone());
        for term in before.iter().filter(|term| !terms.contains(term)) {
            if let Some(postings) = self.terms.get_mut(*term as usize) {
                postings.retain(|other| *other != number);
            }
        }
        for term in terms.iter().filter(|term| !before.contains(term)) {
            if let Some(postings) = self.terms.get_mut(*term as usize) {
                postings.push(number);
            }
        }
    }

    fn term(&mut self, word: &str) -> u32 {
        if let Some(term) = self.by_word.get(word) {
            return *term;
        }
        let term = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        self.terms.push(Vec::new());
        self.by_word.insert(word.to_owned(), term);
        term
    }

    /// How much a term says: much when few groups have it.
    fn weight(&self, term: u32) -> f64 {
        let having = self.terms.get(term as usize).map_or(0, Vec::len);
        (1.0 + self.living as f64 / (having as f64 + 0.5)).ln()
    }

    /// The groups that share words with the text, best first; of equal ones by key.
    pub(crate) fn nearest(&self, text: &str, limit: usize) -> Vec<Near> {
        let asked = words(text);
        let known: Vec<u32> = asked
            .iter()
            .filter_map(|word| self.by_word.get(word).copied())
            .collect();
        let mut shared: Vec<f32> = vec![0.0; self.groups.len()];
        let having = |term: &u32| self.terms.get(*term as usize).map_or(0, Vec::len);
        // A word that many have brings too many candidates to choose from, unless there is no other.
        let few = (self.living / COMMON).max(CANDIDATES);
        let has_rare = known.iter().any(|term| having(term) <= few);
        for term in known.iter().filter(|term| !has_rare || having(term) <= few) {
            #[expect(clippy::cast_possible_truncation, reason = "only to choose candidates")]
            let weight = self.weight(*term) as f32;
            for group in self.terms.get(*term as usize).into_iter().flatten() {
                if let Some(shared) = shared.get_mut(*group as usize) {
                    *shared += weight;
                }
            }
        }
        let mut candidates: Vec<(f32, &Group)> = shared
            .into_iter()
            .zip(&self.groups)
            .filter(|(shared, _)| *shared > 0.0)
            .collect();
        let by_shared = |a: &(f32, &Group), b: &(f32, &Group)| b.0.total_cmp(&a.0).then_with(|| a.1.key.cmp(&b.1.key));
        if candidates.len() > CANDIDATES {
            candidates.select_nth_unstable_by(CANDIDATES - 1, by_shared);
            candidates.truncate(CANDIDATES);
        }
        // A word that no group has says as much as one that a single group has.
        let unknown = (asked.len() - known.len()) as f64 * (1.0 + self.living as f64 / 1.5).ln();
        let of_asked: f64 = known.iter().map(|term| self.weight(*term)).sum::<f64>() + unknown;
        let mut found: Vec<Near> = candidates
            .into_iter()
            .map(|(_, group)| {
                let weigh = |of_group: f64, term: &u32| of_group + self.weight(*term);
                let both: f64 = group.terms.iter().filter(|term| known.contains(term)).fold(0.0, weigh);
                let of_group: f64 = group.terms.iter().fold(0.0, weigh);
                Near {
                    key: GroupKey::clone(&group.key),
                    score: (2.0 * both / (of_asked + of_group)).clamp(0.0, 1.0),
                }
            })
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
        found.truncate(limit);
        found
    }
}

impl Records {
    /// The known groups of intents nearest to a text by their words, best first, at most `limit`.
    pub fn nearest(&self, text: &str, limit: usize) -> Result<Vec<Near>, KvError> {
        if !self.is_derived() {
            return Ok(Vec::new());
        }
        if lock(&self.intents).is_none() {
            self.load_intents()?;
        }
        Ok(lock(&self.intents)
            .as_ref()
            .map_or_else(Vec::new, |intents| intents.nearest(text, limit)))
    }

    /// Reads the words of all intents, while nobody writes.
    fn load_intents(&self) -> Result<(), KvError> {
        let _nobody = self.stop_writing();
        let mut intents = Intents::default();
        self.each_page(keys::INTENTS, &mut |page| {
            for (key, value) in page {
                if let Some([space, entity]) = keys::parts(&key).and_then(|parts| <[String; 2]>::try_from(parts).ok()) {
                    intents.set(&GroupKey { space, entity }, &String::from_utf8_lossy(&value));
                }
            }
            Ok(())
        })?;
        *lock(&self.intents) = Some(intents);
        Ok(())
    }

    /// The intents whose words a batch changes.
    pub(crate) fn changed_words(&self, batch: &crate::kv::Batch) -> Vec<(GroupKey, String)> {
        use crate::kv::Change;
        if lock(&self.intents).is_none() {
            return Vec::new();
        }
        let changed = batch.changes.iter().filter_map(|change| {
            let (key, words) = match change {
                Change::Put { key, value } => (key, String::from_utf8_lossy(value).into_owned()),
                Change::Delete { key } => (key, String::new()),
            };
            key.starts_with(keys::INTENTS.as_bytes()).then_some(())?;
            let [space, entity] = <[String; 2]>::try_from(keys::parts(key)?).ok()?;
            Some((GroupKey { space, entity }, words))
        });
        changed.collect()
    }

    pub(crate) fn note_words(&self, changed: &[(GroupKey, String)]) {
        if let Some(intents) = &mut *lock(&self.intents) {
            for (group, words) in changed {
                intents.set(group, words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::megram;

    fn group(space: &str) -> GroupKey {
        GroupKey::new(space, "env:local")
    }

    #[test]
    fn every_script_has_words() {
        for (text, expect) in [
            (
                "Find the LARGEST video files!",
                vec!["find", "the", "largest", "video", "files"],
            ),
            (
                "数一数我桌面上的文件",
                vec!["数", "一", "我", "桌面", "上", "的", "文件"],
            ),
            (
                "デスクトップのファイルを数える",
                vec!["デスクトップ", "の", "ファイル", "を", "数える"],
            ),
            ("Größte Datei, größte DATEI", vec!["größte", "datei"]),
            ("كم عدد الملفات", vec!["كم", "عدد", "الملفات"]),
            ("…?!", vec![]),
        ] {
            assert_eq!(words(text), expect, "{text}");
        }
        assert!(words("ค้นหาไฟล์").len() > 1);
        assert_eq!(words(&"many words ".repeat(100_000)).len(), 2);
    }

    #[test]
    fn other_wordings_find_the_intent_best_first() {
        let mut intents = Intents::default();
        for (space, words) in [
            ("intent:find_the_largest", "find the largest video files"),
            ("intent:find_the_newest", "find the newest video"),
            ("intent:数_一_数", "数 一 桌面 上 的 文件"),
            ("intent:count_rust_files", "count rust files"),
        ] {
            intents.set(&group(space), words);
        }
        let found = |text: &str| -> Vec<String> {
            intents
                .nearest(text, 2)
                .into_iter()
                .map(|near| near.key.space)
                .collect()
        };
        assert_eq!(
            found("which video files are the largest"),
            ["intent:find_the_largest", "intent:find_the_newest"]
        );
        assert_eq!(found("桌面上有多少文件"), ["intent:数_一_数"]);
        assert_eq!(
            found("rust files: how many"),
            ["intent:count_rust_files", "intent:find_the_largest"]
        );
        assert_eq!(found("draw a cat"), [""; 0]);
        let same = intents.nearest("Count Rust files", 1);
        assert!((same[0].score - 1.0).abs() < 1e-9, "{same:?}");
    }

    #[test]
    fn what_is_forgotten_is_not_found_and_words_can_change() {
        let mut intents = Intents::default();
        let space = group("intent:a");
        intents.set(&space, "alpha beta");
        intents.set(&space, "beta gamma");
        assert_eq!(intents.nearest("alpha", 9), []);
        assert_eq!(intents.nearest("gamma", 9).len(), 1);
        intents.set(&space, "");
        assert_eq!((intents.nearest("beta", 9), intents.living), (vec![], 0));
    }

    #[test]
    fn words_come_from_the_intent_that_the_lesson_quotes() {
        let mut lesson = megram("1", "intent:find_the_largest", "env:local", 0.5, 1.0);
        lesson.content = "Worked for “find the largest video files”: find with `/home`.".to_owned();
        assert_eq!(
            more_words(None, &lesson).as_deref(),
            Some("find the largest video files")
        );
        assert_eq!(more_words(Some("find the largest video files"), &lesson), None);
        lesson.content = "no quotation".to_owned();
        assert_eq!(more_words(None, &lesson).as_deref(), Some("find the largest"));
    }
}
