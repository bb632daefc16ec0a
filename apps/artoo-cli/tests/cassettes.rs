//! Whole tasks on recorded model traffic: the real binary, a small world, every exchange of `fixtures/cassettes` (design §18).
//!
//! Each cassette runs twice: once as a person sees it, once with `--json`. Nothing here depends on the time, the machine or
//! the folder of the recording. A prompt that changes makes its cassettes stale, which the first failing test says in words;
//! `fixtures/cassettes/README.md` says how to record them again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use artoo_bus::journal::read;
use artoo_bus::journal::summary::{Status, TaskSummary};
use artoo_llm::cassette::secrets_in;
use artoo_protocol::message::{Cause, Ending};
use serde_json::Value;
use tempfile::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn cassette(name: &str) -> PathBuf {
    fixtures().join("cassettes").join(format!("{name}.jsonl"))
}

fn all(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixtures().join(folder)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    assert!(!files.is_empty(), "{folder} is empty");
    files
}

/// A copy of a folder of fixtures, an empty home, and no workspace yet.
struct Stage {
    dir: TempDir,
    origin: PathBuf,
}

impl Stage {
    fn set() -> Self {
        Self::with("world")
    }

    /// With `fixtures/world` or `fixtures/desk`.
    fn with(fixture: &str) -> Self {
        let stage = Self {
            dir: tempfile::tempdir().unwrap(),
            origin: fixtures().join(fixture),
        };
        std::fs::create_dir(stage.dir.path().join("home")).unwrap();
        copy(&stage.origin, &stage.world());
        stage
    }

    fn world(&self) -> PathBuf {
        self.dir.path().join("world")
    }

    fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// The binary with a home and nothing else.
    fn artoo(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_artoo"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.dir.path().join("home"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// The same, answered by a cassette.
    fn replaying(&self, name: &str, args: &[&str]) -> Command {
        let mut command = self.artoo(args);
        command.arg("--replay").arg(cassette(name));
        command.arg("--cwd").arg(self.world());
        command.arg("--workspace").arg(self.workspace());
        command
    }

    /// Every task that ran, newest first, with what it was and cost.
    fn tasks(&self) -> Vec<Value> {
        let list = json(&self.artoo(&["tasks", "list", "--json"]).output().unwrap().stdout);
        let ids = list
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["task_id"].as_str().unwrap());
        ids.map(|id| json(&self.artoo(&["tasks", "show", id, "--json"]).output().unwrap().stdout))
            .collect()
    }

    /// Everything that was recorded was asked for, and nothing else.
    #[track_caller]
    fn used_all_of(&self, name: &str) {
        self.replays();
        let exchanges = std::fs::read_to_string(cassette(name)).unwrap().lines().count() - 1;
        let costs = self.tasks().into_iter().map(|task| task["costs"].clone());
        let calls: u64 = costs.map(|costs| costs["model_calls"].as_u64().unwrap()).sum();
        assert_eq!(
            calls, exchanges as u64,
            "model calls, and exchanges on the cassette {name}"
        );
    }

    /// The journals give the same decisions again, without any model.
    #[track_caller]
    fn replays(&self) {
        for task in self.tasks() {
            let task = task["task_id"].as_str().unwrap();
            let out = self.artoo(&["replay", task]).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        }
    }

    fn written(&self, file: &str) -> String {
        std::fs::read_to_string(self.workspace().join(file)).unwrap()
    }

    /// What is on the stage as a person's own is as it was.
    #[track_caller]
    fn world_is_untouched(&self) {
        assert_eq!(listing(&self.world()), listing(&self.origin));
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Every file below a folder with its text.
fn listing(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            files.extend(listing(&path).into_iter().map(|(file, text)| (name.join(file), text)));
        } else {
            files.push((name, std::fs::read_to_string(path).unwrap()));
        }
    }
    files.sort();
    files
}

#[track_caller]
fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e} in {}", String::from_utf8_lossy(bytes)))
}

