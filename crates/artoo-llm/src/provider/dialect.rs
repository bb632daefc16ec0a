//! What a server was found to understand, and how to put a request more simply (design §18).
//!
//! Owns the fall-backs. Every server calls itself compatible; where one rejects a field by name, the field is dropped or
//! renamed and the server is never asked for it again.

/// How a structured answer is asked for, from best to plainest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// `response_format: json_schema`.
    Schema,
    /// `response_format: json_object`, the schema in the prompt.
    JsonObject,
    /// No `response_format`, the schema in the prompt.
    Plain,
}

/// The name under which the bound on the answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenLimit {
    MaxTokens,
    MaxCompletionTokens,
    Unsaid,
}

/// Whether an answer is asked for in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    /// With `stream_options.include_usage`.
    WithUsage,
    Plain,
    Off,
}

/// The way in which one server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub format: Format,
    pub streaming: Streaming,
    pub limit: TokenLimit,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            format: Format::Schema,
            streaming: Streaming::WithUsage,
            limit: TokenLimit::MaxTokens,
        }
    }
}

impl Dialect {
    /// A simpler way, if the server's words name something that this one uses; `None` when the error is about something else.
    pub fn simpler(self, status: u16, words: &str, structured: bool) -> Option<Self> {
        if !matches!(status, 400 | 404 | 415 | 422 | 501) {
            return None;
        }
        let words = words.to_lowercase();
        let names = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
        if self.streaming == Streaming::WithUsage && names(&["stream_options", "include_usage"]) {
            return Some(Self {
                streaming: Streaming::Plain,
                ..self
            });
        }
        if names(&["max_tokens", "max_completion_tokens"]) {
            return self.other_limit(&words);
        }
        if structured
            && names(&[
                "response_format",
                "json_schema",
                "json_object",
                "structured output",
                "json mode",
                "tool_choice",
                "schema",
            ])
        {
            let format = match self.format {
                Format::Schema => Format::JsonObject,
                Format::JsonObject => Format::Plain,
                Format::Plain => return None,
            };
            return Some(Self { format, ..self });
        }
        if self.streaming != Streaming::Off && names(&["stream"]) {
            return Some(Self {
                streaming: Streaming::Off,
                ..self
            });
        }
        None
    }

    fn other_limit(self, words: &str) -> Option<Self> {
        let limit = match self.limit {
            TokenLimit::MaxTokens if words.contains("max_completion_tokens") => TokenLimit::MaxCompletionTokens,
            // Complains about the number, not the name.
            TokenLimit::MaxTokens | TokenLimit::MaxCompletionTokens
                if words.contains("too large") || words.contains("at most") || words.contains("maximum") =>
            {
                TokenLimit::Unsaid
            }
            TokenLimit::MaxTokens | TokenLimit::MaxCompletionTokens | TokenLimit::Unsaid => return None,
        };
        Some(Self { limit, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rejected_field_is_dropped_once() {
        let start = Dialect::default();
        let object = start
            .simpler(400, "response_format.type json_schema is not supported", true)
            .unwrap();
        assert_eq!(object.format, Format::JsonObject);
        let plain = object.simpler(422, "unknown field `response_format`", true).unwrap();
        assert_eq!(plain.format, Format::Plain);
        assert_eq!(plain.simpler(400, "response_format", true), None);
        assert_eq!(start.simpler(400, "response_format", false), None);
        assert_eq!(start.simpler(401, "response_format", true), None);
        assert_eq!(
            start
                .simpler(
                    400,
                    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                    true
                )
                .unwrap()
                .limit,
            TokenLimit::MaxCompletionTokens
        );
        let quiet = start
            .simpler(400, "extra fields not permitted: stream_options", true)
            .unwrap();
        assert_eq!(quiet.streaming, Streaming::Plain);
        assert_eq!(
            quiet
                .simpler(400, "streaming is not available", true)
                .unwrap()
                .streaming,
            Streaming::Off
        );
        assert_eq!(start.simpler(400, "messages: too many", true), None);
    }
}
