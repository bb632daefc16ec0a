//! The operator's view of memory, and the Dreamer, through the binary.

use artoo_testkit::server::Response;
use serde_json::{Value, json};

use crate::support::{Done, Running, Sandbox, told};

const GROUP: [&str; 2] = ["intent:count_the_files", "env:local"];

fn megram(number: u32, made: &str, state: &str, f: f64, sigma: f64) -> String {
    json!({"id": format!("0190{number:04}"), "level": "M", "created_at": made, "last_recalled_at": null, "space": GROUP[0],
        "entity": GROUP[1], "content": format!("Way {number} was taken."), "state": state, "f": f, "sigma": sigma, "k": 0.05,
        "origin": format!("count_files_{number:08x}")})
    .to_string()
}

/// Six good endings of one day: enough for a rule.
fn filled(sandbox: &Sandbox, made: &str) -> String {
    let lines: Vec<String> = (0..6).map(|i| megram(i, made, "accept", 0.9, 1.0)).collect();
    let file = sandbox.file("memories.jsonl", &(lines.join("\n") + "\n"));
    let imported = sandbox.run(&["memory", "import", file.to_str().unwrap(), "--json"]);
    assert_eq!(imported.ended(0).json()["new"], 6);
    lines.join("\n")
}

fn lines(done: &Done) -> Vec<Value> {
    done.ended(0)
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn memory_keeps_no_secret() {
    let sandbox = Sandbox::new();
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    sandbox.run(&[&format!("search for \"{token}\" in src")]);
    let export = sandbox.run(&["memory", "export"]);
    assert!(export.ended(0).out.contains("Worked for"), "{export:#?}");
    assert!(!export.out.contains(token), "{export:#?}");
}

/// What a person says or brings along stands in every prompt from then on.
#[test]
fn what_looks_like_a_key_is_masked_in_wishes_and_imports_and_that_is_said() {
    let sandbox = Sandbox::new();
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let said = sandbox.run(&["memory", "remember", &format!("push with {token} to the mirror")]);
    assert!(said.ended(0).err.contains("asterisks"), "{said:#?}");
    let again = sandbox.run(&[
        "memory",
        "remember",
        "--json",
        &format!("push with {token} to the mirror"),
    ]);
    assert_eq!(again.ended(0).json()["new"], false);
    let harmless = sandbox.run(&["memory", "remember", "the key words come first"]);
    assert!(!harmless.ended(0).err.contains("asterisks"), "{harmless:#?}");

    // Also where it comes from is told.
    let line = megram(1, &just_now(), "accept", 0.9, 1.0)
        .replace("Way 1 was taken.", &format!("Worked with {token}."))
        .replace("count_files_", &format!("{token} count_files_"));
    let file = sandbox.file("memories.jsonl", &line);
    let imported = sandbox.run(&["memory", "import", file.to_str().unwrap(), "--json"]);
    assert!(imported.ended(0).err.contains("1 memories held"), "{imported:#?}");
    assert_eq!(imported.json()["masked"], 1);
    let again = sandbox.run(&["memory", "import", file.to_str().unwrap(), "--json"]);
    assert_eq!(
        (&again.ended(0).json()["known"], &again.json()["refused"]),
        (&json!(1), &json!([]))
    );
    let export = sandbox.run(&["memory", "export"]);
    assert_eq!(lines(&export).len(), 3);
    assert!(
        !export.out.contains(token) && export.out.contains("****"),
        "{export:#?}"
    );
}

#[test]
fn an_export_taken_in_elsewhere_is_the_same_memory() {
    let (here, there) = (Sandbox::new(), Sandbox::new());
    filled(&here, &just_now());
    here.run(&["memory", "remember", "use yarn,", "not npm"]).ended(0);
    here.run(&["memory", "dream"]).ended(0);
    let export = here.run(&["memory", "export"]);
    assert_eq!(lines(&export).len(), 13, "six events, the same as knowledge, one wish");
    let file = there.file("export.jsonl", &export.out);
    let file = file.to_str().unwrap();
    there.run(&["memory", "import", file]).ended(0);
    assert_eq!(there.run(&["memory", "export"]).ended(0).out, export.out);
    let at = ["--at", "2126-03-20T00:00:00Z", "--json"];
    let query = [&["memory", "query", GROUP[0], GROUP[1]], &at[..]].concat();
    assert_eq!(there.run(&query).ended(0).out, here.run(&query).ended(0).out);
    let again = there.run(&["memory", "import", file, "--json"]);
    assert_eq!(
        (&again.ended(0).json()["new"], &again.json()["known"]),
        (&json!(0), &json!(13))
    );
    assert_eq!(
        there.run(&["memory", "verify", "--json"]).ended(0).json()["sound"],
        true
    );

    let broken = there.file("broken.jsonl", &(export.out.clone() + "{\"id\": 7}\n"));
    there
        .run(&["memory", "import", broken.to_str().unwrap()])
        .refused(2, &["line 14", "nothing was imported"]);
}

#[test]
fn a_potential_is_explained_entry_by_entry() {
    let sandbox = Sandbox::new();
    filled(&sandbox, "2026-02-27T00:00:00.000Z");
    let at = ["--at", "2026-03-13T00:00:00Z"];
    // Fourteen days at 0.05 a day leave e^(−0.7) = 0.4966 of 0.9, six times.
    let query = sandbox.run(&[&["memory", "query", GROUP[0], GROUP[1], "--json"], &at[..]].concat());
    let attention = query.ended(0).json()["attention"].as_f64().unwrap();
    assert!((attention - 6.0 * 0.9 * (-0.7_f64).exp()).abs() < 1e-9, "{attention}");
    let show = sandbox.run(&[&["memory", "show", "01900003"], &at[..]].concat());
    let page = &show.ended(0).out;
    for part in ["0.4966", "0.4469", "14.00", "2.6816", "exploit", "it counts"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let shown = sandbox.run(&[&["memory", "show", "01900003", "--json"], &at[..]].concat());
    assert_eq!(shown.ended(0).json()["group"]["entries"].as_array().unwrap().len(), 6);
    let before = sandbox.run(&[
        "memory",
        "query",
        GROUP[0],
        GROUP[1],
        "--json",
        "--at",
        "2026-02-26T00:00:00Z",
    ]);
    assert_eq!(
        before.ended(0).json()["attention"],
        0.0,
        "what came later was not known"
    );

    let picture = sandbox.project().join("potentials.svg");
    let drawn = [
        "memory",
        "query",
        GROUP[0],
        GROUP[1],
        "--svg",
        picture.to_str().unwrap(),
    ];
    sandbox.run(&drawn).ended(0);
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));

    let recall = sandbox.run(&["memory", "recall", "count", "the", "files", "in", "docs", "--json"]);
    assert_eq!(recall.ended(0).json()["recent"].as_array().unwrap().len(), 6);
    let listed = sandbox.run(&["memory", "list", "--level", "M", "--limit", "4", "--json"]);
    assert_eq!(listed.ended(0).json().as_array().unwrap().len(), 4);
    sandbox
        .run(&["memory", "show", "nothing"])
        .refused(2, &["there is no memory `nothing`"]);
    sandbox
        .run(&["memory", "show", "0190"])
        .refused(2, &["means 6 memories"]);
}