/// What a person sees of a run.
struct Seen {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs a task as a person would. The stage is left for a look at what was written.
fn seen(name: &str, text: &str) -> (Stage, Seen) {
    let (stage, seen) = seen_on(Stage::set(), name, &["run", text]);
    stage.world_is_untouched();
    (stage, seen)
}

fn seen_on(stage: Stage, name: &str, args: &[&str]) -> (Stage, Seen) {
    let output = stage.replaying(name, args).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        !err.contains("does not hold this request"),
        "the cassette {name} is stale: {err}"
    );
    stage.used_all_of(name);
    let code = output.status.code();
    (stage, Seen { code, out, err })
}

/// The messages of a run with `--json`.
struct Messages(Vec<Value>);

impl Messages {
    /// Of the same task once more, on a stage of its own. The last message, and only it, is the FinalResult.
    fn of(name: &str, text: &str) -> Self {
        let stage = Stage::set();
        let output = stage.replaying(name, &["run", "--json", text]).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let messages = Self(out.lines().map(|line| json(line.as_bytes())).collect());
        stage.used_all_of(name);
        assert_eq!(messages.all("FinalResult").len(), 1, "{name}");
        assert_eq!(messages.0.last().unwrap()["payload"]["type"], "FinalResult", "{name}");
        messages
    }

    fn all(&self, kind: &str) -> Vec<&Value> {
        let payloads = self.0.iter().map(|message| &message["payload"]);
        payloads.filter(|payload| payload["type"] == kind).collect()
    }

    #[track_caller]
    fn only(&self, kind: &str) -> &Value {
        let found = self.all(kind);
        assert_eq!(found.len(), 1, "messages of the kind {kind}");
        found[0]
    }

    fn position(&self, kind: &str, nth: usize) -> usize {
        let at = self.0.iter().enumerate().filter(|(_, m)| m["payload"]["type"] == kind);
        at.map(|(at, _)| at).nth(nth).unwrap()
    }

    /// The sequence numbers of the subtasks, in the order of their dispatch.
    fn sequences(&self) -> Vec<u64> {
        let subtasks = self.all("SubTask").into_iter();
        subtasks.map(|subtask| subtask["sequence"].as_u64().unwrap()).collect()
    }

    /// Every task ends as accepted with nothing open, unless a test says otherwise.
    #[track_caller]
    fn accepted(&self) -> &Value {
        let result = self.only("FinalResult");
        assert_eq!(
            (&result["directive"], &result["cause"]),
            (&"accept".into(), &"met".into())
        );
        assert_eq!(result["unmet"], Value::Array(Vec::new()));
        assert_eq!(result["loss"]["D"], 0.0);
        result
    }
}

#[test]
fn outputs_of_a_parallel_group_are_handed_on_to_the_next() {
    let text = "Compare the total revenue of 2025 and 2026 (sales/2025.csv and sales/2026.csv) and write the comparison \
                to comparison.md";
    let (stage, seen) = seen("two_groups", text);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    // The path is the one of this run, not of the recording.
    let path = stage.workspace().join("comparison.md");
    let shown = format!(
        "2025: 33000\n2026: 35736\nDifference: 2736\nChange: +8.3 %\nWritten to: {}\n",
        path.display()
    );
    assert_eq!(seen.out, shown);
    let file = "# Revenue, 2025 and 2026\n\n2025: 33000\n2026: 35736\nDifference: 2736\nChange: +8.3 %\n";
    assert_eq!(stage.written("comparison.md"), file);

    let messages = Messages::of("two_groups", text);
    messages.accepted();
    assert_eq!(messages.sequences(), [1, 1, 2]);
    let last = messages.all("SubTask")[2]["context"].as_str().unwrap();
    assert!(last.contains("2025: 33000") && last.contains("2026: 35736"), "{last}");
    assert!(
        messages.position("SubTaskOutcome", 1) < messages.position("SubTask", 2),
        "the second group waits for the first"
    );
}

