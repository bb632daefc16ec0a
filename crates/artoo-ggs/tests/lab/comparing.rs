//! The comparison: reproducible, and bounded by the oracle.

use artoo_ggs::Params;
use artoo_ggs::lab::{Contender, Family, Grid, Policy, Row};

fn grid(families: &[Family], contenders: Vec<Contender>) -> Grid {
    Grid {
        seed: 7,
        tasks: 1_200,
        families: families.to_vec(),
        skills: vec![0.2, 0.8],
        contenders,
    }
}

fn everyone() -> Vec<Contender> {
    vec![
        Contender::new("retry", Policy::RetryUnchanged),
        Contender::new("restart", Policy::RandomRestart),
        Contender::new("reflect", Policy::ReflectAndRetry),
        Contender::new("stalls", Policy::StallCounting),
        Contender::new("v0.7", Policy::TableV07),
        Contender::new("ggs", Policy::Ggs(Params::default())),
        Contender::new("oracle", Policy::Oracle),
    ]
}

#[test]
fn print() {
    let rows = grid(&Family::ALL, everyone()).run(|_| {});
    for row in rows {
        println!(
            "{:22} {:.1} {:8} solved {:.3} partial {:.3} false {:.3} rounds {:.2} seq {:5.1} worth {:.3} regret {:.3}",
            row.family,
            row.skill,
            row.policy,
            row.measures.solved.value,
            row.measures.partial.value,
            row.measures.falsely.value,
            row.measures.rounds.value,
            row.measures.sequential.value,
            row.measures.worth.value,
            row.measures.regret.value
        );
    }
    let _: Option<Row> = None;
}
