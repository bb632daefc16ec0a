//! Two bytes that say whether a longer look is worth it (design §17).
//!
//! Owns the quick look at every place of a text; what begins there is for others.

/// What a pair of bytes says about its place.
pub(super) const NOTHING: u64 = 0;
/// A find may begin here, or a name be told from its value.
pub(super) const FIND: u64 = 1;
/// The name of a secret may be here: none is without such a pair.
pub(super) const HINT: u64 = 2;

/// What each pair of bytes says: two bits each.
static PAIRS: [u64; 2048] = pairs();

const fn pairs() -> [u64; 2048] {
    let mut table = [0; 2048];
    let mut pair = 0_u16;
    loop {
        let [first, second] = pair.to_be_bytes();
        let finds =
            matches!((first, second), (b'=' | b':', _) | (b'e', b'y') | (b'-', b'-')) || begins_key(first, second);
        let says = if finds { FIND } else { NOTHING } | if hints(first, second) { HINT } else { NOTHING };
        #[allow(
            clippy::indexing_slicing,
            reason = "computed by the compiler; 2 × 2^16 bits are 2048 words"
        )]
        {
            table[(pair >> 5) as usize] |= says << ((pair & 31) * 2);
        }
        if pair == u16::MAX {
            return table;
        }
        pair += 1;
    }
}

/// A table instead of comparisons: these bytes are too many in any text to be guessed well by the processor.
pub(super) fn says(pair: [u8; 2]) -> u64 {
    let pair = u16::from_be_bytes(pair);
    PAIRS
        .get(usize::from(pair >> 5))
        .map_or(NOTHING, |word| word >> ((pair & 31) * 2) & 3)
}

/// Whether the name of a secret may hold these two bytes: each holds one of four pairs of letters, perhaps with `-` or `_` between them.
const fn hints(first: u8, second: u8) -> bool {
    matches!(
        (first.to_ascii_lowercase(), second.to_ascii_lowercase()),
        (b'k', b'e') | (b's', b's') | (b'c', b'r') | (b'u', b't') | (b'k' | b's' | b'c' | b'u', b'-' | b'_')
    )
}

/// Whether one of the keys that show by their beginning what they are begins with these two bytes.
pub(super) const fn begins_key(first: u8, second: u8) -> bool {
    matches!(
        (first, second),
        (b's' | b'p' | b'r', b'k')
            | (b'g', b'h' | b'i' | b'l')
            | (b'A', b'K' | b'S' | b'I')
            | (b'x', b'o')
            | (b'h', b'f')
            | (b'n', b'p')
            | (b'B' | b'b', b'e')
    )
}