#[test]
fn a_wish_is_kept_once_and_forgotten_for_good() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["memory", "remember", "--json", "always use yarn"]);
    let id = said.ended(0).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        sandbox
            .run(&["memory", "remember", "--json", "Always  use YARN"])
            .ended(0)
            .json()["new"],
        false
    );
    let recall = sandbox.run(&["memory", "recall", "--json", "build it"]);
    assert_eq!(recall.ended(0).json()["sops"][0]["content"], "always use yarn");
    let dream = sandbox.run(&["memory", "dream", "--json"]);
    assert_eq!(dream.ended(0).json()["forgotten"], 0);
    sandbox.run(&["memory", "forget", &id]).ended(0);
    assert_eq!(sandbox.run(&["memory", "export"]).ended(0).out, "");
    sandbox
        .run(&["memory", "forget", &id])
        .refused(2, &["there is no memory"]);
    sandbox
        .run(&["memory", "remember", "  "])
        .refused(2, &["nothing to remember"]);
}

/// Nothing that a person says is cut.
#[test]
fn a_long_wish_is_kept_whole_or_refused() {
    let sandbox = Sandbox::new();
    let long = "ä wish ".repeat(1_100);
    sandbox.run(&["memory", "remember", &long]).ended(0);
    let export = sandbox.run(&["memory", "export"]);
    assert_eq!(lines(&export)[0]["content"], long.trim());
    let too_long = "x".repeat(8_001);
    sandbox
        .run(&["memory", "remember", &too_long])
        .refused(2, &["8000 characters", "nothing was remembered"]);

    let mut other: Value = serde_json::from_str(export.out.trim()).unwrap();
    (other["id"], other["content"]) = (json!("1"), json!(too_long));
    let there = Sandbox::new();
    let file = there.file("export.jsonl", &format!("{}{other}\n", export.out));
    let imported = there.run(&["memory", "import", file.to_str().unwrap(), "--json"]);
    let said = imported.ended(1).json();
    assert_eq!(
        (&said["new"], &said["refused"][0]),
        (&json!(1), &json!("1: it is longer than 8000 characters"))
    );
    assert_eq!(there.run(&["memory", "export"]).ended(0).out, export.out);
    assert_eq!(
        there.run(&["memory", "list", "--limit", "0", "--json"]).ended(0).json(),
        json!([])
    );
    let none = there.run(&["memory", "list", "--limit", "0"]);
    assert_eq!(
        (none.ended(0).out.as_str(), none.err.as_str()),
        ("", ""),
        "there are some"
    );
    let none = there.run(&["memory", "list", "--limit", "0", "--level", "K"]);
    assert!(none.ended(0).err.contains("there is no such memory"), "{none:#?}");
}

