//! What every role shows its model, situation by situation, and how long the fixed part is (design §18).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use artoo_protocol::message::Turn;
use artoo_protocol::prompt::{Piece, pieces};
use artoo_protocol::{Millis, Role};
use artoo_testkit::scripted::user_text;
use artoo_testkit::{Scene, Scripted, Settings, World, prompts, whole};
use serde_json::{Value, json};

use crate::support::{exists, plan, plan_with, report, say, shell, sound, step, write};

/// What a prompt of a role holds: its sections, in order.
fn situation(role: Role, text: &str) -> String {
    let mut names = vec![role.to_string().to_lowercase()];
    names.extend(pieces(text).filter_map(|piece| match piece {
        Piece::Section { name, .. } => Some(name.to_owned()),
        Piece::Line(_) => None,
    }));
    names.join("-")
}

/// One request after the other through a whole system; every situation with the first prompt that was in it.
fn prompts_of(script: Scripted, texts: &[&str], prepare: impl Fn(&mut Scene)) -> BTreeMap<String, String> {
    let settings = Settings::default();
    let mut scene = Scene::scripted(script);
    prepare(&mut scene);
    let mut world: World<Scene> = whole::system(&settings, scene).unwrap();
    let mut history = Vec::new();
    for (number, text) in (1_u32..).zip(texts) {
        let mut input = whole::input(number, text, true);
        input.history.clone_from(&history);
        history.push(Turn {
            input: (*text).to_owned(),
            summary: "42".into(),
        });
        world.say(Role::User, Millis::from_seconds(60 * u64::from(number)), input);
    }
    assert!(world.run(100_000));
    sound(&settings, &world);
    let mut found = BTreeMap::new();
    for (role, request) in &world.surroundings.asked {
        let text = user_text(request);
        found.entry(situation(*role, text)).or_insert_with(|| text.to_owned());
    }
    found
}

fn spec(scope: &Value, clarify: &[&str]) -> Value {
    json!({"slug": "count_rust_files", "intent": "Count the Rust files into number.txt", "scope": scope, "clarify": clarify})
}

#[test]
fn every_role_shows_the_same_in_the_same_situation() {
    // A question first; a plan that is sent back; a wrong number, corrected; a rejected whole, planned anew; a second task that
    // knows the first, fails for good, and is given up.
    let wrong = AtomicUsize::new(0);
    let right = json!({"criterion": "the number is right", "mode": "verifiable"});
    let clear = json!({"criterion": "it is said clearly", "mode": "plausible"});
    let whole_right = json!({"criterion": "the whole is right", "mode": "verifiable"});
    let first = plan_with(
        &[whole_right],
        &[
            step(1, "Count", &[right.clone(), clear]),
            step(2, "Write", &[exists("number.txt")]),
        ],
    );
    let mut second = plan(&[step(1, "Count by another tool", &[right])]);
    second["subtasks"][0]["tools"] = json!(["read_file"]);
    let given_up = plan(&[step(1, "Open the vault", &[exists("vault.txt")])]);
    let script = Scripted::default()
        .in_turn(
            "task_spec",
            vec![
                spec(&json!(null), &["Which folder?"]),
                spec(&json!("/srv/site"), &[]),
                spec(&json!(null), &[]),
            ],
        )
        .in_turn("plan", vec![json!({"subtasks": []}), first, second, given_up])
        .structured(
            "partial_result",
            json!({"achieved": "Nothing.", "failed": "The vault.", "next_steps": []}),
        )
        .works("another tool", vec![shell("wc number.txt"), say("42")])
        .works("Count", vec![shell("ls"), say("41"), shell("wc number.txt"), say("42")])
        .works("Write", vec![write("number.txt", "42"), say("written")])
        .works("vault", vec![report("failed", "", "there is no vault")])
        .judges(move |criterion| match criterion {
            "the number is right" => wrong.fetch_add(1, Ordering::Relaxed) > 0,
            "the whole is right" => false,
            _ => true,
        });
    let found = prompts_of(
        script,
        &["count the Rust files in /srv/site into number.txt", "do it again"],
        |scene| {
            scene.person.clarifications = ["src".to_owned()].into();
        },
    );
    let roles: BTreeSet<&str> = found.keys().map(|name| name.split('-').next().unwrap()).collect();
    assert_eq!(roles, BTreeSet::from(["r1", "r2", "r3", "r4a", "r4b"]));
    for section in [
        "history",
        "clarifications",
        "constraints",
        "rejected",
        "directive",
        "previous_outcomes",
        "memory",
        "scope",
        "context",
        "correction",
        "verifiable",
        "outputs",
        "evidence",
        "reason",
    ] {
        assert!(
            found.keys().any(|name| name.contains(section)),
            "no prompt has <{section}>: {found:#?}"
        );
    }
    let all: Vec<String> = found.iter().map(|(name, text)| format!("=== {name}\n{text}")).collect();
    insta::assert_snapshot!("every_situation", all.join("\n"));
}

#[test]
fn the_fixed_prompts_are_short_and_their_table_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sizes = prompts::sizes(&root.join("prompts")).unwrap();
    assert!(prompts::total(&sizes) < 9_000, "{}", prompts::total(&sizes));
    let path = root.join("docs/prompts.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (start, end) = (
        "<!-- table: cargo run -p artoo-testkit --bin prompts -->\n",
        "<!-- end of table -->",
    );
    let (before, rest) = page.split_once(start).unwrap();
    let (stored, after) = rest.split_once(end).unwrap();
    let table = prompts::table(&sizes);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{start}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(
            stored, table,
            "docs/prompts.md is stale: run UPDATE_DOCS=1 cargo test -p artoo-testkit --test whole_system prompts"
        );
    }
}
