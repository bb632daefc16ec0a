//! Potentials in constant time: the sums of a group, one pair for each rate of decay (design §15).
//!
//! A sum of exponentials of one rate k is one exponential: Σ f·e^(−k(t−tᵢ)) = e^(−k(t−r)) · Σ f·e^(k(tᵢ−r)) for any moment r. So a
//! group needs one number per rate and channel, whatever its history. The moment r moves in steps of 32/k days, so that terms stay
//! between f and e^32·f. Sums carry a second number for what rounding took away, so that what was added can be taken out again;
//! once far more was taken out than is left, the group says so and is summed anew.
//!
//! Three kinds of records cannot be in a sum and are kept *aside*: those of another rate, those that were made in the future,
//! and none else. A moment before the newest record of the sum cannot be asked for; then the entries are summed one by one.
//!
//! Owns: this arithmetic and its stored form. Must not know: the store, keys.

use crate::entry::Entry;
use crate::potentials::{ATTENTION_THRESHOLD, action};
use artoo_protocol::message::{Level, Potentials};
use artoo_protocol::{Finite, Timestamp};
use serde::{Deserialize, Serialize};

/// The rates of the quantisation matrix, and that of rules. Records of any other rate are kept aside.
pub const RATES: [f64; 4] = [0.0, 0.05, 0.2, 0.5];
/// How far, in half-lives of e, the moment of reference may lie from a term.
const SPAN: f64 = 32.0;
const MILLIS_PER_DAY: f64 = 86_400_000.0;
/// When so many times more was taken out than is left, what is left is no longer exact enough.
const OUTWEIGHS: f64 = 1e4;
/// The stored form begins with this; what was JSON began with a brace.
const FORM: u8 = 1;
/// The moment until which a group counts is rounded up to this.
const HOUR: i64 = 3_600_000;

/// Living records per level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Raw events.
    pub m: u64,
    /// Knowledge.
    pub k: u64,
    /// Rules.
    pub c: u64,
}

impl Counts {
    /// All levels together.
    pub const fn total(self) -> u64 {
        self.m + self.k + self.c
    }

    pub(crate) fn add(&mut self, level: Level) {
        if let Some(count) = self.of(level) {
            *count += 1;
        }
    }

    fn of(&mut self, level: Level) -> Option<&mut u64> {
        match level {
            Level::M => Some(&mut self.m),
            Level::K => Some(&mut self.k),
            Level::C => Some(&mut self.c),
            Level::T => None,
        }
    }
}

/// A number and what rounding took from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Exact(f64, f64);

impl Exact {
    fn add(&mut self, term: f64) {
        let sum = self.0 + term;
        let part = sum - self.0;
        self.1 += (self.0 - (sum - part)) + (term - part);
        self.0 = sum;
    }

    fn scale(&mut self, by: f64) {
        *self = Self(self.0 * by, self.1 * by);
    }

    fn get(self) -> f64 {
        self.0 + self.1
    }
}

/// The sums of one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Slot {
    /// The moment of reference, in milliseconds.
    at: i64,
    attention: Exact,
    decision: Exact,
}

/// The sums of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// How many records count.
    pub counts: Counts,
    /// How many of them are kept aside.
    pub aside: u64,
    /// Until when the group counts, as its key says; `None` for a group without such a key.
    pub until: Option<i64>,
    /// The newest record within the sums, in milliseconds.
    newest: Option<i64>,
    /// Σ|f| of what is in the sums, and of what was taken out since they were made.
    mass: Exact,
    removed: f64,
    slots: [Option<Slot>; RATES.len()],
}

impl Sums {
    /// Whether nothing counts.
    pub const fn is_empty(&self) -> bool {
        self.counts.total() == 0
    }

    /// Whether this entry can be within the sums when it is written at `now`.
    pub fn takes(entry: &Entry, now: Timestamp) -> bool {
        entry.created_at <= now && rate(entry).is_some()
    }

    /// Adds an entry.
    pub fn add(&mut self, entry: &Entry) {
        let millis = entry.created_at.as_millis();
        self.newest = Some(self.newest.map_or(millis, |newest| newest.max(millis)));
        self.mass.add(entry.f.get());
        self.change(entry, 1.0);
        self.count(entry, true);
    }

    /// Takes out an entry that was added.
    pub fn remove(&mut self, entry: &Entry) {
        self.mass.add(-entry.f.get());
        self.removed += entry.f.get();
        self.change(entry, -1.0);
        self.count(entry, false);
        if self.counts.total() == self.aside {
            *self = Self {
                counts: self.counts,
                aside: self.aside,
                until: self.until,
                ..Self::default()
            };
        }
    }