/// What a person asks to be dreamt costs no more than was allowed.
#[test]
fn dreaming_keeps_to_the_limit_of_tokens() {
    let sandbox = Sandbox::new();
    filled(&sandbox, &just_now());
    let (server, asked) = told(|_| Response::Content(json!({"rule": "Take it."}).to_string()));
    let mut dream = sandbox.with_model(&server, &["memory", "dream", "--json", "--max-tokens", "0"]);
    let dreamt = Running::start(&mut dream).wait();
    assert_eq!(dreamt.ended(0).json()["rules"], json!([]));
    assert!(dreamt.err.contains("limit of tokens or money"), "{dreamt:#?}");
    assert!(asked.try_recv().is_err(), "no model was asked");
    let mut dream = sandbox.with_model(&server, &["memory", "dream", "--json", "--max-tokens", "100000"]);
    assert_eq!(
        Running::start(&mut dream).wait().ended(0).json()["rules"][0]["rule"],
        "Take it."
    );
}

/// The same words day after day are one memory that weighs as much.
#[test]
fn repetitions_are_folded_and_weigh_the_same() {
    use artoo_protocol::ports::Clock as _;
    let sandbox = Sandbox::new();
    let now = artoo_bus::SystemClock.now();
    let said: Vec<String> = (0..4_u32)
        .map(|number| {
            let made = now.as_millis() - i64::from(number + 2) * 2 * 86_400_000;
            let made = artoo_protocol::Timestamp::from_millis(made).to_string();
            megram(number, &made, "accept", 0.9, 1.0).replace(&format!("Way {number} was"), "The way was")
        })
        .collect();
    let file = sandbox.file("memories.jsonl", &(said.join("\n") + "\n"));
    sandbox.run(&["memory", "import", file.to_str().unwrap()]).ended(0);
    let attention = || {
        let query = sandbox.run(&[
            "memory",
            "query",
            GROUP[0],
            GROUP[1],
            "--json",
            "--at",
            "2126-03-01T00:00:00Z",
        ]);
        let later = query.ended(0).json()["attention"].as_f64().unwrap();
        // Before the newest of them.
        let earlier = now.as_millis() - 5 * 86_400_000;
        let at = artoo_protocol::Timestamp::from_millis(earlier).to_string();
        let seen = |command: &[&str]| {
            let done = sandbox.run(&[command, &["--at", &at]].concat());
            let mut seen: Vec<String> = done.ended(0).out.lines().map(str::to_owned).collect();
            seen.sort();
            seen
        };
        let past = [
            seen(&["memory", "query", GROUP[0], GROUP[1], "--json"]),
            seen(&["memory", "export"]),
            seen(&["memory", "list"]),
        ];
        let now = sandbox.run(&["memory", "query", GROUP[0], GROUP[1], "--json"]);
        (now.ended(0).json()["attention"].as_f64().unwrap(), later, past)
    };
    let before = attention();
    assert_eq!(
        (before.2[1].len(), before.2[2].len()),
        (3, 3),
        "three of four had happened"
    );
    let export = sandbox.run(&["memory", "export"]).ended(0).out.clone();
    let dry = sandbox.run(&["memory", "dream", "--dry-run", "--json"]).ended(0).json();
    assert_eq!(
        (&dry["actions"][0]["action"], &dry["actions"][0]["level"]),
        (&json!("fold"), &json!("K"))
    );
    let dreamt = sandbox.run(&["memory", "dream", "--json"]).ended(0).json();
    assert_eq!((&dreamt["folded"], &dreamt["promoted"]), (&json!(3), &json!(0)));
    let stats = sandbox.run(&["memory", "stats", "--json"]).ended(0).json();
    assert_eq!((&stats["counting"], &stats["restated"]), (&json!(1), &json!(0)));
    let after = attention();
    // The clock went on by some seconds.
    assert!(
        (before.0 - after.0).abs() < 1e-4 && before.0 > 2.0,
        "{before:?} {after:?}"
    );
    assert!((before.1 - after.1).abs() < 1e-12, "{before:?} {after:?}");
    // What had happened then is still seen, also in its words, but for the origin.
    let number = |past: &[Vec<String>; 3]| {
        let seen: Value = serde_json::from_str(&past[0][0]).unwrap();
        seen["attention"].as_f64().unwrap()
    };
    assert!(
        (number(&before.2) - number(&after.2)).abs() < 1e-12,
        "{before:?} {after:?}"
    );
    assert_eq!(before.2[2], after.2[2]);
    for (was, is) in before.2[1].iter().zip(&after.2[1]) {
        let mut was: Value = serde_json::from_str(was).unwrap();
        was.as_object_mut().unwrap().remove("origin");
        assert_eq!(was, serde_json::from_str::<Value>(is).unwrap());
    }
    // An export from before the fold brings nothing twice.
    let older = sandbox.file("older.jsonl", &export);
    let imported = sandbox.run(&["memory", "import", older.to_str().unwrap(), "--json"]);
    let imported = imported.ended(0).json();
    assert_eq!((&imported["new"], &imported["known"]), (&json!(0), &json!(4)));
    assert!((attention().0 - after.0).abs() < 1e-4, "{after:?}");
    assert_eq!(
        sandbox.run(&["memory", "verify", "--json"]).ended(0).json()["sound"],
        true
    );
}

