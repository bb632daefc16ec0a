//! Seeded luck that is the same on every machine and for every policy.
//!
//! Owns the streams: one per purpose, task and round. Two policies that meet the same task in the same round meet the same
//! outages, the same verdict noise and the same moods of the planner; so their differences are the policies' own.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What a stream of luck is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// How the task is made.
    Making,
    /// What happens in the world in one round.
    World(u32),
    /// What the planner makes of a demand in one round.
    Planning(u32),
    /// What the policy itself leaves to chance in one round.
    Policy(u32),
}

impl Purpose {
    fn number(self) -> u64 {
        let of = |kind: u64, round: u32| (kind << 32) | u64::from(round);
        match self {
            Self::Making => 0,
            Self::World(round) => of(1, round),
            Self::Planning(round) => of(2, round),
            Self::Policy(round) => of(3, round),
        }
    }
}

/// A stream of luck.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// The stream of task number `task` of `family` for one purpose.
    pub fn new(seed: u64, family: u64, task: u64, purpose: Purpose) -> Self {
        let mixed = [family, task, purpose.number()].into_iter().fold(seed, mix);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// From 0 up to but not 1, in steps of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// True in `p` of all cases.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// From `low` up to but not `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// From 0 up to but not `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let high = (u128::from(self.0.next_u64()) * n as u128) >> 64;
        usize::try_from(high).unwrap_or_default()
    }

    /// From `low` to `high`, both among them.
    pub fn count(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// The position of one of these weights, each as likely as it is heavy; `None` when none is above 0.
    pub fn weighted(&mut self, weights: impl Iterator<Item = f64> + Clone) -> Option<usize> {
        let whole: f64 = weights.clone().sum();
        let mut left = self.unit() * whole;
        let mut last = None;
        for (position, weight) in weights.enumerate() {
            if weight > 0.0 {
                last = Some(position);
                left -= weight;
                if left < 0.0 {
                    break;
                }
            }
        }
        last
    }
}

/// Mixes a number into a hash (the finaliser of SplitMix64).
fn mix(hash: u64, number: u64) -> u64 {
    let mut z = hash
        .wrapping_add(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(number.wrapping_mul(0xff51_afd7_ed55_8ccd));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
