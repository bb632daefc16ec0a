//! Two bytes that say whether a longer look is worth it (design §17).
//!
//! Owns the quick look at every place of a text; what begins there is for others.

/// Which pairs of bytes may begin a find, or stand between a name and its value: one bit each.
static PAIRS: [u64; 1024] = pairs();

const fn pairs() -> [u64; 1024] {
    let mut table = [0; 1024];
    let mut pair = 0_u16;
    loop {
        let [first, second] = pair.to_be_bytes();
        let worth_it =
            matches!((first, second), (b'=' | b':', _) | (b'e', b'y') | (b'-', b'-')) || begins_key(first, second);
        if worth_it {
            #[allow(
                clippy::indexing_slicing,
                reason = "computed by the compiler; 2^16 bits are 1024 words"
            )]
            {
                table[(pair >> 6) as usize] |= 1 << (pair & 63);
            }
        }
        if pair == u16::MAX {
            return table;
        }
        pair += 1;
    }
}

/// A table instead of comparisons: these bytes are too many in any text to be guessed well by the processor.
pub(super) fn is_worth_it(pair: [u8; 2]) -> bool {
    let pair = u16::from_be_bytes(pair);
    PAIRS
        .get(usize::from(pair >> 6))
        .is_some_and(|word| word >> (pair & 63) & 1 == 1)
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