/// Two installations tell one another what they know: what one has folded the other holds one by one, and neither counts it twice.
#[test]
fn what_was_folded_here_and_is_single_there_counts_once_in_both() {
    use artoo_protocol::ports::Clock as _;
    let (here, there) = (Sandbox::new(), Sandbox::new());
    let now = artoo_bus::SystemClock.now();
    let said: Vec<String> = (0..4_u32)
        .map(|number| {
            let made = now.as_millis() - i64::from(number + 2) * 2 * 86_400_000;
            let made = artoo_protocol::Timestamp::from_millis(made).to_string();
            megram(number, &made, "accept", 0.9, 1.0).replace(&format!("Way {number} was"), "The way was")
        })
        .collect();
    let take = |sandbox: &Sandbox, name: &str, text: &str| {
        let file = sandbox.file(name, text);
        let done = sandbox.run(&["memory", "import", file.to_str().unwrap(), "--json"]);
        let said = done.ended(0).json();
        assert_eq!(said["refused"], json!([]));
        said["new"].as_u64().unwrap()
    };
    let weight = |sandbox: &Sandbox| {
        let at = ["--at", "2126-03-01T00:00:00Z"];
        let query = sandbox.run(&[&["memory", "query", GROUP[0], GROUP[1], "--json"], &at[..]].concat());
        query.ended(0).json()["attention"].as_f64().unwrap()
    };
    assert_eq!(take(&here, "single.jsonl", &(said.join("\n") + "\n")), 4);
    let before = weight(&here);
    here.run(&["memory", "dream"]).ended(0);
    let folded = here.run(&["memory", "export"]).ended(0).out.clone();
    assert!(folded.contains("\"parts\":["), "{folded}");
    // Single first, then folded, and the other way round; each twice.
    assert_eq!(take(&there, "single.jsonl", &(said.join("\n") + "\n")), 4);
    for _ in 0..2 {
        assert_eq!(take(&there, "folded.jsonl", &folded), 0);
        assert!((weight(&there) - before).abs() < 1e-12);
    }
    let other = Sandbox::new();
    take(&other, "folded.jsonl", &folded);
    for _ in 0..2 {
        assert_eq!(take(&other, "single.jsonl", &(said.join("\n") + "\n")), 0);
        assert!((weight(&other) - before).abs() < 1e-12);
    }
    assert_eq!(other.run(&["memory", "export"]).ended(0).out, folded, "the same memory");
    // One of the four is known: the rest is taken.
    let some = Sandbox::new();
    take(&some, "one.jsonl", &(said[1].clone() + "\n"));
    take(&some, "folded.jsonl", &folded);
    assert!((weight(&some) - before).abs() < 1e-12);
    for sandbox in [&there, &other, &some] {
        assert_eq!(
            sandbox.run(&["memory", "verify", "--json"]).ended(0).json()["sound"],
            true
        );
    }
}

