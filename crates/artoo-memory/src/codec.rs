//! A Megram as stored: JSON with a checksum inside it (design §15).
//!
//! Owns: the stored form. Must not know: keys, the store.

use artoo_protocol::message::Megram;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// `,"crc":"xxxxxxxx"}`: it stands at the end, so that it can be cut off without parsing what may be damaged.
const SEAL: usize = 18;

/// The stored form. `None` only for values that JSON cannot hold, which a Megram has none of.
pub fn encode(megram: &Megram) -> Option<Vec<u8>> {
    seal_json(megram)
}

/// Reads the stored form; `None` where the checksum is wrong or missing, or the content is no Megram.
pub fn decode(bytes: &[u8]) -> Option<Megram> {
    read_sealed(bytes)
}

/// Any JSON object with the checksum as its last member.
pub(crate) fn seal_json(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut text = serde_json::to_string(value).ok()?;
    let crc = crc32c::crc32c(text.as_bytes());
    text.pop().filter(|last| *last == '}')?;
    text.push_str(&seal(crc));
    Some(text.into_bytes())
}

/// What [`seal_json`] made; `None` where it is damaged or something else.
pub(crate) fn read_sealed<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (body, found) = bytes.split_at_checked(bytes.len().checked_sub(SEAL)?)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(body), b"}");
    if found != seal(crc).as_bytes() {
        return None;
    }
    serde_json::from_slice(bytes).ok()
}

fn seal(crc: u32) -> String {
    format!(",\"crc\":\"{crc:08x}\"}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::megram;

    #[test]
    fn a_record_survives_and_stays_json() {
        let megram = megram("1", "tool:shell", "path:/ä", 0.85, -1.0);
        let bytes = encode(&megram).unwrap();
        assert_eq!(decode(&bytes), Some(megram));
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert!(json["crc"].is_string());
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let bytes = encode(&megram("1", "tool:shell", "path:/a", 0.85, -1.0)).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(decode(&bad), None, "byte {at} bit {bit}");
            }
        }
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }
}
