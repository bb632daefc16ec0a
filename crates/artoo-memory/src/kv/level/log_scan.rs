//! Reads LevelDB log files (also the manifest is one) and tells a torn end from damage inside (design §15).
//!
//! The library stops at the first bad record and says nothing, so whatever follows a flipped byte is lost in silence.
//! This reader goes on behind the damage: what it still finds there proves that the file was not merely cut off. So does a last record
//! that is there in its whole length, and wrong.
//!
//! Owns: the record format of logs, the format of write batches. Must not know: tables, keys of the memory.

use std::io::{self, Read};

/// Logs are written in blocks of this size; no record fragment crosses a block's end.
const BLOCK: usize = 32 * 1024;
/// Checksum (4 bytes), length (2), type (1).
const HEADER: usize = 7;
/// No record that this program or a sane other one writes is larger; a larger one is damage.
pub(super) const MAX_RECORD: usize = 256 * 1024 * 1024;

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogEnd {
    /// Every byte belongs to a good record.
    Clean,
    /// The last record is incomplete: the process died while it wrote, before anybody was told "written"; or somebody cut the file.
    Torn {
        /// Where that record begins, in bytes from the start of the file.
        at: u64,
    },
    /// Good records follow a bad one, which begins at this offset; or it is the last one, and all of it is there.
    Damaged {
        /// Bytes from the start of the file.
        at: u64,
    },
}

/// Feeds every good record to `on_record`, in order, and tells how the log ends.
pub(super) fn scan_log(mut source: impl Read, on_record: &mut dyn FnMut(&[u8])) -> io::Result<LogEnd> {
    let mut scan = Scan {
        partial: None,
        first_bad: None,
        is_damage: false,
    };
    let mut block = Vec::with_capacity(BLOCK);
    let mut block_start = 0_u64;
    loop {
        block.clear();
        let read = source.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        if read == 0 {
            break;
        }
        scan.block(&block, block_start, on_record);
        block_start += read as u64;
        if read < BLOCK {
            break;
        }
    }
    if let Some((at, _)) = scan.partial {
        scan.bad(at);
    }
    Ok(match scan.first_bad {
        None => LogEnd::Clean,
        Some(at) if scan.is_damage => LogEnd::Damaged { at },
        Some(at) => LogEnd::Torn { at },
    })
}

struct Scan {
    /// Where a record begins that goes on, and its fragments so far.
    partial: Option<(u64, Vec<u8>)>,
    first_bad: Option<u64>,
    /// Whether what is bad cannot come from a write that was cut off.
    is_damage: bool,
}

impl Scan {
    fn bad(&mut self, at: u64) {
        self.partial = None;
        self.first_bad.get_or_insert(at);
    }

    fn block(&mut self, block: &[u8], block_start: u64, on_record: &mut dyn FnMut(&[u8])) {
        let mut at = 0;
        while let Some(rest) = block.get(at..)
            && !rest.is_empty()
        {
            if rest.len() < HEADER && rest.iter().all(|byte| *byte == 0) && block.len() == BLOCK {
                return; // the padding at a block's end
            }
            if let Some(fragment) = Fragment::read(rest) {
                self.is_damage |= self.first_bad.is_some();
                self.fragment(&fragment, block_start + at as u64, on_record);
                at += HEADER + fragment.data.len();
            } else {
                let begins = self
                    .partial
                    .as_ref()
                    .map_or(block_start + at as u64, |(begins, _)| *begins);
                self.bad(begins);
                // Nobody begins a fragment that goes beyond its block.
                let is_room = rest.iter().all(|byte| *byte == 0);
                self.is_damage |= !is_room && (block.len() == BLOCK || !is_cut_off(rest));
                // The length may be the damaged part: look for the next header at every offset.
                let next = (at + 1..block.len()).find(|next| block.get(*next..).and_then(Fragment::read).is_some());
                at = next.unwrap_or(block.len());
            }
        }
    }

