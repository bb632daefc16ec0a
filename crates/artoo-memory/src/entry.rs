//! The numbers of a record without its words: what a group's index holds, one short line of text each (design §15).
//!
//! Owns: that line. Must not know: the store, sums.

use crate::keys;
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Timestamp, Valence};

/// A living record without its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The record.
    pub id: MegramId,
    /// Its layer.
    pub level: Level,
    /// When it happened.
    pub created_at: Timestamp,
    /// What it comes from.
    pub state: MacroState,
    /// Its magnitude.
    pub f: Magnitude,
    /// Its valence.
    pub sigma: Valence,
    /// Its decay.
    pub k: DecayPerDay,
    /// Equal for contents that differ in case and spacing at most.
    pub words: u64,
}

const STATES: [(MacroState, &str); 8] = [
    (MacroState::Abandon, "abandon"),
    (MacroState::Accept, "accept"),
    (MacroState::ChangeApproach, "change_approach"),
    (MacroState::Success, "success"),
    (MacroState::BreakSymmetry, "break_symmetry"),
    (MacroState::ChangePath, "change_path"),
    (MacroState::Refine, "refine"),
    (MacroState::Remember, "remember"),
];

impl Entry {
    /// The numbers of a record.
    pub fn of(megram: &Megram) -> Self {
        Self {
            id: megram.id.clone(),
            level: megram.level,
            created_at: megram.created_at,
            state: megram.state,
            f: megram.f,
            sigma: megram.sigma,
            k: megram.k,
            words: words(&megram.content),
        }
    }

    /// The key in the group's index.
    pub(crate) fn key(&self, space: &str, entity: &str) -> String {
        keys::entry(space, entity, self.level, self.created_at, &self.id)
    }

    /// `f,σ,k,state,words`.
    pub(crate) fn value(&self) -> String {
        let state = STATES.iter().find(|(state, _)| *state == self.state);
        let name = state.map_or("", |(_, name)| name);
        format!("{},{},{},{name},{:x}", self.f, self.sigma, self.k, self.words)
    }

    /// Reads an entry of a group's index; `None` for what is none.
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let key = std::str::from_utf8(key).ok()?;
        let mut parts = key.rsplitn(4, '|');
        let (id, time, level) = (parts.next()?, parts.next()?, parts.next()?);
        let level = [Level::C, Level::K, Level::M]
            .into_iter()
            .find(|known| known.letter() == level)?;
        let created_at = Timestamp::from_millis(keys::counted_down(time)?);
        Self::numbers(MegramId::new(keys::unescape(id)?), level, created_at, value)
    }

    fn numbers(id: MegramId, level: Level, created_at: Timestamp, value: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(value).ok()?.split(',');
        let mut number = || parts.next()?.parse::<f64>().ok();
        let (f, sigma, k) = (number()?, number()?, number()?);
        let name = parts.next()?;
        let (state, _) = STATES.iter().find(|(_, known)| *known == name)?;
        Some(Self {
            id,
            level,
            created_at,
            state: *state,
            f: Magnitude::new(f).ok()?,
            sigma: Valence::new(sigma).ok()?,
            k: DecayPerDay::new(k).ok()?,
            words: u64::from_str_radix(parts.next()?, 16).ok()?,
        })
    }
}

/// FNV-1a over the words in lower case.
fn words(content: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for word in content.split_whitespace() {
        if word.is_ascii() {
            word.bytes().for_each(|byte| add(byte.to_ascii_lowercase()));
        } else {
            word.to_lowercase().bytes().for_each(&mut add);
        }
        add(b' ');
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, megram};
    use proptest::prelude::*;

    #[test]
    fn contents_that_differ_in_case_and_spacing_have_the_same_words() {
        assert_eq!(words("Use  `fd`\n for ÄPFEL"), words("use `fd` for äpfel"));
        assert_ne!(words("ab c"), words("a bc"));
    }

    proptest! {
        #[test]
        fn entries_survive_their_line(
            id in "\\PC{1,9}", f in 0.0..=1.0_f64, sigma in -1.0..=1.0_f64, k in 0.0..9.0_f64, millis in any::<i64>(), state in 0..8_usize,
        ) {
            let mut m = megram(&id, "a|b", "c|%", f, sigma);
            (m.k, m.state, m.created_at) = (DecayPerDay::new(k).unwrap(), STATES[state].0, Timestamp::from_millis(millis));
            let entry = Entry::of(&m);
            let key = entry.key(&m.space, &m.entity);
            prop_assert!(key.starts_with(&keys::entries_of("a|b", "c|%", Level::M)));
            prop_assert_eq!(Entry::read(key.as_bytes(), entry.value().as_bytes()), Some(entry));
        }

        #[test]
        fn the_newest_entry_comes_first(earlier in any::<i64>(), later in any::<i64>()) {
            let key = |millis: i64| keys::entry("s", "e", Level::M, Timestamp::from_millis(millis), &MegramId::new("1"));
            let order = Timestamp::from_millis(earlier).cmp(&Timestamp::from_millis(later));
            prop_assert_eq!(key(later).cmp(&key(earlier)), order);
        }
    }

    #[test]
    fn what_is_no_entry_is_not_read() {
        let key = keys::entry("s", "e", Level::M, at(), &MegramId::new("1"));
        for value in [
            "",
            "1",
            "1,1,1,accept",
            "-2,1,1,accept,0",
            "1,1,1,other,0",
            "1,1,1,accept,zz",
        ] {
            assert_eq!(Entry::read(key.as_bytes(), value.as_bytes()), None, "{value}");
        }
    }
}