    /// Counts an entry that is kept aside, or no longer.
    pub fn count_aside(&mut self, entry: &Entry, is_there: bool) {
        self.count(entry, is_there);
        self.aside = if is_there {
            self.aside + 1
        } else {
            self.aside.saturating_sub(1)
        };
    }

    /// Whether so much was taken out that the rest should be summed anew.
    pub fn is_worn(&self) -> bool {
        self.removed > OUTWEIGHS * self.mass.get().max(0.0)
    }

    /// Attention and decision at `now` of what is within the sums; `None` for a moment before the newest record.
    pub fn at(&self, now: Timestamp) -> Option<(f64, f64)> {
        if self.newest.is_some_and(|newest| newest > now.as_millis()) {
            return None;
        }
        Some(self.faded(now.as_millis()))
    }

    /// Whether two sums are of the same records, to 1e-9 of their Σ|f|.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let at = self.newest.max(other.newest).unwrap_or_default();
        let (left, right) = (self.faded(at), other.faded(at));
        let allowed = 1e-9 * self.mass.get().max(other.mass.get()) + f64::MIN_POSITIVE;
        (self.counts, self.aside) == (other.counts, other.aside)
            && (left.0 - right.0).abs() <= allowed
            && (left.1 - right.1).abs() <= allowed
    }

    fn faded(&self, now: i64) -> (f64, f64) {
        let (mut attention, mut decision) = (0.0, 0.0);
        for (slot, k) in self.slots.iter().zip(RATES) {
            if let Some(slot) = slot {
                let left = (k * days(slot.at - now)).exp();
                attention += left * slot.attention.get();
                decision += left * slot.decision.get();
            }
        }
        // What rounding leaves of a sum without energy is no energy.
        (attention.max(0.0), decision)
    }

    /// The last moment, rounded up, at which the group's attention reaches the threshold, unless something is written to it; `None` for
    /// a group that is below it already when its newest record is made. With anything aside it counts for ever.
    pub fn counts_until(&self) -> Option<i64> {
        if self.aside > 0 {
            return Some(i64::MAX);
        }
        let newest = self.newest?;
        let counts = |at: i64| self.faded(at).0 >= ATTENTION_THRESHOLD - 1e-9;
        if !counts(newest) {
            return None;
        }
        if self.slots[0].is_some_and(|slot| slot.attention.get() >= ATTENTION_THRESHOLD - 1e-9) {
            return Some(i64::MAX);
        }
        let mut step = HOUR;
        while counts(newest.saturating_add(step)) && step < i64::MAX / 4 {
            step *= 2;
        }
        let (mut low, mut high) = (newest.saturating_add(step / 2), newest.saturating_add(step));
        while high - low > HOUR {
            let middle = low + (high - low) / 2;
            if counts(middle) { low = middle } else { high = middle }
        }
        Some((high / HOUR + 1) * HOUR)
    }

    /// The stored form: numbers of eight bytes, least first, with a checksum. It is written with every record, and a third as long
    /// as the JSON that it was before.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(160);
        bytes.push(FORM);
        let here = |slot: usize| self.slots.get(slot).is_some_and(Option::is_some);
        let flags = [self.until.is_some(), self.newest.is_some()]
            .into_iter()
            .chain((0..RATES.len()).map(here));
        bytes.push(flags.enumerate().map(|(bit, is_set)| u8::from(is_set) << bit).sum());
        let mut put = |number: [u8; 8]| bytes.extend_from_slice(&number);
        for count in [self.counts.m, self.counts.k, self.counts.c, self.aside] {
            put(count.to_le_bytes());
        }
        for moment in self.until.into_iter().chain(self.newest) {
            put(moment.to_le_bytes());
        }
        for number in [self.mass.0, self.mass.1, self.removed] {
            put(number.to_le_bytes());
        }
        for slot in self.slots.iter().flatten() {
            put(slot.at.to_le_bytes());
            for sum in [slot.attention, slot.decision] {
                put(sum.0.to_le_bytes());
                put(sum.1.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Reads the stored form, and the JSON with a checksum that was stored before; `None` where it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.first() != Some(&FORM) {
            return crate::codec::read_sealed(bytes);
        }
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let flags = *body.get(1)?;
        let is_set = |bit: usize| flags >> bit & 1 == 1;
        let mut rest = body.get(2..)?;
        let mut next = || {
            let (number, behind) = rest.split_first_chunk::<8>()?;
            rest = behind;
            Some(*number)
        };
        let mut sums = Self::default();
        for count in [
            &mut sums.counts.m,
            &mut sums.counts.k,
            &mut sums.counts.c,
            &mut sums.aside,
        ] {
            *count = u64::from_le_bytes(next()?);
        }
        for (bit, moment) in [&mut sums.until, &mut sums.newest].into_iter().enumerate() {
            if is_set(bit) {
                *moment = Some(i64::from_le_bytes(next()?));
            }
        }
        for number in [&mut sums.mass.0, &mut sums.mass.1, &mut sums.removed] {
            *number = f64::from_le_bytes(next()?);
        }
        for (_, slot) in sums
            .slots
            .iter_mut()
            .enumerate()
            .filter(|(number, _)| is_set(number + 2))
        {
            *slot = Some(Slot {
                at: i64::from_le_bytes(next()?),
                attention: Exact(f64::from_le_bytes(next()?), f64::from_le_bytes(next()?)),
                decision: Exact(f64::from_le_bytes(next()?), f64::from_le_bytes(next()?)),
            });
        }
        Some(sums)
    }

    fn change(&mut self, entry: &Entry, sign: f64) {
        let Some((slot, k)) = rate(entry).and_then(|number| Some((self.slots.get_mut(number)?, *RATES.get(number)?)))
        else {
            return;
        };
        let millis = entry.created_at.as_millis();
        let reference = reference(k, millis);
        let slot = slot.get_or_insert(Slot {
            at: reference,
            ..Slot::default()
        });
        if reference > slot.at {
            let by = (k * days(slot.at - reference)).exp();
            slot.attention.scale(by);
            slot.decision.scale(by);
            slot.at = reference;
        }
        let term = sign * entry.f.get() * (k * days(millis - slot.at)).exp();
        slot.attention.add(term);
        slot.decision.add(entry.sigma.get() * term);
    }

    fn count(&mut self, entry: &Entry, is_there: bool) {
        if let Some(count) = self.counts.of(entry.level) {
            *count = if is_there { *count + 1 } else { count.saturating_sub(1) };
        }
    }
}

/// Potentials from the two sums.
pub fn quantised(attention: f64, decision: f64) -> Potentials {
    Potentials {
        attention: Finite::new(attention).unwrap_or_default(),
        decision: Finite::new(decision).unwrap_or_default(),
        action: action(attention, decision),
    }
}

#[expect(clippy::float_cmp, reason = "a rate is in the matrix or it is not")]
fn rate(entry: &Entry) -> Option<usize> {
    RATES.iter().position(|rate| *rate == entry.k.get())
}

/// The beginning of the stretch of 32/k days that holds a moment.
fn reference(k: f64, millis: i64) -> i64 {
    if k <= 0.0 {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most 640 days")]
    let stretch = (SPAN / k * MILLIS_PER_DAY) as i64;
    millis.div_euclid(stretch) * stretch
}

fn days(millis: i64) -> f64 {
    millis as f64 / MILLIS_PER_DAY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::potentials::{Later, potentials};
    use crate::testing::{at, megram};
    use artoo_protocol::message::Megram;
    use artoo_protocol::{DecayPerDay, Millis};
    use proptest::prelude::*;

    const DAY: i64 = 86_400_000;

    fn record(f: f64, sigma: f64, rate: usize, age_days: i64) -> Megram {
        let mut m = megram("1", "s", "e", f, sigma);
        m.k = DecayPerDay::new(RATES[rate]).unwrap();
        m.created_at = Timestamp::from_millis(at().as_millis() - age_days * DAY);
        m
    }

    fn check(sums: &Sums, living: &[Megram], now: Timestamp) {
        let plain = potentials(living, now, Later::CountsAsNew);
        let (attention, decision) = sums.at(now).unwrap();
        let mass: f64 = living.iter().map(|m| m.f.get()).sum();
        let allowed = 1e-9 * mass + f64::MIN_POSITIVE;
        assert!(
            (attention - plain.attention.get()).abs() <= allowed,
            "{attention} {}",
            plain.attention
        );
        assert!(
            (decision - plain.decision.get()).abs() <= allowed,
            "{decision} {}",
            plain.decision
        );
    }

    proptest! {
        #[test]
        fn sums_agree_with_the_plain_sum_under_any_history(
            rows in prop::collection::vec((0.0..=1.0_f64, -1.0..=1.0_f64, 0..4_usize, -40_000_i64..3_000, any::<bool>()), 1..150),
            later in 0_i64..4_000,
        ) {
            let mut sums = Sums::default();
            let mut living: Vec<Megram> = Vec::new();
            for (f, sigma, rate, age, goes) in rows {
                let m = record(f, sigma, rate, age.max(-30_000));
                sums.add(&Entry::of(&m));
                living.push(m);
                if goes {
                    sums.remove(&Entry::of(&living.remove(living.len() / 2)));
                }
                sums = Sums::decode(&sums.encode()).unwrap();
            }
            let newest = living.iter().map(|m| m.created_at).max().unwrap_or(at());
            prop_assume!(!sums.is_worn());
            for after in [0, 1, later] {
                let newest = newest.max(at()).plus(Millis(u64::try_from(30_000 * DAY).unwrap()));
                check(&sums, &living, newest.plus(Millis((after * DAY).cast_unsigned())));
            }
            if let Some(newest) = sums.newest {
                check(&sums, &living, Timestamp::from_millis(newest));
            }
        }

        #[test]
        fn a_group_counts_until_the_moment_it_says(
            rows in prop::collection::vec((0.0..=1.0_f64, 0..4_usize, 0_i64..300), 1..20),
        ) {
            let mut sums = Sums::default();
            for (f, rate, age) in &rows {
                sums.add(&Entry::of(&record(*f, 1.0, *rate, *age)));
            }
            let newest = sums.newest.unwrap();
            let attention = |millis: i64| sums.faded(millis).0;
            match sums.counts_until() {
                None => prop_assert!(attention(newest) < 0.5),
                Some(i64::MAX) => prop_assert!(attention(newest + 100_000 * DAY) >= 0.5 - 1e-9),
                Some(until) => {
                    prop_assert!(attention(until) < 0.5);
                    prop_assert!(attention(until - 3 * HOUR) >= 0.5 - 1e-9 || until - 3 * HOUR < newest);
                }
            }
        }
    }

    #[test]
    fn any_flipped_bit_of_the_stored_form_is_noticed_and_the_json_of_before_is_read() {
        let mut sums = Sums::default();
        for (rate, sigma) in [(0, 1.0), (2, -0.5), (3, 0.0)] {
            sums.add(&Entry::of(&record(0.7, sigma, rate, 3)));
        }
        sums.until = sums.counts_until();
        let bytes = sums.encode();
        assert_eq!(Sums::decode(&bytes), Some(sums.clone()));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(Sums::decode(&bad), None, "byte {at} bit {bit}");
            }
            assert_eq!(Sums::decode(&bytes[..at]), None, "cut at {at}");
        }
        assert_eq!(Sums::decode(&crate::codec::seal_json(&sums).unwrap()), Some(sums));
    }

    #[test]
    fn a_hundred_thousand_records_that_go_leave_nothing_behind() {
        let mut sums = Sums::default();
        let rest = record(0.3, 0.0, 1, 10);
        sums.add(&Entry::of(&rest));
        let entries: Vec<Entry> = (0..100_000)
            .map(|n| Entry::of(&record(0.95, -1.0, 1, 2_000 - n % 1_999)))
            .collect();
        for entry in &entries {
            sums.add(entry);
        }
        entries.iter().take(2_000).for_each(|entry| sums.remove(entry));
        assert!(!sums.is_worn());
        entries.iter().skip(2_000).for_each(|entry| sums.remove(entry));
        check(&sums, std::slice::from_ref(&rest), at());
        assert!(sums.is_worn(), "and it asks to be made anew");
        sums.remove(&Entry::of(&rest));
        assert_eq!(sums, Sums::default());
    }

    #[test]
    fn what_a_sum_cannot_hold_is_said() {
        let mut entry = Entry::of(&megram("1", "s", "e", 0.5, 1.0));
        assert!(Sums::takes(&entry, at()));
        assert!(
            !Sums::takes(&entry, Timestamp::from_millis(at().as_millis() - 1)),
            "from the future"
        );
        entry.k = DecayPerDay::new(0.07).unwrap();
        assert!(!Sums::takes(&entry, at()), "another rate");
        let mut sums = Sums::default();
        sums.count_aside(&entry, true);
        assert_eq!((sums.aside, sums.counts.m, sums.counts_until()), (1, 1, Some(i64::MAX)));
        sums.count_aside(&entry, false);
        assert!(sums.is_empty());
        sums.add(&Entry::of(&record(0.5, 1.0, 1, 0)));
        assert_eq!(
            sums.at(Timestamp::from_millis(at().as_millis() - 1)),
            None,
            "a moment before it"
        );
    }
}
