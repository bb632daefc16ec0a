//! What the executor's own parts cost (docs/performance.md): the classifier, the sandbox, a flood of output, and the
//! searching tools beside `fd` and `ripgrep` on the same tree, in turns.
//!
//! `cargo bench -p artoo-executor --bench costs`. The tree is `ARTOO_TREE`, else the sources that cargo has unpacked. `fd`
//! (or `fdfind`) and `rg` are taken from `PATH`; what is not there is said to be missing, and not compared.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a measuring program"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use artoo_executor::sandbox::{Confinement, Sandbox};
use artoo_executor::spawn::{Launch, environment, run};
use artoo_executor::{Places, ToolSettings, Tools, classify};
use artoo_protocol::ports::Toolbox;
use artoo_protocol::tool::{EffectClass, Invocation, Permit};
use artoo_protocol::{SubTaskId, TaskId};
use serde_json::{Value, json};

/// With this argument the program only reads a flood of output and prints its own peak memory.
const FLOOD: &str = "flood";
const FLOOD_BYTES: u64 = 200_000_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    if std::env::args().any(|argument| argument == FLOOD) {
        return runtime.block_on(flood());
    }
    classification();
    runtime.block_on(starting());
    let flooded = Command::new(std::env::current_exe().unwrap())
        .arg(FLOOD)
        .status()
        .unwrap();
    assert!(flooded.success());
    runtime.block_on(searching());
}

fn helper() -> Sandbox {
    Sandbox::with_helper(Path::new(env!("CARGO_BIN_EXE_artoo-sandbox")))
}

fn classification() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/commands");
    let mut lines = Vec::new();
    for file in [
        "harmful.txt",
        "harmful_held_back.txt",
        "harmless.txt",
        "harmless_held_back.txt",
    ] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let kept = text.lines().filter(|line| !line.is_empty() && !line.starts_with("## "));
        lines.extend(kept.map(|line| line.replace('⏎', "\n")));
    }
    let mut each: Vec<Duration> = lines
        .iter()
        .map(|line| {
            // The best of some, because what is asked for is the work and not what interrupted it.
            let once = |_| {
                let start = Instant::now();
                std::hint::black_box(classify(std::hint::black_box(line)));
                start.elapsed()
            };
            (0..20).map(once).min().unwrap()
        })
        .collect();
    let start = Instant::now();
    for line in &lines {
        std::hint::black_box(classify(line));
    }
    let mean = start.elapsed() / u32::try_from(lines.len()).unwrap();
    each.sort_unstable();
    let at = |per_mille: usize| each[(each.len() - 1) * per_mille / 1000];
    println!(
        "classification of {} lines: mean {mean:?}; each: median {:?}, p99 {:?}, worst {:?}",
        lines.len(),
        at(500),
        at(990),
        at(1000)
    );
}

fn launch(command: &str, sandbox: Sandbox, confinement: Confinement) -> Launch {
    Launch {
        command: command.into(),
        cwd: "/".into(),
        environment: environment(std::env::vars_os()),
        limit: Duration::from_secs(60),
        sandbox,
        confinement,
    }
}

async fn starting() {
    let sandbox = helper();
    println!("sandbox: {:?}", sandbox.in_force());
    let ways = [
        ("plain", Sandbox::unchecked(), Confinement::Allowed),
        ("supervised", sandbox.clone(), Confinement::Allowed),
        ("confined", sandbox, Confinement::Read),
    ];
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..200 {
        for (place, (_, sandbox, confinement)) in ways.iter().enumerate() {
            let start = Instant::now();
            let ended = run(launch("true", sandbox.clone(), confinement.clone())).await.unwrap();
            assert_eq!(ended.exit, Some(0));
            times[place].push(start.elapsed());
        }
    }
    let medians = times.map(|mut times| median(&mut times));
    for ((name, _, _), time) in ways.iter().zip(medians) {
        println!(
            "`true` {name}: median {time:?}, {:?} over plain",
            time.saturating_sub(medians[0])
        );
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn flood() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap()
            .to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    let before = peak();
    let start = Instant::now();
    let command = format!("head -c {FLOOD_BYTES} /dev/zero");
    let ended = run(launch(&command, helper(), Confinement::Read)).await.unwrap();
    assert_eq!((ended.exit, ended.stdout.bytes), (Some(0), FLOOD_BYTES));
    println!(
        "200 MB of output: {:?}, peak memory {} MiB ({before} before)",
        start.elapsed(),
        peak()
    );
}

async fn searching() {
    let tree = std::env::var_os("ARTOO_TREE").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo/registry/src"),
        PathBuf::from,
    );
    let tree = tree.canonicalize().unwrap();
    let tools = Tools::built_in(&ToolSettings {
        places: Places {
            home: tree.clone(),
            cwd: tree.clone(),
            workspace: tree.clone(),
            own: None,
        },
        environment: Vec::new(),
        command_limit: Duration::from_secs(60),
        web: None,
        undo: None,
        sandbox: Sandbox::unchecked(),
        grants: Vec::new(),
    });
    let fd = ["fd", "fdfind"].into_iter().find(|name| is_there(name));
    let rg = Some("rg").filter(|name| is_there(name));
    for (program, tool, input, arguments) in [
        (
            fd,
            "find_files",
            json!({"name": "*.rs"}),
            &["--no-ignore", "--type", "f", "--glob", "*.rs"][..],
        ),
        (fd, "find_files", json!({"name": "*"}), &["--no-ignore", "--type", "f"]),
        (rg, "search_text", json!({"pattern": "unsafe fn"}), &["-n", "unsafe fn"]),
        (
            rg,
            "search_text",
            json!({"pattern": r"fn \w+_\w+_test\b"}),
            &["-n", r"fn \w+_\w+_test\b"],
        ),
        (rg, "search_text", json!({"pattern": "the"}), &["-n", "the"]),
    ] {
        compare(&tools, &tree, program, tool, input, arguments).await;
    }
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// One tool against one program, in turns, with warm caches; how many they found is shown, so that one sees that it is the same.
async fn compare(tools: &Tools, tree: &Path, program: Option<&str>, tool: &str, input: Value, arguments: &[&str]) {
    let Some(program) = program else {
        println!("{tool} {input}: not compared, the other program is missing");
        return;
    };
    let invocation = Invocation {
        tool: tool.into(),
        input,
        task_id: TaskId::new("t_00000000"),
        subtask_id: SubTaskId::new("s"),
        scope: Vec::new(),
        created: Vec::new(),
    };
    let permit = Permit {
        effect: EffectClass::Read,
        confirmed: false,
        seen: 0,
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut found, mut found_by_them) = (0, 0);
    for round in 0..12 {
        let start = Instant::now();
        let output = tools.run(&invocation, permit).await;
        let we_took = start.elapsed();
        assert_eq!(output.error, None);
        found = output.lines;
        let start = Instant::now();
        let output = Command::new(program)
            .args(arguments)
            .arg("--")
            .current_dir(tree)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let they_took = start.elapsed();
        found_by_them = String::from_utf8_lossy(&output.stdout).lines().count();
        // The first round warms the caches.
        if round > 0 {
            ours.push(we_took);
            theirs.push(they_took);
        }
    }
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    println!(
        "{tool} {}: {ours:?} ({found}); {program} {}: {theirs:?} ({found_by_them}); {:.2} times",
        invocation.input,
        arguments.join(" "),
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
}
