//! Is the log what was written? (design §16)
//!
//! Owns the check of every record, of the order of the files, of the head and of checkpoints, and the name of what was done.
//! Reads only, so that it may be used while another process writes; looks at each byte once and holds one line.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::chain::{Broken, Damage, Frame, Hash, Kind, Link};
use crate::checkpoint::Checkpoint;
use crate::files::{Files, LogError};
use crate::lines::Lines;

/// An intact log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Records.
    pub records: u64,
    /// Messages among them.
    pub envelopes: u64,
    /// Deeds among them.
    pub deeds: u64,
    /// Findings of detectors among them.
    pub findings: u64,
    /// Gap records among them.
    pub gaps: u64,
    /// Notes about the log itself among them.
    pub notes: u64,
    /// Sums up to a record among them.
    pub counts: u64,
    /// Files that the log consists of.
    pub files: u64,
    /// Bytes of whole records.
    pub bytes: u64,
    /// Checkpoints that the log agrees with.
    pub checkpoints: u64,
    /// Records behind the head: written by a process that runs or was killed.
    pub behind_head: u64,
    /// The last record.
    pub last: Link,
    /// Length of a last record that is not finished, for the same reason.
    pub unfinished_bytes: u64,
}

/// Why a line was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is not the record that follows; [`Verifier::diagnose`] says why.
    Strange,
    /// It is, but it should not be.
    Broken(Broken),
}

/// Follows a chain record by record. Cloning it makes it possible to try several continuations.
#[derive(Clone, Debug)]
pub struct Verifier {
    link: Link,
    verified: Verified,
    head: Option<Link>,
    head_fits: Option<bool>,
    /// What checkpoints say about records that are still to come: all of them, since two that contradict each other cannot both be true.
    witnesses: BTreeMap<u64, Vec<Hash>>,
}

impl Verifier {
    /// At the beginning of a log; `head` is what `audit.head` says.
    pub fn new(head: Option<Link>, checkpoints: &[Checkpoint]) -> Self {
        let link = Link::genesis();
        let mut witnesses = BTreeMap::<u64, Vec<Hash>>::new();
        for point in checkpoints {
            witnesses.entry(point.n).or_default().push(point.hash);
        }
        Self {
            link,
            verified: Verified::default(),
            head_fits: head.filter(|head| head.n == 0).map(|head| head == link),
            head,
            witnesses,
        }
    }

    /// Where the chain stands.
    pub const fn link(&self) -> Link {
        self.link
    }

    /// Takes the next line, without its line break.
    ///
    /// # Errors
    /// [`Refused::Strange`] when it is not the record that follows, [`Refused::Broken`] when a checkpoint contradicts it, or when it says
    /// itself that the log was damaged before it.
    pub fn take(&mut self, line: &[u8]) -> Result<(), Refused> {
        let Some(frame) = Frame::sound(line).filter(|frame| frame.follows(&self.link)) else {
            return Err(Refused::Strange);
        };
        self.link = frame.link();
        let verified = &mut self.verified;
        verified.records += 1;
        verified.bytes += u64::try_from(line.len() + 1).unwrap_or(0);
        match frame.kind {
            Kind::Envelope => verified.envelopes += 1,
            Kind::Gap => verified.gaps += 1,
            Kind::Note => verified.notes += 1,
            Kind::Deed => verified.deeds += 1,
            Kind::Finding => verified.findings += 1,
            Kind::Counts => verified.counts += 1,
            Kind::Damage => {
                let words: String = serde_json::from_slice(frame.body).unwrap_or_default();
                let detail = format!("{words}: nobody knows what was there before it");
                return Err(Refused::Broken(Broken::new(frame.n, Damage::HeadMissing, detail)));
            }
            Kind::Other => {}
        }
        if let Some(head) = self.head.filter(|head| head.n == self.link.n) {
            self.head_fits = Some(head == self.link);
        }
        if self.witnesses.first_key_value().is_some_and(|(n, _)| *n == self.link.n)
            && let Some((n, hashes)) = self.witnesses.pop_first()
        {
            if let Some(hash) = hashes.iter().find(|hash| **hash != self.link.hash) {
                let detail = format!("a checkpoint says that record {n} has the hash {hash}");
                return Err(Refused::Broken(Broken::new(n, Damage::Rewritten, detail)));
            }
            verified.checkpoints += u64::try_from(hashes.len()).unwrap_or(u64::MAX);
        }
        Ok(())
    }

    /// Says what is wrong with a line that was [`Strange`](Refused::Strange). `rest` gives the lines behind it.
    pub fn diagnose(&self, line: &[u8], rest: impl FnMut() -> Option<Vec<u8>>) -> Broken {
        diagnose(&self.link, self.head, self.head_fits == Some(true), line, rest)
    }

    /// After the last line; `unfinished` is the length of what follows it without a line break.
    ///
    /// # Errors
    /// [`Broken`] when the head or a checkpoint knows of more, or of something else.
    pub fn finish(mut self, unfinished: u64) -> Result<Verified, Broken> {
        let n = self.link.n;
        if let Some((known, _)) = self.witnesses.last_key_value() {
            let detail = format!("the log ends at record {n}, a checkpoint names record {known}");
            return Err(Broken::new(n + 1, Damage::CutOff, detail));
        }
        self.verified.unfinished_bytes = unfinished;
        self.verified.last = self.link;
        match (self.head, self.head_fits) {
            (None, _) if n == 0 => Ok(self.verified),
            (None, _) => Err(Broken::new(n, Damage::HeadMissing, "audit.head is missing")),
            (Some(head), Some(true)) => {
                self.verified.behind_head = n - head.n;
                Ok(self.verified)
            }
            (Some(head), Some(false)) => Err(Broken::new(
                head.n,
                Damage::HeadDiffers,
                "audit.head names another record",
            )),
            (Some(head), None) => Err(Broken::new(
                n + 1,
                Damage::CutOff,
                format!("the log ends at record {n}, audit.head names record {}", head.n),
            )),
        }
    }
}

