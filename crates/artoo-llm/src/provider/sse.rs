//! Server-sent events, piece by piece (design §18).
//!
//! Owns the framing: bytes in, the data of whole events out. A character or a line may be cut anywhere between two pieces.

/// Longest event in bytes.
const MAX_EVENT: usize = 2 * 1024 * 1024;

/// An event longer than any answer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Turns bytes into events.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    line: Vec<u8>,
    data: Option<String>,
    after_cr: bool,
}

impl Decoder {
    /// The events completed by these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let newline = byte == b'\n' && std::mem::take(&mut self.after_cr);
            if newline {
                continue;
            }
            self.after_cr = byte == b'\r';
            if matches!(byte, b'\n' | b'\r') {
                events.extend(self.end_line());
            } else {
                self.line.push(byte);
            }
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > MAX_EVENT {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    /// What an end without a blank line leaves over.
    pub fn finish(&mut self) -> Option<String> {
        self.end_line().or_else(|| self.data.take())
    }

    fn end_line(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.line);
        if bytes.is_empty() {
            return self.data.take();
        }
        let line = String::from_utf8_lossy(&bytes);
        // Comments (`: ping`), `event:`, `id:` and `retry:` say nothing that matters here.
        if let Some(data) = line.strip_prefix("data:") {
            let data = data.strip_prefix(' ').unwrap_or(data);
            match &mut self.data {
                Some(before) => {
                    before.push('\n');
                    before.push_str(data);
                }
                None => self.data = Some(data.to_owned()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = ": ping\r\n\r\nevent: x\ndata: {\"a\":\"ü😀\"}\n\ndata:two\r\ndata: lines\r\rdata: [DONE]";

    #[test]
    fn an_endless_event_is_refused() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(&vec![b'x'; MAX_EVENT + 1]), Err(TooLong));
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_how_bytes_are_cut(cuts in proptest::collection::vec(1_usize..9, 1..60)) {
            let mut decoder = Decoder::default();
            let mut events = Vec::new();
            let mut rest = STREAM.as_bytes();
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                events.extend(decoder.push(piece).unwrap());
                rest = after;
                if rest.is_empty() { break; }
            }
            events.extend(decoder.finish());
            prop_assert_eq!(events, vec!["{\"a\":\"ü😀\"}", "two\nlines", "[DONE]"]);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = Decoder::default();
            let _ = decoder.push(&bytes);
            let _ = decoder.finish();
        }
    }
}
