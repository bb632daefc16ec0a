//! Whether the clock can be trusted to say what is old (design §15).
//!
//! What is forgotten is gone, and a clock that is a year ahead makes everything old. Nobody can tell a clock that is wrong from one that was
//! set right, so age is not taken from the clock: it is the time that passes have seen go by. A leap of the clock, or a long absence,
//! which looks the same, counts as a day, so that who seldom comes forgets too; and what lags behind the clock catches up by a quarter of
//! what goes by. So nothing goes before four fifths of its time were lived through, a leap being a day of that, whatever the clock did.
//!
//! A clock that was set back takes that time along, so that what is written under the wrong date is not old when the right one
//! returns; and while it is behind, old entries count as new and say nothing about rules. Potentials need no such care; they are right
//! again with the clock.
//!
//! Owns that judgement and its stored form. Must not know what forgetting is.

use super::choose::Params;
use super::pass::Mode;
use crate::keys;
use crate::kv::{Batch, Kv, KvError};
use artoo_protocol::{Millis, Timestamp};

const DAY: u64 = 24 * 3600;
/// Two passes that lie further apart than this have a leap between them.
const LEAP: Millis = Millis::from_seconds(30 * DAY);
/// A clock that is set back by no more than this was only put right.
const SLIP: Millis = Millis::from_seconds(3600);
/// For so long after the clock was set back nothing is forgotten.
const WARY: Millis = Millis::from_seconds(DAY);
/// What a leap forward, or a long absence, counts for.
const LEAP_COUNTS: Millis = Millis::from_seconds(DAY);
/// So far a clock that is set back takes the time along by which things are old.
const BACK_MAX: Millis = Millis::from_seconds(400 * DAY);
/// Of the time that goes by, this part is made up for what was leapt over.
const CATCH_UP: u64 = 4;

/// What passes have seen of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Awake {
    /// The clock at the last one.
    seen: Timestamp,
    /// The moment by which things are old.
    settled: Timestamp,
    /// The latest that this ever was.
    crest: Timestamp,
    /// How long time has gone on since a leap.
    lived: Millis,
}

impl Awake {
    /// As it is at `now`.
    fn at(before: Option<Self>, now: Timestamp) -> Self {
        let Some(before) = before else {
            return Self {
                seen: now,
                settled: now,
                crest: now,
                lived: Millis(0),
            };
        };
        let (step, back) = (now.since(before.seen), before.seen.since(now));
        let has_leapt = step > LEAP;
        let gone_by = if has_leapt { LEAP_COUNTS } else { step };
        let Self {
            mut settled,
            mut crest,
            lived,
            ..
        } = before;
        let lived = if has_leapt || back > SLIP { Millis(0) } else { lived };
        let lived = Millis(lived.0.saturating_add(gone_by.0));
        settled = settled.plus(gone_by).plus(Millis(gone_by.0 / CATCH_UP));
        settled = settled.min(now.max(earlier(crest, BACK_MAX)));
        if lived >= LEAP {
            // What has gone on for so long is the time.
            crest = crest.min(now);
        }
        Self {
            seen: now,
            settled,
            crest: crest.max(settled),
            lived,
        }
    }

    /// Whether the clock says an earlier time than what was lived through.
    fn is_behind(self) -> bool {
        self.crest.since(self.seen) > LEAP
    }

    fn read(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(' ').collect();
        let moment = |text: &str| Timestamp::parse(text).ok();
        if let [seen, settled, crest, lived] = *parts.as_slice() {
            return Some(Self {
                seen: moment(seen)?,
                settled: moment(settled)?,
                crest: moment(crest)?,
                lived: Millis(lived.parse().ok()?),
            });
        }
        // As it was written before: since when, and when it was last seen.
        let [since, seen] = *parts.as_slice() else { return None };
        let (since, seen) = (moment(since)?, moment(seen)?);
        Some(Self {
            seen,
            settled: seen,
            crest: seen,
            lived: seen.since(since),
        })
    }

    fn write(self) -> String {
        format!("{} {} {} {}", self.seen, self.settled, self.crest, self.lived.0)
    }

    fn applied_to(self, params: Params) -> Params {
        Params {
            forgets: params.forgets && self.lived >= WARY && !self.is_behind(),
            lag: self.seen.since(self.settled),
            judges_rules: params.judges_rules && !self.is_behind(),
            ..params
        }
    }
}

fn earlier(moment: Timestamp, span: Millis) -> Timestamp {
    let span = i64::try_from(span.0).unwrap_or(i64::MAX);
    Timestamp::from_millis(moment.as_millis().saturating_sub(span))
}

fn awake(kv: &dyn Kv, now: Timestamp) -> Result<Awake, KvError> {
    let before = kv.get(keys::AWAKE.as_bytes())?;
    let before = before.and_then(|text| Awake::read(std::str::from_utf8(&text).ok()?));
    Ok(Awake::at(before, now))
}

/// Notes that it is `now`; what a pass may take by its sense of time.
pub(super) fn noted(kv: &dyn Kv, now: Timestamp, params: Params) -> Result<Params, KvError> {
    let awake = awake(kv, now)?;
    note(kv, awake)?;
    Ok(awake.applied_to(params))
}

fn note(kv: &dyn Kv, awake: Awake) -> Result<(), KvError> {
    let mut batch = Batch::new();
    batch.put(keys::AWAKE, awake.write());
    kv.apply(batch)
}

/// What a pass may take that a person asks for: the same, but that nobody waits for a day where no time was seen go by yet. Noted where
/// the pass is carried out.
///
/// # Errors
/// [`KvError`] when the store cannot be read or written.
pub fn on_demand(kv: &dyn Kv, now: Timestamp, params: Params, mode: Mode) -> Result<Params, KvError> {
    let awake = awake(kv, now)?;
    match mode {
        Mode::Perform => note(kv, awake)?,
        Mode::Look => {}
    }
    Ok(Params {
        forgets: params.forgets && !awake.is_behind(),
        ..awake.applied_to(params)
    })
}

#[cfg(test)]
mod tests;