    fn fragment(&mut self, fragment: &Fragment<'_>, at: u64, on_record: &mut dyn FnMut(&[u8])) {
        match (fragment.kind, self.partial.take()) {
            (FULL, None) => on_record(fragment.data),
            (FULL, Some((begins, _))) => {
                self.bad(begins);
                self.is_damage = true;
                on_record(fragment.data);
            }
            (FIRST, before) => {
                if let Some((begins, _)) = before {
                    self.bad(begins);
                    self.is_damage = true;
                }
                self.partial = Some((at, fragment.data.to_vec()));
            }
            (_, Some((begins, mut record))) if record.len() + fragment.data.len() <= MAX_RECORD => {
                record.extend_from_slice(fragment.data);
                if fragment.kind == LAST {
                    on_record(&record);
                } else {
                    self.partial = Some((begins, record));
                }
            }
            // The rest of a record whose beginning was bad.
            _ => {
                self.bad(at);
                self.is_damage = true;
            }
        }
    }
}

/// Whether bad bytes at the end of a file may be the beginning of a fragment of which the rest was never written. A fragment that is as long
/// as it says is not, nor is one whose length alone is wrong.
fn is_cut_off(rest: &[u8]) -> bool {
    let Some((header, data)) = rest.split_first_chunk::<HEADER>() else {
        return true;
    };
    let [c0, c1, c2, c3, l0, l1, kind] = *header;
    let is_short = data.len() < usize::from(u16::from_le_bytes([l0, l1]));
    let is_whole = is_sum(u32::from_le_bytes([c0, c1, c2, c3]), kind, data);
    is_short && !is_whole
}

fn is_sum(masked: u32, kind: u8, data: &[u8]) -> bool {
    unmask(masked) == crc32c::crc32c_append(crc32c::crc32c(&[kind]), data)
}

const FULL: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;

struct Fragment<'a> {
    kind: u8,
    data: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The fragment that begins at `bytes`, if its checksum is right.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let [c0, c1, c2, c3, l0, l1, kind] = *header;
        if !(FULL..=LAST).contains(&kind) {
            return None;
        }
        let data = rest.get(..usize::from(u16::from_le_bytes([l0, l1])))?;
        is_sum(u32::from_le_bytes([c0, c1, c2, c3]), kind, data).then_some(Self { kind, data })
    }
}

/// Stored checksums are rotated and shifted, so that a checksum of data with checksums in it stays useful.
pub(super) fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xa282_ead8).rotate_right(17)
}

/// One change read from a log or a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Versioned<'a> {
    /// The user's key.
    pub(super) key: &'a [u8],
    /// Of two changes of one key, the one with the higher number counts.
    pub(super) sequence: u64,
    /// `None` is a deletion.
    pub(super) value: Option<&'a [u8]>,
}

/// Feeds the changes of an encoded write batch to `on_change`. Answers whether the whole batch was well formed.
pub(super) fn read_batch<'a>(record: &'a [u8], on_change: &mut dyn FnMut(Versioned<'a>)) -> bool {
    let Some((sequence, rest)) = record.split_first_chunk::<8>() else {
        return false;
    };
    let Some((count, mut rest)) = rest.split_first_chunk::<4>() else {
        return false;
    };
    let first = u64::from_le_bytes(*sequence);
    for index in 0..u64::from(u32::from_le_bytes(*count)) {
        let Some(change) = read_change(&mut rest, first.wrapping_add(index)) else {
            return false;
        };
        on_change(change);
    }
    true
}

fn read_change<'a>(rest: &mut &'a [u8], sequence: u64) -> Option<Versioned<'a>> {
    let (tag, after) = rest.split_first()?;
    *rest = after;
    let key = read_slice(rest)?;
    let value = match tag {
        0 => None,
        1 => Some(read_slice(rest)?),
        _ => return None,
    };
    Some(Versioned { key, sequence, value })
}

/// A length as a varint, then so many bytes.
pub(super) fn read_slice<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(read_varint(rest)?).ok()?;
    let (slice, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(slice)
}

