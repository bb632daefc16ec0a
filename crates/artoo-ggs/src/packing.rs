//! What waits for an ending that may never need it: compressed, because every open task holds it after its first gap, and its text is
//! what many open tasks cost (design §14).
//!
//! Owns the form. Knows nothing of what the texts mean.

use artoo_protocol::SubTaskId;
use artoo_protocol::message::{Grounds, Honesty};

use crate::digest::Digest;

/// Lists of texts, compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(Box<[u8]>);

impl Packed {
    /// A round: its digest, but for grants, which are known at the end only, and its honesty report.
    pub fn round(digest: &Digest, honesty: &Honesty) -> Self {
        let mut texts = Writer(Vec::with_capacity(1_024));
        for list in [
            &digest.achieved,
            &digest.failed,
            &digest.tried,
            &digest.unmet,
            &digest.unverified,
        ] {
            texts.list(list.iter().map(String::as_str));
        }
        for list in [&honesty.proven, &honesty.judged, &honesty.unverified] {
            texts.number(list.len());
            for grounds in list {
                let subtask = grounds.subtask_id.as_ref().map_or("", SubTaskId::as_str);
                texts.list([grounds.criterion.as_str(), subtask, &grounds.evidence].into_iter());
                texts.list(grounds.calls.iter().map(String::as_str));
            }
        }
        texts.packed()
    }

    /// The round that was packed.
    pub fn unpacked_round(&self) -> (Digest, Honesty) {
        let bytes = self.bytes();
        let mut texts = Reader(&bytes);
        let digest = Digest {
            achieved: texts.list(),
            failed: texts.list(),
            tried: texts.list(),
            unmet: texts.list(),
            unverified: texts.list(),
            grants: Vec::new(),
        };
        let honesty = Honesty {
            proven: texts.grounds(),
            judged: texts.grounds(),
            unverified: texts.grounds(),
        };
        (digest, honesty)
    }

    /// Criteria of subtasks, each with its subtask.
    pub fn criteria<'a>(criteria: impl Iterator<Item = (&'a SubTaskId, &'a str)>) -> Self {
        let (ids, words): (Vec<&str>, Vec<&str>) = criteria.map(|(id, words)| (id.as_str(), words)).unzip();
        let mut texts = Writer(Vec::new());
        texts.list(ids.into_iter());
        texts.list(words.into_iter());
        texts.packed()
    }

    /// The criteria that were packed.
    pub fn unpacked_criteria(&self) -> Vec<(SubTaskId, String)> {
        let bytes = self.bytes();
        let mut texts = Reader(&bytes);
        let ids = texts.list();
        ids.into_iter().map(SubTaskId::new).zip(texts.list()).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        // Only a writer makes one, so what is read here is whole; the default holds nothing.
        lz4_flex::decompress_size_prepended(&self.0).unwrap_or_default()
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn list<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a str>) {
        self.number(texts.len());
        for text in texts {
            self.number(text.len());
            self.0.extend_from_slice(text.as_bytes());
        }
    }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.0.push(low_bits(number) | 0x80);
            number >>= 7;
        }
        self.0.push(low_bits(number));
    }

    fn packed(self) -> Packed {
        Packed(lz4_flex::compress_prepend_size(&self.0).into_boxed_slice())
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn list(&mut self) -> Vec<String> {
        let texts = self.number();
        (0..texts)
            .map(|_| {
                let length = self.number();
                let (text, after) = self.0.split_at_checked(length).unwrap_or_default();
                self.0 = after;
                String::from_utf8_lossy(text).into_owned()
            })
            .collect()
    }

    fn grounds(&mut self) -> Vec<Grounds> {
        let grounds = self.number();
        (0..grounds)
            .map(|_| {
                let mut texts = self.list().into_iter();
                let mut text = || texts.next().unwrap_or_default();
                let (criterion, subtask, evidence) = (text(), text(), text());
                Grounds {
                    criterion,
                    subtask_id: (!subtask.is_empty()).then(|| SubTaskId::new(subtask)),
                    evidence,
                    calls: self.list(),
                }
            })
            .collect()
    }

    fn number(&mut self) -> usize {
        let mut number = 0;
        let mut shift = 0;
        while let Some((&byte, rest)) = self.0.split_first() {
            self.0 = rest;
            number |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift >= usize::BITS {
                break;
            }
        }
        number
    }
}

fn low_bits(number: usize) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back_whole() {
        let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
        let digest = Digest {
            achieved: lines(&[]),
            failed: lines(&["é", "", "b"]),
            tried: lines(&[""]),
            unmet: lines(&[]),
            unverified: lines(&["数", "y", &"long ".repeat(20_000)]),
            grants: Vec::new(),
        };
        let grounds = |criterion: &str, subtask: Option<&str>, calls: &[&str]| Grounds {
            criterion: criterion.into(),
            subtask_id: subtask.map(SubTaskId::new),
            evidence: "found 3".into(),
            calls: lines(calls),
        };
        let honesty = Honesty {
            proven: vec![grounds("x", None, &[]), grounds("é", Some("s1"), &[])],
            judged: vec![grounds("", Some("s2"), &["shell: ls", "", "数"])],
            unverified: Vec::new(),
        };
        assert_eq!(Packed::round(&digest, &honesty).unpacked_round(), (digest, honesty));
        let nothing = (Digest::default(), Honesty::default());
        assert_eq!(Packed::round(&nothing.0, &nothing.1).unpacked_round(), nothing);
        assert_eq!(Packed::default().unpacked_round(), nothing);
        let criteria = [
            (SubTaskId::new("s1"), "a".to_owned()),
            (SubTaskId::new("s1"), "é".to_owned()),
        ];
        let packed = Packed::criteria(criteria.iter().map(|(id, words)| (id, words.as_str())));
        assert_eq!(packed.unpacked_criteria(), criteria);
        assert_eq!(Packed::default().unpacked_criteria(), []);
    }
}