/// Checks every record of a folder's log, the head, and that the log agrees with these checkpoints.
///
/// # Errors
/// [`LogError::Broken`] with the first record that is wrong; [`LogError::Io`] when it cannot be read.
pub fn verify(folder: &Path, checkpoints: &[Checkpoint]) -> Result<Verified, LogError> {
    let files = Files::new(folder);
    // The head first: a log that is being written may grow meanwhile, but never falls behind it.
    let head = match files.read_head()? {
        Some(Ok(head)) => Some(head.link),
        Some(Err(message)) => {
            let detail = format!("audit.head: {message}");
            return Err(LogError::Broken(Broken::new(0, Damage::HeadMissing, detail)));
        }
        None => None,
    };
    let mut verifier = Verifier::new(head, checkpoints);
    let mut lines = Lines::open(&files)?;
    verifier.verified.files = lines.files();
    let mut unfinished = 0;
    loop {
        let refused = match lines.next()? {
            None => break,
            Some(line) if !line.finished && line.last_file => {
                unfinished = u64::try_from(line.bytes.len()).unwrap_or(u64::MAX);
                break;
            }
            Some(line) if !line.finished => {
                let detail = "its file ends in the middle of it";
                Err(Refused::Broken(Broken::new(
                    verifier.link.n + 1,
                    Damage::Edited,
                    detail,
                )))
            }
            Some(line) => verifier.take(line.bytes),
        };
        match refused {
            Ok(()) => {}
            Err(Refused::Broken(broken)) => return Err(LogError::Broken(broken)),
            Err(Refused::Strange) => {
                let strange = lines.current().to_vec();
                let rest = || lines.next().ok().flatten().map(|line| line.bytes.to_vec());
                return Err(LogError::Broken(verifier.diagnose(&strange, rest)));
            }
        }
    }
    verifier.finish(unfinished).map_err(LogError::Broken)
}

/// Says what is wrong with a line that does not follow `last`; `fits` says that the head was met.
fn diagnose(last: &Link, head: Option<Link>, fits: bool, line: &[u8], rest: impl FnMut() -> Option<Vec<u8>>) -> Broken {
    let expected = last.n + 1;
    let Some(found) = Frame::sound(line) else {
        return if Ahead::look(last, None, rest).later {
            Broken::new(expected, Damage::Inserted, "a line that is no record stands before it")
        } else {
            Broken::new(expected, Damage::Edited, "its hash does not fit its content")
        };
    };
    let n = found.n;
    let ahead = Ahead::look(last, Some(&found), rest);
    if n > expected {
        return match ahead {
            Ahead { later: false, .. } => {
                Broken::new(expected, Damage::Removed, format!("the log goes on with record {n}"))
            }
            Ahead {
                again: false,
                before: true,
                ..
            } => Broken::new(expected, Damage::Reordered, format!("record {n} stands before it")),
            Ahead { .. } => Broken::new(expected, Damage::Inserted, format!("record {n} was put before it")),
        };
    }
    if n == expected {
        if ahead.later {
            let detail = "another record with its number stands before it";
            return Broken::new(expected, Damage::Inserted, detail);
        }
        // What follows is chained to this one, so it is the one before that was made anew.
        return match last.n {
            0 => Broken::new(1, Damage::Rewritten, "it does not begin a log"),
            n => Broken::new(
                n,
                Damage::Edited,
                format!("its hash fits, but it is not the one that record {expected} was written after"),
            ),
        };
    }
    // A number that was there already. Where nothing goes on from the last record, but something from this one, or the head names it,
    // the chain left its way at this number: what was taken for it was put in. Not before a record that the head has vouched for.
    let vouched = fits && head.is_some_and(|head| n <= head.n);
    let own = ahead.goes_on || head == Some(found.link()) || n == last.n && found.hash != last.hash;
    if own && !vouched && !ahead.later {
        let detail = if n == last.n {
            "two records have its number".to_owned()
        } else {
            format!(
                "the records {n} to {} were put in: the log goes on with another record {n}",
                last.n
            )
        };
        return Broken::new(n, Damage::Inserted, detail);
    }
    Broken::new(expected, Damage::Inserted, format!("record {n} stands in its place"))
}

/// What the lines behind a strange one say. They are read once, and only where a log is broken.
#[derive(Clone, Copy, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "four things that may be seen, in any order"
)]
struct Ahead {
    /// The record that should have stood there comes later.
    later: bool,
    /// A record with the strange one's number comes later.
    again: bool,
    /// The record that the strange one was written after comes later.
    before: bool,
    /// A record that was written after the strange one comes later.
    goes_on: bool,
}

impl Ahead {
    fn look(last: &Link, found: Option<&Frame<'_>>, mut rest: impl FnMut() -> Option<Vec<u8>>) -> Self {
        let mut ahead = Self::default();
        while let Some(line) = rest() {
            let Some(frame) = Frame::sound(&line) else { continue };
            ahead.later |= frame.follows(last);
            if let Some(found) = found {
                ahead.again |= frame.n == found.n;
                ahead.before |= found.follows(&frame.link());
                ahead.goes_on |= frame.follows(&found.link());
            }
            if ahead.later && (found.is_none_or(|found| found.n <= last.n + 1) || ahead.again) {
                break;
            }
        }
        ahead
    }
}
