//! What a decision costs. Run with `cargo bench -p artoo-ggs --bench controller`.
//!
//! Measures one point of the table, one heavy gap, and the next deadline among 100,000 open tasks.
#![allow(missing_docs, clippy::unwrap_used, reason = "bench code")]

#[allow(dead_code, reason = "shared with an example")]
mod load;

use std::hint::black_box;

use artoo_ggs::{Controller, Params, decide, quantise};
use artoo_protocol::message::Loss;
use artoo_protocol::{Actor as _, Finite, Timestamp, Unit01};
use criterion::{BatchSize, Criterion as Bencher, criterion_group, criterion_main};

use load::{event, gap, open};

fn bench(c: &mut Bencher) {
    let params = Params::default();
    let loss = Loss {
        d: Unit01::clamped(0.5),
        p: Unit01::clamped(0.8),
        omega: Unit01::clamped(0.2),
        l: Finite::ZERO,
    };
    c.bench_function("decide", |b| {
        b.iter(|| decide(quantise(black_box(&params), black_box(&loss), black_box(Finite::ZERO))));
    });

    let mut controller = Controller::new(params);
    let task_id = open(&mut controller, 1);
    let request = gap(&task_id, 8, 10, load::alike);
    c.bench_function("step: 8 outcomes, 10 criteria, 3 attempts", |b| {
        b.iter_batched(
            || (controller.clone(), event(request.clone())),
            |(mut controller, event)| (controller.step(Timestamp::default(), event), controller),
            BatchSize::SmallInput,
        );
    });

    let mut crowd = Controller::new(params);
    for n in 0..100_000 {
        let _ = open(&mut crowd, n);
    }
    c.bench_function("next deadline among 100,000 open tasks", |b| {
        b.iter(|| black_box(&crowd).deadline());
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
