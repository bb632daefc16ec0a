//! Tests of the tolerant reader: the ways in which models really answer, and arbitrary text.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn shape() -> Shape {
    Shape::compile(
        "note",
        &json!({
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "count": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "inner": {"type": ["object", "null"], "properties": {"pattern": {"type": "string"}}}
            },
            "required": ["title", "count"],
            "additionalProperties": false
        }),
    )
    .unwrap()
}

fn check(text: &str, expected: &Value) {
    let reading = read(text, &shape()).unwrap_or_else(|unread| panic!("{text}\n{unread:?}"));
    assert_eq!(&reading.value, expected, "{text}");
}

#[test]
fn prose_fences_think_blocks_and_several_objects_are_read() {
    let plain = json!({"title": "a", "count": 1});
    let object = r#"{"title": "a", "count": 1}"#;
    for text in [
        object.to_owned(),
        format!("\u{feff}{object}"),
        format!("Here you are:\n```json\n{object}\n```\nAnything else?"),
        format!("```\n{object}\n```"),
        format!("<think>maybe {{\"title\":\"no\",\"count\":0}} or [1</think>{object}"),
        format!("<THINKING>\nhm {{\n</thinking>\n{object}"),
        format!("I think so {{\"title\":\"no\",\"count\":0}} </think>\n{object}"),
        format!("<think>I should answer {object}"),
        format!("note: {object}"),
        format!("{{\"other\": true}} and {object} and {{\"title\":\"b\",\"count\":2}}"),
        format!("use {{x}} and [y], then ({object})"),
        format!("[see {object}]"),
        format!("{{\"note\": {object}}}"),
        format!("[{object}]"),
        format!("{{\"name\": \"note\", \"arguments\": {object}}}"),
        serde_json::to_string(object).unwrap(),
        "{'title': 'a', 'count': 1}".to_owned(),
        "{title: \"a\", count: 1,}".to_owned(),
        "{\"title\": \"a\", \"count\": 1,}".to_owned(),
        "{\"title\": \"a\", // what it is\n \"count\": 1 /* one */}".to_owned(),
        "{\"title\": \"a\", \"count\": 1".to_owned(),
        format!("- [ ] one\n- [x] two\n{object}"),
    ] {
        check(&text, &plain);
    }
}