/// A number in groups of seven bits, lowest first.
pub(super) fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(sum: u32) -> u32 {
        sum.rotate_left(17).wrapping_add(0xa282_ead8)
    }

    fn fragment(kind: u8, data: &[u8]) -> Vec<u8> {
        let sum = crc32c::crc32c_append(crc32c::crc32c(&[kind]), data);
        let mut bytes = mask(sum).to_le_bytes().to_vec();
        bytes.extend(u16::try_from(data.len()).unwrap().to_le_bytes());
        bytes.push(kind);
        bytes.extend(data);
        bytes
    }

    fn check(log: &[u8], records: &[&[u8]], end: LogEnd) {
        let mut found = Vec::new();
        let got = scan_log(log, &mut |record| found.push(record.to_vec())).unwrap();
        assert_eq!((found, got), (records.iter().map(|r| r.to_vec()).collect(), end));
    }

    #[test]
    fn a_whole_log_is_clean_and_a_cut_one_is_torn_wherever_it_is_cut() {
        let mut log = fragment(FULL, b"one");
        let first = log.len();
        log.extend(fragment(FULL, b"two"));
        check(&log, &[b"one", b"two"], LogEnd::Clean);
        check(&[], &[], LogEnd::Clean);
        let torn = LogEnd::Torn { at: first as u64 };
        for cut in first + 1..log.len() {
            check(&log[..cut], &[b"one"], torn);
            // Room that a file system gave before it was written to.
            let mut room = log[..first].to_vec();
            room.resize(cut, 0);
            check(&room, &[b"one"], torn);
        }
    }

    /// A write that was cut off cannot leave this behind.
    #[test]
    fn a_flipped_bit_in_the_last_record_is_damage_wherever_it_is() {
        let mut log = fragment(FULL, b"one");
        let first = log.len();
        log.extend(fragment(FULL, b"two"));
        for position in first..log.len() {
            for bit in 0..8 {
                let mut bad = log.clone();
                bad[position] ^= 1 << bit;
                check(&bad, &[b"one"], LogEnd::Damaged { at: first as u64 });
            }
        }
        let text = vec![b'x'; BLOCK + 100];
        let mut file = fragment(FIRST, &text[..BLOCK - HEADER]);
        file.extend(fragment(LAST, &text[BLOCK - HEADER..]));
        for position in (0..file.len()).step_by(997).chain(BLOCK..BLOCK + HEADER) {
            let mut bad = file.clone();
            bad[position] ^= 0x10;
            check(&bad, &[], LogEnd::Damaged { at: 0 });
        }
    }

    #[test]
    fn a_flipped_bit_before_good_records_is_damage_and_the_rest_is_still_read() {
        let mut log = fragment(FULL, b"one");
        let at = log.len();
        log.extend(fragment(FULL, b"two"));
        log.extend(fragment(FULL, b"three"));
        for position in at..at + HEADER + 3 {
            let mut bad = log.clone();
            bad[position] ^= 0x10;
            check(&bad, &[b"one", b"three"], LogEnd::Damaged { at: at as u64 });
        }
    }

    #[test]
    fn records_longer_than_a_block_are_put_together() {
        let long = vec![b'x'; BLOCK + 100];
        let split = BLOCK - HEADER;
        let mut file = fragment(FIRST, &long[..split]);
        file.extend(fragment(LAST, &long[split..]));
        file.extend(fragment(FULL, b"end"));
        check(&file, &[&long, b"end"], LogEnd::Clean);
        file.truncate(BLOCK);
        check(&file, &[], LogEnd::Torn { at: 0 });
    }

    #[test]
    fn batches_with_lengths_that_lie_are_refused() {
        let mut batch = 7_u64.to_le_bytes().to_vec();
        batch.extend(2_u32.to_le_bytes());
        batch.extend([1, 1, b'k', 1, b'v', 0, 1, b'd']);
        let mut seen = Vec::new();
        assert!(read_batch(&batch, &mut |c| seen.push((
            c.key.to_vec(),
            c.sequence,
            c.value.map(<[u8]>::to_vec)
        ))));
        assert_eq!(
            seen,
            [(b"k".to_vec(), 7, Some(b"v".to_vec())), (b"d".to_vec(), 8, None)]
        );
        for cut in 0..batch.len() {
            assert!(!read_batch(&batch[..cut], &mut |_| ()), "cut at {cut}");
        }
    }
}