#[test]
fn dreaming_says_what_it_would_do_and_distils_through_the_model() {
    let sandbox = Sandbox::new();
    filled(&sandbox, &just_now());
    let dry = sandbox.run(&["memory", "dream", "--dry-run", "--json"]).ended(0).json();
    let kinds: Vec<&str> = dry["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["action"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, [&["promote"; 6][..], &["consolidate"]].concat());
    assert_eq!(
        sandbox.run(&["memory", "stats", "--json"]).ended(0).json()["K"],
        0,
        "nothing was done"
    );

    // Without a model the way up to rules is left out, and said so.
    let without = sandbox.run(&["memory", "dream"]);
    assert!(
        without.ended(0).err.contains("rules are distilled by a model"),
        "{without:#?}"
    );
    let stats = sandbox.run(&["memory", "stats", "--json"]).ended(0).json();
    assert_eq!((&stats["K"], &stats["C"]), (&json!(6), &json!(0)));

    let (server, _asked) = told(|request| {
        let text = request.to_string();
        let is_shown = text.contains("Way 3 was taken.") && text.contains("best practice");
        let rule = if is_shown { "Take the way that worked." } else { "" };
        Response::Content(json!({ "rule": rule }).to_string())
    });
    let mut dream = sandbox.with_model(&server, &["memory", "dream", "--json"]);
    let dreamt = Running::start(&mut dream).wait();
    assert_eq!(dreamt.ended(0).json()["rules"][0]["rule"], "Take the way that worked.");
    // The auditor has seen what was asked, what it cost, and what came of it.
    let tail = sandbox.run(&["audit", "tail", "--role", "R5", "--json"]);
    let acts: Vec<_> = tail
        .ended(0)
        .json_lines()
        .iter()
        .map(|line| line["deed"]["act"].clone())
        .collect();
    assert_eq!(acts, ["model_asked", "model_answered", "stored"]);
    sandbox.run(&["audit", "verify"]).ended(0);
    let stats = sandbox.run(&["memory", "stats", "--json"]).ended(0).json();
    assert_eq!(
        (&stats["C"], &stats["dreams"]["rules"], &stats["dreams"]["calls"]),
        (&json!(1), &json!(1), &json!(1))
    );
    let rule = sandbox
        .run(&["memory", "list", "--level", "C", "--json"])
        .ended(0)
        .json()[0]
        .clone();
    assert_eq!(
        rule["sources"].as_array().unwrap().len(),
        6,
        "a rule has its evidence: {rule}"
    );
    let query = sandbox.run(&["memory", "query", GROUP[0], GROUP[1], "--json"]);
    assert_eq!(query.ended(0).json()["attention"], 1.0, "its sources no longer count");

    // Forgotten with its evidence, it is not learned again.
    sandbox
        .run(&["memory", "forget", rule["id"].as_str().unwrap()])
        .ended(0);
    let again = sandbox.run(&["memory", "dream", "--dry-run", "--json"]).ended(0).json();
    assert_eq!(again["actions"], json!([]));
}

/// Looking says what is damaged, whenever it is met, and an export that is not whole does not pass for one that is.
#[test]
fn damage_is_named_by_whoever_looks() {
    let files = |sandbox: &Sandbox, end: &str| {
        let folder = sandbox.data().join("memory.leveldb");
        let mut found: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(end))
            .collect();
        found.sort();
        found
    };
    let check = |damage: &dyn Fn(&Sandbox), says: &str| {
        let sandbox = Sandbox::new();
        filled(&sandbox, &just_now());
        // Each start makes a table of what the log held.
        for number in 0..3 {
            sandbox.run(&["memory", "remember", &format!("wish {number}")]).ended(0);
        }
        assert_eq!(
            sandbox.run(&["memory", "verify", "--json"]).ended(0).json()["damage"],
            json!([])
        );
        damage(&sandbox);
        let verify = sandbox.run(&["memory", "verify", "--json"]);
        let said = verify.ended(1).json();
        assert_eq!(
            (&said["sound"], &said["files_damaged"]),
            (&json!(false), &json!(true)),
            "{said}"
        );
        assert!(said["damage"][0].as_str().unwrap().contains(says), "{said}");
        let export = sandbox.run(&["memory", "export"]);
        assert!(export.ended(1).err.contains(says), "{export:#?}");
        let list = sandbox.run(&["memory", "list"]);
        assert!(list.ended(0).err.contains(says), "{list:#?}");
        // Whoever asks for it repairs it, and is told so; then all is well.
        assert!(list.err.contains("artoo memory repair"), "{list:#?}");
        let repair = sandbox.run(&["memory", "repair", "--json"]);
        let said = repair.ended(1).json();
        assert_eq!(
            (&said["sound"], &said["files_damaged"]),
            (&json!(true), &json!(true)),
            "{said}"
        );
        assert!(
            said["pieces_lost"].as_u64().unwrap() > 0 && repair.err.contains("damaged"),
            "{repair:#?}"
        );
        sandbox.run(&["memory", "export"]).ended(0);
        sandbox.run(&["memory", "verify"]).ended(0);
        assert_eq!(
            sandbox.run(&["memory", "repair", "--json"]).ended(0).json()["files_damaged"],
            false
        );
    };
    let flip = |sandbox: &Sandbox| {
        let table = &files(sandbox, ".ldb")[0];
        let mut bytes = std::fs::read(table).unwrap();
        bytes[40] ^= 4;
        std::fs::write(table, bytes).unwrap();
    };
    check(&flip, "wrong checksum");
    let cut = |sandbox: &Sandbox| {
        let log = files(sandbox, ".log").pop().unwrap();
        let length = std::fs::metadata(&log).unwrap().len();
        let file = std::fs::OpenOptions::new().write(true).open(&log).unwrap();
        file.set_len(length - 40).unwrap();
    };
    check(&cut, "cut short");
}

