//! What models write around their JSON, read all the same, with an account of what was wrong.
//!
//! `cargo run -p artoo-llm --example tolerant_reader`

use artoo_llm::reader::{Shape, read};
use serde_json::json;

fn main() {
    let schema = json!({
        "type": "object",
        "properties": {"file": {"type": "string"}, "lines": {"type": "integer"}},
        "required": ["file", "lines"]
    });
    let shape = match Shape::compile("count", &schema) {
        Ok(shape) => shape,
        Err(error) => return eprintln!("{error}"),
    };
    for answer in [
        r#"{"file": "a.md", "lines": 3}"#,
        "<think>Three, I believe.</think>Here you are:\n```json\n{\"file\": \"a.md\", \"lines\": 3,}\n```",
        r#"{"answer": {"file": "a.md", "lines": 3}}"#,
        r#"{"file": "a.md", "lines": "three"}"#,
        "There are three lines.",
    ] {
        println!("{answer}");
        match read(answer, &shape) {
            Ok(reading) => {
                println!("  → {}", reading.value);
                reading.defects.iter().for_each(|defect| println!("    ({defect})"));
            }
            Err(unread) => println!("  → unreadable: {unread}"),
        }
    }
}