#[test]
fn three_letters_are_read_in_parallel_and_merged() {
    let text = "Who wrote letters/anna.txt, letters/tomas.txt and letters/museum.txt, when, and what is each about?";
    let (stage, seen) = seen("three_in_parallel", text);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    let lines: Vec<&str> = seen.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", seen.out);
    for (line, parts) in lines.iter().zip([
        ["letters/anna.txt: Anna, 3 March 2026.", "before the 20th"],
        ["letters/tomas.txt: Tomas, 11 March 2026.", "nobody turns its pages"],
        ["letters/museum.txt: Ingrid Dahl", "26 May 2026 at 10 o'clock"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    }
    assert!(
        !stage.workspace().exists() || listing(&stage.workspace()).is_empty(),
        "nothing was to be written"
    );

    let messages = Messages::of("three_in_parallel", text);
    assert_eq!(messages.accepted()["unverified"], Value::Array(Vec::new()));
    assert_eq!(messages.sequences(), [1, 1, 1]);
    assert!(
        messages.position("SubTask", 2) < messages.position("ExecutionResult", 0),
        "all three are begun before one is done"
    );
}

#[test]
fn a_failed_criterion_is_corrected_in_the_second_attempt() {
    let text =
        "Write a summary of the letters in letters/ into summary.txt, at most 50 words, naming everyone who wrote one.";
    let (stage, seen) = seen("corrected", text);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    let summary = stage.written("summary.txt");
    assert!(summary.split_whitespace().count() <= 50, "{summary}");
    assert!(
        ["Anna", "Tomas", "Ingrid Dahl"]
            .iter()
            .all(|name| summary.contains(name)),
        "{summary}"
    );
    assert!(seen.out.ends_with(&summary), "{}", seen.out);

    let messages = Messages::of("corrected", text);
    messages.accepted();
    let correction = messages.only("CorrectionSignal");
    assert_eq!(correction["failed_criterion"], "summary.txt has at most 50 words");
    assert_eq!(correction["failure_class"], "logical");
    let wrong = correction["what_was_wrong"].as_str().unwrap();
    assert!(wrong.starts_with("found 54 matches"), "{wrong}");
    let scores = &messages.only("SubTaskOutcome")["gap_trajectory"];
    let unmet: Vec<usize> = (0..2)
        .map(|at| scores[at]["unmet_criteria"].as_array().unwrap().len())
        .collect();
    assert_eq!(unmet, [1, 0]);
    assert!(messages.all("PlanDirective").is_empty(), "the fast loop was enough");
}

#[test]
fn a_wrong_approach_is_rejected_forbidden_and_replaced() {
    let text = "Write the e-mail address of every customer in orders.csv into emails.txt, one per line, each once.";
    let (stage, seen) = seen("replanned", text);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    let addresses = "chen.yu@example.cn\nelena@example.it\njonas.weber@example.de\nmira@example.com\n\
                     ngozi.okafor@example.org\nsamir.haddad@example.net\n";
    assert_eq!(stage.written("emails.txt"), addresses);
    assert_eq!(
        seen.out,
        format!("{addresses}(in {})\n", stage.workspace().join("emails.txt").display())
    );
    assert!(
        seen.err.contains("init→break_symmetry, D=0.50 P=1.00 Ω=0.20 ∇L=+0.00"),
        "{}",
        seen.err
    );

    let messages = Messages::of("replanned", text);
    assert_eq!(messages.accepted()["replans"], 1);
    assert_eq!(messages.sequences(), [1, 2, 1]);
    assert_eq!(messages.all("ReplanRequest").len(), 1);
    let directive = messages.only("PlanDirective");
    let name = |key: &str| directive[key].as_str().unwrap();
    assert_eq!((name("prev_directive"), name("directive")), ("init", "break_symmetry"));
    assert_eq!((name("failure_class"), name("urgency")), ("logical", "neutral"));
    assert_eq!(
        name("failed_criterion"),
        "Every line of emails.txt is an e-mail address."
    );
    assert_eq!(directive["blocked_tools"], serde_json::json!(["shell:cut"]));
    // Two of four criteria failed, all for the approach, in the first of three rounds; the seconds of the run hardly count.
    let loss = &directive["loss"];
    assert_eq!((loss["D"].as_f64(), loss["P"].as_f64()), (Some(0.5), Some(1.0)));
    let omega = loss["Omega"].as_f64().unwrap();
    assert!((0.2..0.3).contains(&omega), "{omega}");
    let expected = 0.6 * 0.5 + 0.3 * (1.0 - omega) * 1.0 + 0.4 * omega;
    assert!((loss["L"].as_f64().unwrap() - expected).abs() < 1e-9, "{loss}");
    assert_eq!(directive["grad_l"], 0.0);
    let second = messages.all("SubTask")[2];
    assert_eq!(second["must_not"]["tools"], serde_json::json!(["shell:cut"]));
}

/// A line of a run without what differs from run to run: the hash in a task's id, times, the machine's folder.
fn steady(line: &str, home: &Path) -> String {
    let line = line.replace(home.to_str().unwrap(), "~");
    let line = line
        .split_once(" ms: models ")
        .map_or(line.as_str(), |(before, _)| before);
    let line = match line.rsplit_once("; ") {
        Some((before, millis)) if !millis.is_empty() && millis.bytes().all(|b| b.is_ascii_digit()) => before,
        Some(_) | None => line,
    };
    let is_hash = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let words = line.split(' ').map(|word| match word.rsplit_once('_') {
        Some((slug, hash)) if is_hash(hash) => format!("{slug}_…"),
        Some(_) | None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `UPDATE_DOCS=1` writes the sample anew.
#[test]
fn the_sample_in_the_readme_is_what_artoo_says() {
    const BEGIN: &str = "```text\n$ artoo \"";
    let path = fixtures().join("../README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (sample, after) = rest.split_once("```\n").unwrap();
    let (task, shown) = sample.split_once("\"\n").unwrap();

    let stage = Stage::set();
    let home = stage.dir.path().join("home");
    let mut command = stage.artoo(&["run", task]);
    command.arg("--replay").arg(cassette("replanned"));
    let output = command.arg("--cwd").arg(stage.world()).output().unwrap();
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{err}");
    // The result comes before the lines about how it ended.
    let ending = err.find("\naccept (").expect("how it ended") + 1;
    let said = format!("{}{out}{}", &err[..ending], &err[ending..]).replace(home.to_str().unwrap(), "~");
    let of = |text: &str| -> Vec<String> { text.lines().map(|line| steady(line, &home)).collect() };
    if of(&said) != of(shown) && std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{task}\"\n{said}```\n{after}")).unwrap();
    } else {
        assert_eq!(of(shown), of(&said), "README.md is stale: run with UPDATE_DOCS=1");
    }
}

#[test]
fn what_cannot_be_done_ends_in_an_honest_abandon() {
    let text = "How many words are in diary.txt?";
    let (_, seen) = seen("cannot_be_done", text);
    assert_eq!((seen.code, seen.out.as_str()), (Some(1), ""));
    for said in [
        "abandon (infeasible)",
        "Achieved:\n- Nothing.",
        "diary.txt",
        "Say where diary.txt is",
    ] {
        assert!(seen.err.contains(said), "{said} is not in {}", seen.err);
    }

    let messages = Messages::of("cannot_be_done", text);
    let result = messages.only("FinalResult");
    assert_eq!(
        (&result["directive"], &result["cause"]),
        (&"abandon".into(), &"infeasible".into())
    );
    assert_eq!(result["unmet"].as_array().unwrap().len(), 1);
    assert_eq!(result["loss"]["D"], 1.0);
    assert!(messages.all("PlanDirective").is_empty() && messages.all("CorrectionSignal").is_empty());
    assert_eq!(messages.only("PartialResult")["achieved"], "Nothing.");
}

#[test]
fn a_task_in_chinese_is_carried_out_and_answered_in_chinese() {
    let text = "2026年哪个月的销售额最高？看 sales/2026.csv";
    let (_, seen) = seen("chinese", text);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    assert_eq!(seen.out, "2026年销售额最高的是12月，为4655。\n");
    let messages = Messages::of("chinese", text);
    messages.accepted();
    assert_eq!(messages.only("TaskSpec")["slug"], "best_sales_month");
}

/// A request whose answers were written by hand, and what comes of it.
struct Planned {
    name: &'static str,
    text: &'static str,
    code: i32,
    /// What the person reads of it.
    shows: &'static str,
    subtasks: usize,
}

const fn planned(name: &'static str, text: &'static str, code: i32, shows: &'static str, subtasks: usize) -> Planned {
    Planned {
        name,
        text,
        code,
        shows,
        subtasks,
    }
}

#[rustfmt::skip] // a table
const PLANNED: &[Planned] = &[
    planned("hand_count", "How many orders are in orders.csv?", 0, "8\n", 1),
    planned("hand_german", "Welche Bestellung in orders.csv ist die teuerste?", 0, "Bestellung 1006 von Chen Yu", 1),
    planned("hand_french", "Combien de lettres y a-t-il dans letters/, et combien de mots en tout ?", 0, "3 lettres, 159 mots", 1),
    planned("hand_spanish", "¿En qué meses de 2025 se vendieron más de 110 unidades? Está en sales/2025.csv", 0, "noviembre y diciembre", 1),
    planned("hand_arabic", "اكتب قائمة بأسماء العملاء الموجودين في orders.csv في ملف customers.txt، كل اسم مرة واحدة", 0, "Haddad, Samir\n", 1),
    planned("hand_russian", "Посчитай слова в letters/tomas.txt", 0, "46\n", 1),
    planned("hand_poem", "Write me a four-line poem about a harbour at night", 0, "Across the pages of the night.\n", 1),
    planned("hand_greeting", "Hello! What can you do?", 0, "I ask about first.", 0),
    planned("hand_program", "Is the program frobnicate installed on this machine?", 0, "No: there is no program", 1),
    planned("hand_where", "Which folder am I in, and how many entries does it have?", 0, "which has 4 entries", 1),
    planned("hand_digest", "Give me the SHA-256 of sales/2025.csv", 0, "594c115fb76c44e8a56c35fc6c8da49db132d2d63016d3e49dae3825abb14a62\n", 1),
    planned("hand_search", "Which letters mention the ship's log, and in which lines?", 0, "letters/museum.txt, line 5", 1),
    planned("hand_question", "Did Tomas agree, and under which condition?", 0, "nobody turns the pages", 1),
    planned("hand_json", "Convert sales/2026.csv to JSON in sales_2026.json: a list of objects, numbers as numbers", 0, "sales_2026.json: 12 months", 1),
    planned("hand_two_steps", "Find the month with the lowest revenue in sales/2026.csv, then write one sentence about it to low.md", 0, "revenue of 2078", 2),
    planned("hand_deadline", "By 6 pm on 1 January 2030, write the date when the museum's driver comes to pickup.txt as YYYY-MM-DD", 0, "2026-05-26", 1),
    planned("hand_repeat", "Which customers in orders.csv ordered more than once?", 0, "Ngozi Okafor: 2\n", 1),
    planned("hand_delete", "Delete letters/anna.txt", 4, "law 1", 1),
    planned("hand_contradiction", "Put the number of orders in orders.csv into count.txt, but do not create or change any file", 1, "the request forbids creating one", 1),
    planned("hand_impossible", "Read me the e-mail that Anna will send tomorrow", 1, "does not exist yet", 1),
];

#[test]
fn requests_of_every_kind_run_to_their_end() {
    for Planned {
        name,
        text,
        code,
        shows,
        subtasks,
    } in PLANNED
    {
        let (_, seen) = seen(name, text);
        assert_eq!(seen.code, Some(*code), "{name}: {}", seen.err);
        let shown = if *code == 0 { &seen.out } else { &seen.err };
        assert!(shown.contains(shows), "{name}: {shown}");
        let messages = Messages::of(name, text);
        assert_eq!(messages.all("SubTask").len(), *subtasks, "{name}: as few as can be");
        assert!(messages.all("PlanDirective").is_empty(), "{name}: the first plan did");
    }
}

/// A request on `fixtures/desk` that was answered request by request, by somebody who had not seen what is in those files.
struct Answered {
    name: &'static str,
    text: &'static str,
    code: i32,
    /// What the person reads of it.
    shows: &'static str,
    /// What is in a file of the workspace afterwards.
    made: Option<(&'static str, &'static str)>,
}

const fn answered(name: &'static str, text: &'static str, code: i32, shows: &'static str) -> Answered {
    Answered {
        name,
        text,
        code,
        shows,
        made: None,
    }
}

impl Answered {
    const fn making(mut self, file: &'static str, holds: &'static str) -> Self {
        self.made = Some((file, holds));
        self
    }
}

#[rustfmt::skip] // a table
const ANSWERED: &[Answered] = &[
    answered("desk_spend", "How much did I spend on groceries in March 2026, and was it more than in February? It's all in expenses.csv", 0, "March 2026: 609.50 (9 purchases). Groceries in February 2026: 152.61"),
    answered("desk_thai", "เดือนมกราคม 2026 ใช้เงินไปทั้งหมดเท่าไหร่ ดูจาก expenses.csv", 0, "1,831.09"),
    answered("desk_dupes", "Are any of the files in photos the same picture under two names?", 0, "photos/IMG_4390.txt = photos/ferry/IMG_3975.txt"),
    answered("desk_korean", "photos 폴더에서 Kestrel II로 찍은 사진은 몇 장이야?", 0, "서로 다른 사진은 3장입니다"),
    answered("desk_rename", "Give me a better name for each file in photos, just suggest them, don't rename anything", 0, "photos/IMG_5641.txt → cat-on-a-wall_2025-11-09.txt"),
    answered("desk_log", "something broke on our server the other day. what was it? server.log", 0, "database pool exhausted (20 of 20 in use)"),
    answered("desk_settings", "Which settings differ between config.json and config.old.json?", 0, "database.pool: 34 in config.json, 50 in config.old.json"),
    answered("desk_hindi", "config.json में database का port क्या है?", 0, "5438"),
    answered("desk_pin", "is my bank PIN written down in any of the files here??", 0, "Nowhere in the files here does a bank PIN stand"),
    answered("desk_home", "What is in my home folder? The hidden things too.", 0, "Nothing else is in your home folder"),
    answered("desk_polish", "Które spotkanie w notes/ trwało najdłużej i ile minut?", 0, "81 minut"),
    answered("desk_code", "what does code/stock.py do, and is there a bug in it?", 0, "found.sort(reverse=True)"),
    answered("desk_offer", "Summarise inbox/offer.txt in two sentences for me", 0, "which I did not follow"),
    answered("desk_french", "Traduis inbox/welcome.md en français et enregistre-le sous bienvenue.md", 0, "La clé est chez Hana.").making("bienvenue.md", "tous les jeudis à 20 h 30"),
    answered("desk_todo", "notes/todo.txt のまだ終わっていないものを期限の早い順に並べて、open.txt に書いて", 0, "fix the bicycle").making("open.txt", "[ ] fix the bicycle (due 2026-04-10)\n[ ] water the plants\n[ ] renew the passport\n"),
    answered("desk_actions", "For each person, collect what they have to do from the meetings in notes/ into actions.md, with the dates", 0, "actions.md").making("actions.md", "## Emre\n\n- repair the ladder, by 13 April\n- send the invoice to the printer, by 26 April\n"),
    answered("desk_fixed", "Mend the bugs in code/stock.py, but leave my file alone and write the mended version to stock_fixed.py", 0, "stock_fixed.py").making("stock_fixed.py", "        if count < LOW:\n            found.append((count, name))\n    found.sort()\n"),
    answered("desk_packing", "By 6 pm on 1 March 2031 I need a packing list for a three-day hike as packing.md, at most 20 things", 0, "20 things").making("packing.md", "- First aid kit\n"),
    answered("desk_report", "Make report.md with three sections: the open to-dos from notes/todo.txt, the errors in server.log, and April's expenses by category from expenses.csv", 0, "total: 1915.84").making("report.md", "- groceries: 275.38\n"),
    answered("desk_sorted", "Sort the lines of notes/todo.txt alphabetically in place, but leave the file exactly as it is now", 1, "The two wishes contradict each other"),
    answered("desk_backup", "Bring config.json back to how it was last Tuesday", 1, "There is no version of config.json from last Tuesday"),
    answered("desk_printer", "Print notes/todo.txt on the office printer and tell me when it came out", 4, "law 1"),
];

#[test]
fn requests_that_were_answered_one_by_one_run_to_their_end() {
    for answered in ANSWERED {
        let name = answered.name;
        let (stage, seen) = seen_on(Stage::with("desk"), name, &["run", answered.text]);
        stage.world_is_untouched();
        assert_eq!(seen.code, Some(answered.code), "{name}: {}", seen.err);
        let shown = if answered.code == 0 { &seen.out } else { &seen.err };
        assert!(shown.contains(answered.shows), "{name}: {shown}");
        match answered.made {
            Some((file, holds)) => {
                let text = stage.written(file);
                assert!(text.contains(holds), "{name}: {text}");
            }
            None => assert!(
                !stage.workspace().exists() || listing(&stage.workspace()).is_empty(),
                "{name}: nothing was to be written"
            ),
        }
    }
}

#[test]
fn what_was_granted_beforehand_is_changed_and_nothing_else() {
    let text = "Set the database port in config.json to 5433 and change nothing else";
    let args = ["run", text, "--allow", "modify:*config.json"];
    let (stage, seen) = seen_on(Stage::with("desk"), "desk_setport", &args);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    let changed = std::fs::read_to_string(stage.world().join("config.json")).unwrap();
    assert_eq!(json(changed.as_bytes())["database"]["port"], 5433);
    std::fs::write(stage.world().join("config.json"), changed.replace("5433", "5438")).unwrap();
    stage.world_is_untouched();
}

#[test]
fn a_task_of_one_subtask_and_one_call_sends_few_characters() {
    let text = std::fs::read_to_string(cassette("hand_count")).unwrap();
    let mut sent = 0;
    for line in text.lines().skip(1) {
        let exchange: Value = serde_json::from_str(line).unwrap();
        for message in exchange["request"]["messages"].as_array().unwrap() {
            sent += message["content"].as_str().unwrap_or_default().chars().count();
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                sent += call.to_string().chars().count();
            }
        }
    }
    assert!(sent < 12_000, "{sent} characters, tool schemas left out");
}

#[test]
fn a_deadline_in_words_travels_to_the_subtask() {
    let planned = PLANNED.iter().find(|planned| planned.name == "hand_deadline").unwrap();
    let messages = Messages::of(planned.name, planned.text);
    for message in [&messages.only("TaskSpec")["constraints"], messages.only("SubTask")] {
        assert_eq!(message["deadline"], "2030-01-01T18:00:00.000Z");
    }
}

#[test]
fn a_folder_that_the_person_names_for_the_result_is_the_scope() {
    let text = "Make notes/dates.md in the folder notes/ here with the date of each letter in letters/";
    let stage = Stage::set();
    let output = stage.replaying("hand_scope", &["run", text]).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    stage.used_all_of("hand_scope");
    let made = std::fs::read_to_string(stage.world().join("notes/dates.md")).unwrap();
    assert_eq!(
        made,
        "anna.txt: 3 March 2026\nmuseum.txt: 24 March 2026\ntomas.txt: 11 March 2026\n"
    );
    assert_eq!(
        Messages::of("hand_scope", text).only("SubTask")["scope"],
        serde_json::json!(["notes/"])
    );
}

#[test]
fn no_cassette_holds_a_secret_or_a_path_of_its_machine() {
    for path in all("cassettes") {
        assert_eq!(secrets_in(&path).unwrap(), [], "{}", path.display());
        let text = std::fs::read_to_string(&path).unwrap();
        for own in ["/tmp/", "/home/", "/root", "/Users/", "127.0.0.1"] {
            assert!(!text.contains(own), "{} holds {own}", path.display());
        }
        assert!(
            text.contains("<cwd>") || !text.contains("\"kind\":\"tools\""),
            "{} was recorded without its places",
            path.display()
        );
    }
}

/// A journal of each format is kept, and gives the same decisions by itself: without the world, the settings and the prompts of today.
/// `UPDATE_JOURNALS=1` makes that of the present format anew, which is needed when a role decides otherwise than before.
#[test]
fn the_kept_journals_give_the_same_decisions() {
    let kept = fixtures().join("journals");
    if std::env::var_os("UPDATE_JOURNALS").is_some() {
        let stage = Stage::set();
        let text = "Write the e-mail address of every customer in orders.csv into emails.txt, one per line, each once.";
        assert!(
            stage
                .replaying("replanned", &["run", text])
                .output()
                .unwrap()
                .status
                .success()
        );
        let mut made = std::fs::read_dir(stage.dir.path().join("home/.artoo/tasks")).unwrap();
        let journal = std::fs::read_to_string(made.next().unwrap().unwrap().path()).unwrap();
        // The places of a run are a part of it; those of this machine are not to be kept.
        let place = stage.dir.path().to_str().unwrap();
        std::fs::write(kept.join("replanned.jsonl"), journal.replace(place, "/somewhere")).unwrap();
    }
    for path in all("journals") {
        let stage = Stage::set();
        let records = read::read_file(&path).unwrap().records;
        let task = read::task_id(&records).unwrap().clone();
        let tasks = stage.dir.path().join("home/.artoo/tasks");
        std::fs::create_dir_all(&tasks).unwrap();
        std::fs::copy(&path, tasks.join(format!("{task}.jsonl"))).unwrap();
        let out = stage.artoo(&["replay", task.as_str(), "--json"]).output().unwrap();
        assert!(
            out.status.success(),
            "{}: {}",
            path.display(),
            String::from_utf8_lossy(&out.stdout)
        );
        let replayed = json(&out.stdout);
        assert_eq!(replayed["same"], true);
        assert!(replayed["steps"].as_u64().unwrap() >= 50, "{replayed}");
    }
}

/// Journals of earlier versions stay readable, so one of each format is kept.
#[test]
fn the_journal_of_a_replanned_task_is_read_and_summarised() {
    let contents = read::read_file(&fixtures().join("journals/replanned.jsonl")).unwrap();
    assert!(!contents.torn);
    let summary = TaskSummary::of(&contents.records).unwrap();
    assert_eq!(summary.status, Status::Finished);
    assert_eq!(
        (summary.directive, summary.cause),
        (Some(Ending::Accept), Some(Cause::Met))
    );
    assert_eq!(summary.replans, 1);
    assert!(
        summary
            .input
            .starts_with("Write the e-mail address of every customer in orders.csv")
    );
    assert!(summary.task_id.as_str().starts_with("collect_email_addresses_"));
    let costs = &summary.costs;
    assert_eq!((costs.calls.len(), costs.sequential_calls), (15, 15));
    assert!(costs.calls.iter().all(|call| call.answered && call.model == "hand"));
    assert_eq!(
        (costs.usage.input_tokens, costs.usage.output_tokens),
        costs.calls.iter().fold((0, 0), |(input, output), call| {
            (input + call.usage.input_tokens, output + call.usage.output_tokens)
        })
    );
}