/// The store of a sandbox, changed by somebody who knows its keys.
fn changed(sandbox: &Sandbox, change: impl FnOnce(&mut artoo_memory::kv::Batch)) {
    use artoo_memory::kv::{Batch, Kv as _, LevelKv, LevelSettings};
    let folder = sandbox.data().join("memory.leveldb");
    let kv = LevelKv::open(&folder, "now", LevelSettings::default()).unwrap();
    let mut batch = Batch::new();
    change(&mut batch);
    kv.apply(batch).unwrap();
    kv.close().unwrap();
}

/// What a task would not notice: keys that are missing, lead nowhere, or say something else.
#[test]
fn what_is_derived_is_mended_by_the_command_that_verify_names() {
    let sandbox = Sandbox::new();
    sandbox.run(&["memory", "repair"]).ended(0);
    assert_eq!(
        sandbox.run(&["memory", "repair", "--json"]).ended(0).json()["records"],
        0
    );
    filled(&sandbox, &just_now());
    let whole = sandbox.run(&["memory", "repair", "--json"]).ended(0).json();
    assert_eq!(
        (&whole["sound"], &whole["lost"], &whole["records"]),
        (&json!(true), &json!(0), &json!(6))
    );
    changed(&sandbox, |batch| {
        batch.delete("i|intent:count_the_files|env:local");
        batch.delete("l|M|01900003");
        batch.put("o|nobody|01900003", "s");
        batch.put("h|tool:shell|0000000000000000|tool:shell|path:/a", "");
        batch.put("a|intent:count_the_files|env:local", "no sums");
    });
    let verify = sandbox.run(&["memory", "verify"]);
    assert!(
        verify
            .ended(1)
            .out
            .contains("2 keys missing, 2 keys lead nowhere, 1 sums wrong"),
        "{verify:#?}"
    );
    assert!(verify.err.contains("artoo memory repair"), "{verify:#?}");
    let repair = sandbox.run(&["memory", "repair"]);
    assert!(
        repair.ended(0).out.contains("mended: 6 memories, 6 of them count"),
        "{repair:#?}"
    );
    assert!(
        sandbox
            .run(&["memory", "verify"])
            .ended(0)
            .out
            .contains("sound: 6 memories")
    );
}

