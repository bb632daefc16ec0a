//! Numbers with a meaning: each unit is a type, and NaN and infinity are refused here, once (design §4).
//!
//! Owns ranges and formats of scalar values. Must not read the clock: a [`Timestamp`] is always given.

use jiff::tz::{Offset, TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A number outside the range of its unit.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{value} is not {expected}")]
pub struct OutOfRange {
    /// What was given.
    pub value: f64,
    /// What the unit allows, in words.
    pub expected: &'static str,
}

macro_rules! checked_float {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0.0);

            /// Checks the range.
            ///
            /// # Errors
            /// [`OutOfRange`] for NaN, infinities and values outside the unit's range.
            pub fn new(value: f64) -> Result<Self, OutOfRange> {
                let valid: fn(f64) -> bool = $valid;
                // Adding 0.0 turns -0.0 into 0.0, so that equal values print equally.
                if value.is_finite() && valid(value) { Ok(Self(value + 0.0)) } else { Err(OutOfRange { value, expected: $expected }) }
            }

            /// The plain number.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = OutOfRange;
            fn try_from(value: f64) -> Result<Self, OutOfRange> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::ZERO
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

checked_float! {
    /// A finite number in [0, 1]: distances, shares, probabilities.
    Unit01, "a number from 0 to 1", |v| (0.0..=1.0).contains(&v)
}
checked_float! {
    /// A finite number in [−1, 1]: the sign and strength of a preference (σ).
    Valence, "a number from -1 to 1", |v| (-1.0..=1.0).contains(&v)
}
checked_float! {
    /// The strength of a memory (f): up to 1 for one event, more for events that were folded into one.
    Magnitude, "a number from 0 to 1000000", |v| (0.0..=1e6).contains(&v)
}
checked_float! {
    /// A decay rate k ≥ 0 per day; 0 never fades.
    DecayPerDay, "a rate per day of 0 or more", |v| v >= 0.0
}
checked_float! {
    /// Any finite number: losses and gradients.
    Finite, "a finite number", |_| true
}

impl Unit01 {
    /// One.
    pub const ONE: Self = Self(1.0);

    /// The nearest value in [0, 1]; NaN becomes 1, the worst, because every use of this unit measures something bad or costly.
    pub fn clamped(value: f64) -> Self {
        if value.is_nan() {
            Self::ONE
        } else {
            Self(value.clamp(0.0, 1.0) + 0.0)
        }
    }
}

impl Magnitude {
    /// One.
    pub const ONE: Self = Self(1.0);

    /// The nearest value in range; NaN becomes 0: what is no number adds nothing.
    pub fn clamped(value: f64) -> Self {
        if value.is_nan() {
            Self::ZERO
        } else {
            Self(value.clamp(0.0, 1e6) + 0.0)
        }
    }
}

/// A span of time in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// So many seconds.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// The sum, at most the largest span.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// As the standard library's type.
    pub const fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 < 1000 {
            write!(f, "{} ms", self.0)
        } else {
            write!(f, "{}.{} s", self.0 / 1000, self.0 % 1000 / 100)
        }
    }
}

/// An instant: milliseconds since 1970 in UTC, written as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is no RFC 3339 instant.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a time: expected RFC 3339, such as 2026-02-27T09:30:00.000Z")]
pub struct NotATime(String);

/// The range that RFC 3339 can write in every zone: year 1 to the end of 9999. Values outside are moved to the nearest end.
const EARLIEST: i64 = -62_135_596_800_000;
const LATEST: i64 = 253_402_207_200_000;

impl Timestamp {
    /// From milliseconds since 1970; moved into the years 1 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(EARLIEST, LATEST))
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339, with any offset.
    ///
    /// # Errors
    /// [`NotATime`] for anything else.
    pub fn parse(text: &str) -> Result<Self, NotATime> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self::from_millis(t.as_millisecond()))
            .map_err(|_| NotATime(crate::text::first_n(text, 60)))
    }

    /// The span since `earlier`; zero when `earlier` lies in the future (a clock that was set back).
    pub fn since(self, earlier: Self) -> Millis {
        Millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This instant moved forward.
    #[must_use]
    pub fn plus(self, span: Millis) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX)))
    }

    fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The user's time zone at start: what "today" means in a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalZone {
    /// Name for people, such as `Europe/Berlin`; may be empty.
    pub name: String,
    /// Minutes east of UTC, from −1559 to 1559.
    pub utc_offset_minutes: i32,
}

impl LocalZone {
    /// Date, weekday, time and zone of `now` in words for a prompt, such as `2026-02-27 (Friday) 10:30 +01:00 Europe/Berlin`.
    pub fn describe(&self, now: Timestamp) -> String {
        let offset = Offset::from_seconds(self.utc_offset_minutes.saturating_mul(60)).unwrap_or(Offset::UTC);
        let local = now.to_jiff().to_zoned(TimeZone::fixed(offset));
        let text = local.strftime("%Y-%m-%d (%A) %H:%M %:z").to_string();
        if self.name.is_empty() {
            text
        } else {
            format!("{text} {}", self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nan_and_infinity_cannot_be_constructed() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Unit01::new(bad).is_err());
            assert!(Valence::new(bad).is_err());
            assert!(Magnitude::new(bad).is_err());
            assert!(DecayPerDay::new(bad).is_err());
            assert!(Finite::new(bad).is_err());
        }
        assert!(serde_json::from_str::<Unit01>("1.0000001").is_err());
        assert!(serde_json::from_str::<Unit01>("1").is_ok());
    }

    #[test]
    fn times_are_written_with_milliseconds() {
        let t = Timestamp::parse("2026-02-27T10:30:00+01:00").unwrap();
        assert_eq!(t.to_string(), "2026-02-27T09:30:00.000Z");
        let zone = LocalZone {
            name: "Europe/Berlin".into(),
            utc_offset_minutes: 60,
        };
        assert_eq!(zone.describe(t), "2026-02-27 (Friday) 10:30 +01:00 Europe/Berlin");
    }

    #[test]
    fn a_clock_set_back_gives_no_negative_span() {
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Millis(0));
    }

    proptest! {
        #[test]
        fn every_timestamp_survives_its_text(ms in any::<i64>()) {
            let t = Timestamp::from_millis(ms);
            prop_assert_eq!(Timestamp::parse(&t.to_string()).unwrap(), t);
        }
        #[test]
        fn clamping_always_gives_a_valid_share(v in any::<f64>()) {
            prop_assert!(Unit01::new(Unit01::clamped(v).get()).is_ok());
            prop_assert!(Magnitude::new(Magnitude::clamped(v).get()).is_ok());
        }
    }
}