#[test]
fn a_clean_answer_has_no_defects_and_others_name_theirs() {
    let defects = |text: &str| read(text, &shape()).unwrap().defects;
    assert_eq!(defects(r#" {"title":"a","count":1} "#), []);
    assert_eq!(defects(r#"ok {"title":"a","count":1}"#), [Defect::TextAround]);
    assert_eq!(defects(r#"{"title":"a","count":1,}"#), [Defect::Mended]);
    assert_eq!(defects(r#"{title:"a","count":1}"#), [Defect::Rebuilt]);
    assert_eq!(defects(r#"{"x":{"title":"a","count":1}}"#), [Defect::Wrapped]);
}

#[test]
fn regular_expressions_and_line_breaks_in_strings_survive() {
    check(
        "{\"title\": \"two\nlines\", \"count\": 1, \"inner\": {\"pattern\": \"^\\d+\\.$\"}}",
        &json!({"title": "two\nlines", "count": 1, "inner": {"pattern": "^\\d+\\.$"}}),
    );
    check(
        r#"Answer: {"title": "it\'s", "count": 1, "inner": None}"#,
        &json!({"title": "it's", "count": 1, "inner": null}),
    );
}

#[test]
fn tags_and_brackets_inside_strings_are_text() {
    check(
        r#"Sure. {"title": "<think>x</think> } ] 😀", "count": 1}"#,
        &json!({"title": "<think>x</think> } ] 😀", "count": 1}),
    );
    check("{title: \"😀 ü\", \"count\": 1}", &json!({"title": "😀 ü", "count": 1}));
}

#[test]
fn unknown_fields_do_no_harm() {
    check(
        r#"{"title": "a", "count": 1, "confidence": 0.9}"#,
        &json!({"title": "a", "count": 1, "confidence": 0.9}),
    );
}

#[test]
fn what_is_missing_is_not_made_up() {
    let unread = |text: &str| read(text, &shape()).unwrap_err().to_string();
    assert_eq!(unread("no object here"), "there is no JSON object in the answer");
    assert_eq!(unread(""), "there is no JSON object in the answer");
    assert!(unread(r#"{"title": "a"}"#).contains("\"count\" is a required property"));
    assert!(unread(r#"{"title": "a", "count": "many"}"#).contains("/count"));
    // Cut off in the middle of a string: something is missing, so the piece is not closed by guessing.
    assert!(read(r#"{"count": 1, "title": "the first half of"#, &shape()).is_err());
    // Unescaped quotes: rebuilding would cut the text at the first of them.
    assert!(read(r#"{"count": 1, "title": "the "best" of them"}"#, &shape()).is_err());
}

#[test]
fn arguments_that_are_not_json_stay_text() {
    assert_eq!(read_arguments(""), json!({}));
    assert_eq!(read_arguments(r#"{"command":"ls"}"#), json!({"command": "ls"}));
    assert_eq!(read_arguments("{\"command\":\"a\nb\",}"), json!({"command": "a\nb"}));
    assert_eq!(read_arguments(r#""{\"command\":\"ls\"}""#), json!({"command": "ls"}));
    assert_eq!(read_arguments("ls -l"), json!("ls -l"));
    assert_eq!(read_arguments("[1]"), json!("[1]"));
}

/// What is read here is written down with a few levels around it, and has to be read again.
#[test]
fn what_is_nested_too_deep_to_be_written_down_is_no_value() {
    let nested = |depth: usize| format!("{{\"top\":{}1{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    let shape = Shape::compile("top", &json!({"type": "object", "required": ["top"]})).unwrap();
    for (depth, fine) in [(96, true), (97, false), (120, false)] {
        let text = nested(depth);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read_arguments(&text).is_object(), fine, "{depth}");
        assert_eq!(bounded(value.clone()) == value, fine, "{depth}");
        assert_eq!(bounded(value), read_arguments(&text), "{depth}");
        assert_eq!(read(&text, &shape).is_ok(), fine, "{depth}");
    }
}

#[test]
fn thinking_in_front_of_plain_text_is_dropped() {
    assert_eq!(without_thinking("<think>a</think>\n\n42"), "42");
    assert_eq!(without_thinking("hm</think> 42"), "42");
    assert_eq!(without_thinking("42 in <think> tags"), "42 in <think> tags");
    assert_eq!(without_thinking("<think>42"), "42");
}

#[test]
fn deep_nesting_and_huge_text_are_bounded() {
    let deep = format!("{}{}", "[{\"a\":".repeat(50_000), "]".repeat(50_000));
    assert!(read(&deep, &shape()).is_err());
    let blank = format!("{{a{}:1}}", " ".repeat(60_000));
    assert!(read(&blank, &shape()).is_err());
    let huge = format!("{} {{\"title\":\"a\",\"count\":1}}", "x".repeat(MAX_TEXT));
    assert!(read(&huge, &shape()).unwrap_err().defects.contains(&Defect::TooLong));
}

#[test]
fn a_schema_is_compiled_once_per_name() {
    let shapes = Shapes::default();
    let schema = json!({"type": "object"});
    let first = shapes.get("a", &schema).unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &shapes.get("a", &schema).unwrap()));
    let other = json!({"type": "array"});
    assert!(!std::sync::Arc::ptr_eq(&first, &shapes.get("a", &other).unwrap()));
    assert!(shapes.get("b", &json!({"type": "nonsense"})).is_err());
}

fn around() -> impl Strategy<Value = String> {
    // Prose without what opens or closes a value or a tag of its own.
    proptest::string::string_regex("[^{}\\[\\]<\"'`]{0,40}").unwrap()
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = read(&text, &shape());
        let _ = read_arguments(&text);
        let _ = objects(&text);
        let _ = without_thinking(&text);
    }

    #[test]
    fn bracket_soup_never_panics(text in "[{}\\[\\]\"':,\\\\/*<>thinkTN`\n a1-]{0,300}") {
        let _ = read(&text, &shape());
        let _ = read_arguments(&text);
        let _ = objects(&text);
        let _ = without_thinking(&text);
    }

    #[test]
    fn a_valid_object_in_any_wrapping_is_found(
        title in any::<String>(), count in any::<i64>(), tags in proptest::collection::vec(any::<String>(), 0..4),
        before in around(), after in around(), thought in "[^<]{0,40}", fence in any::<bool>(), pretty in any::<bool>(), think in 0..3,
    ) {
        let value = json!({"title": title, "count": count, "tags": tags});
        let mut text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        if fence { text = format!("```json\n{text}\n```"); }
        text = format!("{before}{text}{after}");
        text = match think {
            0 => text,
            1 => format!("<think>{thought}</think>{text}"),
            _ => format!("<think>{}{text}", thought.replace(['{', '['], "")),
        };
        prop_assert_eq!(read(&text, &shape()).map(|reading| reading.value), Ok(value), "{}", text);
    }

    #[test]
    fn small_faults_are_mended_without_loss(title in "[^\"\\\\\u{0}-\u{8}\u{b}-\u{1f}]{0,40}", count in any::<i32>()) {
        let text = format!("{{\"title\":\"{title}\",\"count\":{count},\"tags\":[\"x\",],}}");
        let expected = json!({"title": title, "count": count, "tags": ["x"]});
        prop_assert_eq!(read(&text, &shape()).map(|reading| reading.value), Ok(expected));
    }
}
