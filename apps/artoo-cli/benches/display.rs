//! What the live display costs: one picture of a hundred subtasks that run at once, from the state to the text for the terminal.
//!
//! `cargo bench -p artoo-cli --bench display`. It is drawn at most twenty times a second, so twenty times the figure is the share of a core. What
//! the terminal does with the text is its own affair.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code,
    unused_imports,
    missing_docs,
    reason = "bench code"
)]

// The display's pure part as it is in the program, which is no library.
#[path = "../src/live/drawing.rs"]
mod drawing;
#[path = "../src/live/line.rs"]
mod line;
#[path = "../src/live/view.rs"]
mod view;

use std::hint::black_box;

use artoo_protocol::message::Verdict;
use artoo_protocol::{Millis, SubTaskId, TaskId, Timestamp};
use criterion::{Criterion, criterion_group, criterion_main};
use uuid::Uuid;

use drawing::{Moment, Size, running};
use view::{State, Step, View};

fn step(number: u64) -> Step {
    let task = TaskId::provisional(Uuid::from_u128(1));
    Step {
        id: SubTaskId::derive(Timestamp::from_millis(0), &task, number),
        sequence: 1,
        intent: format!("Sort the photos of folder {number} by year and place, 并把没有日期的写进列表"),
        state: State::Running,
        attempt: 2,
        criteria: vec![
            (format!("rest_{number}.txt exists"), Some(Verdict::Pass)),
            (format!("folder {number} holds folders of years only"), None),
        ],
        trouble: Some("the folder 1998 is empty; look at what exiftool said".into()),
    }
}

fn pictures(c: &mut Criterion) {
    let view = View {
        intent: Some("Sort the photos by year and place".into()),
        round: 1,
        steps: (0..100).map(step).collect(),
        calls: 312,
        tokens: 1_234_567,
        cost: 1.25,
        ..View::default()
    };
    for (name, rows) in [("all rows", 400), ("50 rows", 50)] {
        let size = Size { columns: 120, rows };
        let mut turn = 0;
        c.bench_function(&format!("a picture of 100 subtasks, {name}"), |b| {
            b.iter(|| {
                turn += 1;
                let moment = Moment {
                    now: Timestamp::from_millis(turn * 50),
                    budget: Millis::from_seconds(600),
                    turn: usize::try_from(turn).unwrap(),
                };
                let lines = running(&view, size, moment);
                let text: String = lines.iter().map(|line| line.render(true)).collect();
                black_box(text)
            });
        });
    }
}

criterion_group!(benches, pictures);
criterion_main!(benches);
