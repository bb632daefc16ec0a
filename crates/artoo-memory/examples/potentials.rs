//! The memory on its own: experiences are written, weigh on what is done next, and fade.
//!
//! `cargo run -p artoo-memory --example potentials`
//!
//! The store is a LevelDB folder, here a temporary one. Time is the caller's: what is asked about is always a given moment.

use std::error::Error;
use std::sync::Arc;

use artoo_memory::Memory;
use artoo_memory::kv::LevelSettings;
use artoo_protocol::message::{Level, MacroState, Megram};
use artoo_protocol::ports::{Clock, MemoryService as _};
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, Millis, Timestamp, Valence};

const DAY: u64 = 86_400;

/// The moment of the example; `artoo_bus::SystemClock` is the machine's.
struct Stopped(Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let begin = Timestamp::parse("2026-02-27T09:30:00Z")?;
    let warn = Arc::new(|what: &str| eprintln!("memory: {what}"));
    let memory = Memory::open(
        &folder.path().join("memory.leveldb"),
        LevelSettings::default(),
        Arc::new(Stopped(begin)),
        warn,
    )?;
    let day = |n: u64| begin.plus(Millis::from_seconds(n * DAY));
    // A command that failed twice and then worked, a day apart each. The numbers are those of design §15.
    memory.write(experience("m1", day(0), MacroState::ChangeApproach, 0.85, -1.0)?);
    memory.write(experience("m2", day(1), MacroState::ChangeApproach, 0.85, -1.0)?);
    // A wish of a person never fades.
    memory.write(Memory::wish(MegramId::new("w1"), "write dates as YYYY-MM-DD", begin));
    // Writing never waits; from here on it is on disk.
    memory.flush().await?;
    println!("tool:shell:curl, path:/srv/feed");
    weigh(&memory, "after two failures", day(1)).await?;
    memory.write(experience("m3", day(2), MacroState::Accept, 0.90, 1.0)?);
    memory.flush().await?;
    weigh(&memory, "after a success", day(2)).await?;
    weigh(&memory, "a month later", day(32)).await?;
    weigh(&memory, "a quarter later", day(92)).await?;
    for lesson in memory.recent("tool:shell:curl", "path:/srv/feed", 10).await? {
        println!("  {} {}", lesson.created_at, lesson.content);
    }
    for rule in memory.query_c("user:preference", "env:local").await? {
        println!("standing wish: {}", rule.content);
    }
    memory.close().await?;
    Ok(())
}

/// What experience says about doing it again at this moment.
async fn weigh(memory: &Memory, when: &str, at: Timestamp) -> Result<(), Box<dyn Error>> {
    let sums = memory.query_mk("tool:shell:curl", "path:/srv/feed", at).await?;
    let (attention, decision) = (sums.attention.get(), sums.decision.get());
    println!(
        "  {when:<20} attention {attention:.3}  decision {decision:+.3}  → {:?}",
        sums.action
    );
    Ok(())
}

fn experience(id: &str, at: Timestamp, state: MacroState, f: f64, sigma: f64) -> Result<Megram, Box<dyn Error>> {
    Ok(Megram {
        id: MegramId::new(id),
        level: Level::M,
        created_at: at,
        last_recalled_at: None,
        space: "tool:shell:curl".into(),
        entity: "path:/srv/feed".into(),
        content: format!("curl of /srv/feed ended with {state:?} ({id})"),
        state,
        f: Magnitude::new(f)?,
        sigma: Valence::new(sigma)?,
        k: DecayPerDay::new(0.05)?,
        sources: Vec::new(),
        supersedes: None,
        origin: Some("example".into()),
    })
}