/// A store of which nothing can be read is not an empty one.
#[test]
fn memories_that_cannot_be_read_are_counted_and_hide_no_others() {
    let sandbox = Sandbox::new();
    filled(&sandbox, &just_now());
    let ids: Vec<String> = (0..6).map(|number| format!("0190{number:04}")).collect();
    changed(&sandbox, |batch| {
        for id in &ids[..5] {
            batch.put(format!("m|{id}"), "no memory");
        }
    });
    let stats = sandbox.run(&["memory", "stats"]);
    assert!(
        stats.ended(0).out.contains("5 memories cannot be read") && stats.out.contains("1 memories in 1 groups"),
        "{stats:#?}"
    );
    assert!(stats.err.contains("5 memories have a wrong checksum"), "{stats:#?}");
    assert_eq!(
        sandbox.run(&["memory", "stats", "--json"]).ended(0).json()["damaged"],
        5
    );
    changed(&sandbox, |batch| batch.put(format!("m|{}", ids[5]), "no memory"));
    let stats = sandbox.run(&["memory", "stats"]);
    assert!(
        stats.ended(0).out.contains("6 memories cannot be read") && !stats.err.contains("empty"),
        "{stats:#?}"
    );
    let repair = sandbox.run(&["memory", "repair"]);
    assert!(
        repair.ended(1).err.contains("6 records could not be read"),
        "{repair:#?}"
    );
    assert!(
        sandbox
            .run(&["memory", "stats"])
            .ended(0)
            .err
            .contains("memory is empty")
    );
}

