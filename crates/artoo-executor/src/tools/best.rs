//! The first of many paths, however many are found (design §8).
//!
//! Owns an order, and that only so many are kept: a search that finds a million files takes the memory of a few hundred, and
//! finds the same ones whichever thread comes upon them first. Knows no search.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use super::find_files::Sort;

/// A path with its size, where that was asked for.
pub(super) type Found = (u64, PathBuf);

/// What was found so far.
#[derive(Debug)]
pub(super) struct Best {
    sort: Sort,
    most: usize,
    /// At most twice `most`; where `worst` is known, what is behind it can only be better.
    kept: Vec<Found>,
    worst: Option<usize>,
    matches: u64,
}

impl Best {
    /// Nothing yet, and at most so many at the end; at least one.
    pub fn new(sort: Sort, most: usize) -> Self {
        Self {
            sort,
            most: most.max(1),
            kept: Vec::new(),
            worst: None,
            matches: 0,
        }
    }

    /// Counts a path, and keeps it if it can be among the first.
    pub fn note(&mut self, size: u64, path: &Path) {
        self.matches += 1;
        self.keep(size, path, Path::to_owned);
    }

    /// Takes over what another one found.
    pub fn absorb(&mut self, other: Self) {
        self.matches += other.matches;
        for (size, path) in other.kept {
            self.keep(size, path, |path| path);
        }
    }

    /// How many there were, and the first of them in order.
    pub fn finish(mut self) -> (u64, Vec<Found>) {
        let sort = self.sort;
        self.kept.sort_unstable_by(|a, b| order(sort, (a.0, &a.1), (b.0, &b.1)));
        self.kept.truncate(self.most);
        (self.matches, self.kept)
    }

    fn keep<P: AsRef<Path>>(&mut self, size: u64, path: P, own: impl FnOnce(P) -> PathBuf) {
        let worst = self.worst.and_then(|at| self.kept.get(at));
        if worst.is_some_and(|worst| order(self.sort, (size, path.as_ref()), (worst.0, &worst.1)).is_ge()) {
            return;
        }
        self.kept.push((size, own(path)));
        if self.kept.len() >= self.most.saturating_mul(2) {
            let (sort, last) = (self.sort, self.most - 1);
            self.kept
                .select_nth_unstable_by(last, |a, b| order(sort, (a.0, &a.1), (b.0, &b.1)));
            self.kept.truncate(self.most);
            self.worst = Some(last);
        }
    }
}

fn order(sort: Sort, a: (u64, &Path), b: (u64, &Path)) -> Ordering {
    let by_path = || parts(a.1).cmp(parts(b.1));
    match sort {
        Sort::Path => by_path(),
        Sort::Size => b.0.cmp(&a.0).then_with(by_path),
    }
}

/// The bytes of a clean path such that their order is that of its parts: what is in a folder comes before what only begins
/// with the folder's name.
fn parts(path: &Path) -> impl Iterator<Item = u8> {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.map(|&byte| if byte == b'/' { 0 } else { byte })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_are_those_of_the_whole_list(
            names in proptest::collection::vec(("[a-c!é]{1,2}(/[a-c!][a-c.!]?){0,2}", 0_u64..4), 0..60),
            most in 1_usize..8, threads in 1_usize..4,
        ) {
            let named = names.into_iter().map(|(name, size)| (Path::new("/r").join(name), size));
            // No folder holds a name twice.
            let named: std::collections::BTreeMap<_, _> = named.collect();
            let all: Vec<Found> = named.into_iter().map(|(path, size)| (size, path)).collect();
            for sort in [Sort::Path, Sort::Size] {
                let mut shares: Vec<Best> = (0..threads).map(|_| Best::new(sort, most)).collect();
                for (at, (size, path)) in all.iter().enumerate() {
                    shares[at % threads].note(*size, path);
                }
                let mut best = Best::new(sort, most);
                for share in shares {
                    best.absorb(share);
                }
                let mut expected = all.clone();
                match sort {
                    Sort::Path => expected.sort_by(|a, b| a.1.cmp(&b.1)),
                    Sort::Size => expected.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1))),
                }
                expected.truncate(most);
                prop_assert_eq!(best.finish(), (all.len() as u64, expected));
            }
        }
    }
}
