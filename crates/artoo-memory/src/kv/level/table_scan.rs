//! Reads LevelDB table files without the library: to check blocks as they are read, and to save what a damaged
//! store still holds (design §15).
//!
//! Owns: the formats of footer and blocks. Must not know: logs, keys of the memory.

use super::log_scan::{Versioned, read_varint, unmask};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Two block handles, padding and a magic number end every table.
pub(super) const FOOTER: usize = 48;
const MAGIC: [u8; 8] = 0xdb47_7524_8b80_fb57_u64.to_le_bytes();
/// Compression type (1 byte) and checksum (4) follow every block.
const TRAILER: usize = 5;
/// No block that a sane writer makes is larger.
const MAX_BLOCK: u64 = 64 * 1024 * 1024;

/// Whether `bytes` end with the magic number of a table.
pub(super) fn is_footer(bytes: &[u8]) -> bool {
    bytes.len() == FOOTER && bytes.ends_with(&MAGIC)
}

/// Whether `bytes` are a block with its trailer, and the checksum in it is right.
pub(super) fn is_sound_block(bytes: &[u8]) -> bool {
    let Some((body, trailer)) = bytes.split_last_chunk::<TRAILER>() else {
        return false;
    };
    let [kind, c0, c1, c2, c3] = *trailer;
    let sum = crc32c::crc32c_append(crc32c::crc32c(body), &[kind]);
    unmask(u32::from_le_bytes([c0, c1, c2, c3])) == sum
}

/// What [`scan_table`] could not read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TableLoss {
    /// Blocks with a wrong checksum or a broken inside.
    pub(super) blocks: usize,
    /// The file's end or its index is broken, so that nothing of it can be found.
    pub(super) whole: bool,
}

/// Feeds every readable entry of a table to `on_change`, and counts what is lost.
pub(super) fn scan_table(file: &File, on_change: &mut dyn FnMut(Versioned<'_>)) -> io::Result<TableLoss> {
    let mut loss = TableLoss::default();
    let Some(index) = read_index(file)? else {
        loss.whole = true;
        return Ok(loss);
    };
    let mut handles = Vec::new();
    let index_is_whole = for_each_entry(&index, &mut |_, value| {
        let mut value = value;
        handles.extend(Handle::read(&mut value));
    });
    loss.blocks += usize::from(!index_is_whole);
    for handle in handles {
        let sound = read_block(file, handle)?.is_some_and(|block| {
            for_each_entry(&block, &mut |key, value| {
                if let Some(change) = split_internal_key(key, value) {
                    on_change(change);
                }
            })
        });
        loss.blocks += usize::from(!sound);
    }
    Ok(loss)
}

fn read_index(file: &File) -> io::Result<Option<Vec<u8>>> {
    let size = file.metadata()?.len();
    let mut footer = [0; FOOTER];
    let Some(at) = size.checked_sub(FOOTER as u64) else {
        return Ok(None);
    };
    file.read_exact_at(&mut footer, at)?;
    if !is_footer(&footer) {
        return Ok(None);
    }
    let mut rest = footer.as_slice();
    let handles = (Handle::read(&mut rest), Handle::read(&mut rest));
    match handles {
        (Some(_meta), Some(index)) => read_block(file, index),
        _ => Ok(None),
    }
}

/// Where a block lies, without its trailer.
#[derive(Debug, Clone, Copy)]
struct Handle {
    offset: u64,
    size: u64,
}

impl Handle {
    fn read(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            offset: read_varint(rest)?,
            size: read_varint(rest)?,
        })
    }
}

/// The block's content, decompressed; `None` where it is damaged.
fn read_block(file: &File, handle: Handle) -> io::Result<Option<Vec<u8>>> {
    let Some(size) = usize::try_from(handle.size).ok().filter(|_| handle.size <= MAX_BLOCK) else {
        return Ok(None);
    };
    let mut bytes = vec![0; size + TRAILER];
    match file.read_exact_at(&mut bytes, handle.offset) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    if !is_sound_block(&bytes) {
        return Ok(None);
    }
    let kind = bytes.get(size).copied();
    bytes.truncate(size);
    Ok(match kind {
        Some(0) => Some(bytes),
        Some(1) if snap::raw::decompress_len(&bytes).is_ok_and(|length| length as u64 <= MAX_BLOCK) => {
            snap::raw::Decoder::new().decompress_vec(&bytes).ok()
        }
        _ => None,
    })
}

/// Feeds the entries of a block to `on_entry`. Answers whether the whole block was well formed.
fn for_each_entry(block: &[u8], on_entry: &mut dyn FnMut(&[u8], &[u8])) -> bool {
    let Some((rest, count)) = block.split_last_chunk::<4>() else {
        return false;
    };
    let restarts = usize::try_from(u32::from_le_bytes(*count))
        .ok()
        .and_then(|count| count.checked_mul(4));
    let Some(end) = restarts.and_then(|restarts| rest.len().checked_sub(restarts)) else {
        return false;
    };
    let Some(mut rest) = rest.get(..end) else { return false };
    let mut key = Vec::new();
    while !rest.is_empty() {
        let Some(value) = read_entry(&mut rest, &mut key) else {
            return false;
        };
        on_entry(&key, value);
    }
    true
}

/// Keys share a prefix with the key before; `key` is that one, and becomes the present one.
fn read_entry<'a>(rest: &mut &'a [u8], key: &mut Vec<u8>) -> Option<&'a [u8]> {
    let shared = usize::try_from(read_varint(rest)?).ok()?;
    let unshared = usize::try_from(read_varint(rest)?).ok()?;
    let length = usize::try_from(read_varint(rest)?).ok()?;
    let (suffix, after) = rest.split_at_checked(unshared)?;
    let (value, after) = after.split_at_checked(length)?;
    if shared > key.len() {
        return None;
    }
    key.truncate(shared);
    key.extend_from_slice(suffix);
    *rest = after;
    Some(value)
}

/// Keys in tables end with eight bytes: seven of sequence number and one of type.
fn split_internal_key<'a>(key: &'a [u8], value: &'a [u8]) -> Option<Versioned<'a>> {
    let (key, tag) = key.split_last_chunk::<8>()?;
    let tag = u64::from_le_bytes(*tag);
    let value = match tag & 0xff {
        0 => None,
        1 => Some(value),
        _ => return None,
    };
    Some(Versioned {
        key,
        sequence: tag >> 8,
        value,
    })
}