/// A repair that was killed between its two moves has left the store beside the folder.
#[test]
fn who_looks_while_a_repair_is_half_done_sees_what_there_is() {
    let sandbox = Sandbox::new();
    filled(&sandbox, &just_now());
    let (folder, rebuilt) = (
        sandbox.data().join("memory.leveldb"),
        sandbox.data().join("memory.leveldb.rebuilt"),
    );
    std::fs::rename(&folder, &rebuilt).unwrap();
    assert_eq!(sandbox.run(&["memory", "stats", "--json"]).ended(0).json()["total"], 6);
    assert_eq!(
        sandbox.run(&["memory", "verify", "--json"]).ended(0).json()["records"],
        6
    );
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.out.contains("with 6 memories"), "{doctor:#?}");
    assert!(rebuilt.exists() && !folder.exists(), "looking changes nothing");
    assert_eq!(
        sandbox.run(&["memory", "forget", "01900003", "--json"]).ended(0).json()["forgotten"],
        json!(["01900003"])
    );
    assert!(folder.exists() && !rebuilt.exists());
    assert_eq!(sandbox.run(&["memory", "stats", "--json"]).ended(0).json()["total"], 5);
}

#[test]
fn a_digit_or_two_do_not_say_what_is_to_be_forgotten() {
    let sandbox = Sandbox::new();
    filled(&sandbox, &just_now());
    for text in ["3", "00003"] {
        sandbox
            .run(&["memory", "forget", text])
            .refused(2, &["too short", "whole id"]);
    }
    sandbox.run(&["memory", "show", "00003"]).ended(0);
    assert_eq!(sandbox.run(&["memory", "stats", "--json"]).ended(0).json()["total"], 6);
    sandbox.run(&["memory", "forget", "900003"]).ended(0);
    let short = megram(7, &just_now(), "accept", 0.9, 1.0).replace("01900007", "7");
    let file = sandbox.file("short.jsonl", &short);
    sandbox.run(&["memory", "import", file.to_str().unwrap()]).ended(0);
    assert_eq!(
        sandbox.run(&["memory", "forget", "7", "--json"]).ended(0).json()["forgotten"],
        json!(["7"])
    );
}

/// A memory that cannot be opened costs the task nothing but its memory, and that is said.
#[test]
fn a_task_goes_on_without_a_memory_that_cannot_be_opened() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.data()).unwrap();
    std::fs::write(sandbox.data().join("memory.leveldb"), "no folder").unwrap();
    let done = sandbox.run(&["count the files in src"]);
    assert_eq!(done.ended(0).out.trim(), "3");
    assert!(done.err.contains("this task goes on without memory"), "{done:#?}");
    let kept = std::fs::read_to_string(sandbox.data().join("memory.leveldb")).unwrap();
    assert_eq!(kept, "no folder", "what is not artoo's is left alone");
}

/// A task of the binary itself puts its memory in order before the process ends.
#[test]
fn a_task_is_dreamt_of_before_the_process_ends() {
    let sandbox = Sandbox::new();
    let done = sandbox.run(&["count the files in src"]);
    assert_eq!(done.ended(0).out.trim(), "3");
    let stats = sandbox.run(&["memory", "stats", "--json"]).ended(0).json();
    assert_eq!(
        (&stats["M"], &stats["K"]),
        (&json!(1), &json!(1)),
        "a good ending is knowledge"
    );
    let account = std::fs::read_to_string(sandbox.data().join("dreams.jsonl")).unwrap();
    assert_eq!(account.lines().count(), 1, "{account}");
}

fn just_now() -> String {
    use artoo_protocol::ports::Clock as _;
    artoo_bus::SystemClock.now().to_string()
}
