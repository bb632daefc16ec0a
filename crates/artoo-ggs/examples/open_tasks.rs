//! How much memory open tasks take after a gap each.
//!
//! `cargo run --release -p artoo-ggs --example open_tasks [TASKS [SUBTASKS [CRITERIA]]] [unlike]`, with 100,000 tasks, 3
//! subtasks and 3 criteria each if nothing is said, prints the resident memory as Linux reports it in `/proc/self/status`.
//! With `unlike` the criteria have no words in common, which is the worst that can be packed.

#[path = "../benches/load/mod.rs"]
mod load;

use artoo_ggs::{Controller, Params};
use artoo_protocol::{Actor as _, Timestamp};

fn main() {
    let words = if std::env::args().any(|arg| arg == "unlike") {
        load::unlike
    } else {
        load::alike
    };
    let mut numbers = std::env::args().skip(1).map_while(|n| n.parse::<u32>().ok());
    let mut number = |otherwise| numbers.next().unwrap_or(otherwise);
    let (tasks, subtasks, criteria) = (number(100_000), number(3), number(3));
    let before = resident_kib();
    let mut controller = Controller::new(Params::default());
    for n in 0..tasks {
        let task_id = load::open(&mut controller, n);
        let gap = load::gap(&task_id, subtasks as usize, criteria as usize, words);
        // What is to be done is dropped, as a bus would take it away.
        drop(controller.step(Timestamp::default(), load::event(gap)));
    }
    let open = controller.open_tasks();
    println!("{open} tasks are open, each after a gap of {subtasks} subtasks with {criteria} criteria and 3 attempts");
    match (before, resident_kib()) {
        (Some(before), Some(after)) => {
            let bytes = after.saturating_sub(before) * 1024 / u64::from(tasks.max(1));
            println!(
                "resident: {} MB before, {} MB after; {bytes} bytes a task",
                before * 1024 / 1_000_000,
                after * 1024 / 1_000_000
            );
        }
        (None, _) | (_, None) => println!("resident memory is not known on this system"),
    }
}

fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
