//! What a simulated task costs. Run with `cargo bench -p artoo-ggs --features lab --bench lab`.
//!
//! Measures one task of the mix, made and run under the controller; divide a second by it.
#![allow(missing_docs, reason = "bench code")]

use std::hint::black_box;

use artoo_ggs::Params;
use artoo_ggs::lab::episode::{Draw, run};
use artoo_ggs::lab::{Family, Policy};
use criterion::{Criterion as Bencher, criterion_group, criterion_main};

fn bench(c: &mut Bencher) {
    let mut number = 0;
    c.bench_function("one task of the mix under the controller", |b| {
        b.iter(|| {
            number += 1;
            let draw = Draw {
                seed: 1,
                family: Family::Mix,
                number,
            };
            let task = Family::Mix.task(1, number);
            run(black_box(&task), draw, 0.5, Policy::Ggs(Params::default()))
        });
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
