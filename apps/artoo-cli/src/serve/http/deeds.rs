//! What the body of a request asks for: an answer to a question, or the end of a task (design §21).
//!
//! Owns the form, in which nothing may stand that is not understood. Does nothing itself.

use serde::Deserialize;

use crate::serve::desk::Reply;

/// An answer to a question: one of the two.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    id: String,
    #[serde(default)]
    answer: Option<Chosen>,
    #[serde(default)]
    text: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Chosen {
    Yes,
    No,
    Always,
}

impl Given {
    /// Which question, and what is said to it; `None` when it is none or both of the two.
    pub fn reply(self) -> Option<(String, Reply)> {
        let reply = match (self.answer, self.text) {
            (Some(Chosen::Yes), None) => Reply::Yes,
            (Some(Chosen::No), None) => Reply::No,
            (Some(Chosen::Always), None) => Reply::Always,
            (None, Some(text)) => Reply::Text(text),
            (None, None) | (Some(_), Some(_)) => return None,
        };
        Some((self.id, reply))
    }
}

/// A task that is to be ended.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meant {
    /// Its id.
    pub task: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, Reply)> {
        serde_json::from_str::<Given>(text).ok()?.reply()
    }

    #[test]
    fn an_answer_is_one_of_four() {
        let id = || "q1".to_owned();
        assert_eq!(read(r#"{"id":"q1","answer":"yes"}"#), Some((id(), Reply::Yes)));
        assert_eq!(read(r#"{"id":"q1","answer":"no"}"#), Some((id(), Reply::No)));
        assert_eq!(read(r#"{"id":"q1","answer":"always"}"#), Some((id(), Reply::Always)));
        assert_eq!(
            read(r#"{"id":"q1","text":"in June"}"#),
            Some((id(), Reply::Text("in June".to_owned())))
        );
        for wrong in [
            r#"{"id":"q1"}"#,
            r#"{"id":"q1","answer":"YES"}"#,
            r#"{"id":"q1","answer":true}"#,
            r#"{"id":"q1","answer":"yes","text":"no"}"#,
            r#"{"answer":"yes"}"#,
            r#"{"id":"q1","answer":"yes","to":"all"}"#,
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
