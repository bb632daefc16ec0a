//! How memories and what they add up to are said to a person (design §15, §21).
//!
//! Owns wording and the numbers that explain a potential. Must not know how the store is opened.

use artoo_memory::dreamer::{Action, Faded, Sign};
use artoo_memory::potentials::{Later, action, contribution, living, potentials};
use artoo_memory::view::GroupKey;
use artoo_protocol::Timestamp;
use artoo_protocol::message::{Megram, MemoryAction, Potentials};
use artoo_protocol::text::{one_line, printable};
use serde_json::{Value, json};

const DAY: f64 = 86_400_000.0;
/// Characters of a memory in a line.
const CONTENT: usize = 100;

/// A memory in a line.
pub fn line(megram: &Megram) -> String {
    printable(&format!(
        "{}  {} {:+.2}  {}  {} · {}  {}",
        megram.id,
        megram.level.letter(),
        megram.sigma.get() * megram.f.get(),
        day(megram.created_at),
        one_line(&megram.space, 48),
        one_line(&megram.entity, 40),
        one_line(&megram.content, CONTENT)
    ))
}

pub fn day(at: Timestamp) -> String {
    at.to_string().chars().take(16).collect::<String>().replace('T', " ")
}

/// What a plan makes of these potentials.
pub const fn advice(action: MemoryAction) -> &'static str {
    match action {
        MemoryAction::Ignore => "ignore: too little is known",
        MemoryAction::Exploit => "exploit: should be preferred",
        MemoryAction::Avoid => "avoid: must not be used",
        MemoryAction::Caution => "caution: confirm or sandbox",
    }
}

pub fn potentials_line(potentials: &Potentials) -> String {
    format!(
        "attention {:.3}, decision {:+.3} → {}",
        potentials.attention.get(),
        potentials.decision.get(),
        advice(potentials.action)
    )
}

/// What every record of a group that counts at a moment adds to its potentials.
pub struct Explained {
    /// The records that count, strongest first.
    pub entries: Vec<Megram>,
    at: Timestamp,
    sums: Potentials,
}

impl Explained {
    /// Of all records of a group; what came later than `at` was not known then.
    pub fn new(mut group: Vec<Megram>, at: Timestamp) -> Self {
        group.retain(|megram| megram.created_at <= at);
        let mut entries = living(group);
        entries.sort_by(|a, b| {
            contribution(b, at)
                .total_cmp(&contribution(a, at))
                .then_with(|| a.id.cmp(&b.id))
        });
        Self {
            sums: potentials(&entries, at, Later::LeftOut),
            entries,
            at,
        }
    }

    /// As of now: what lies in the future counts as new.
    pub fn now(group: Vec<Megram>, now: Timestamp) -> Self {
        let mut entries = living(group);
        entries.sort_by(|a, b| {
            contribution(b, now)
                .total_cmp(&contribution(a, now))
                .then_with(|| a.id.cmp(&b.id))
        });
        Self {
            sums: potentials(&entries, now, Later::CountsAsNew),
            entries,
            at: now,
        }
    }

    /// What they add up to.
    pub const fn potentials(&self) -> &Potentials {
        &self.sums
    }

    fn days(&self, megram: &Megram) -> f64 {
        self.at.since(megram.created_at).0 as f64 / DAY
    }

    /// A line for each entry, with the numbers of its decay, and the sums below.
    pub fn table(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:<9} {:>1} {:>8} {:>5} {:>5} {:>7} {:>9} {:>9}  {}",
            "id", "", "days", "f", "k", "e^(−kΔt)", "attention", "decision", "content"
        )];
        for megram in &self.entries {
            let energy = contribution(megram, self.at);
            let left = (-megram.k.get() * self.days(megram)).exp();
            lines.push(printable(&format!(
                "…{:<8} {} {:>8.2} {:>5.2} {:>5.2} {left:>8.4} {energy:>9.4} {:>+9.4}  {}",
                tail(megram.id.as_str()),
                megram.level.letter(),
                self.days(megram),
                megram.f.get(),
                megram.k.get(),
                megram.sigma.get() * energy,
                one_line(&megram.content, 60)
            )));
        }
        lines.push(format!(
            "{:<41} {:>9.4} {:>+9.4}  {}",
            "sum",
            self.sums.attention.get(),
            self.sums.decision.get(),
            advice(action(self.sums.attention.get(), self.sums.decision.get()))
        ));
        lines
    }

    /// The same as data.
    pub fn to_json(&self) -> Value {
        let entries: Vec<Value> = self
            .entries
            .iter()
            .map(|megram| {
                let energy = contribution(megram, self.at);
                json!({"id": megram.id, "level": megram.level, "age_days": self.days(megram), "f": megram.f, "sigma": megram.sigma,
                    "k": megram.k, "decay": (-megram.k.get() * self.days(megram)).exp(), "attention": energy,
                    "decision": megram.sigma.get() * energy, "content": megram.content})
            })
            .collect();
        json!({"attention": self.sums.attention, "decision": self.sums.decision, "action": self.sums.action, "entries": entries})
    }
}

/// The last characters of an id: the beginning is the time, which neighbours share.
fn tail(id: &str) -> String {
    let skipped = id.chars().count().saturating_sub(8);
    id.chars().skip(skipped).collect()
}

/// What the Dreamer would do, in a line; `content` is that of the record, where one is meant.
pub fn step_line(key: &GroupKey, action: &Action, content: &str) -> String {
    let group = format!("{} · {}", one_line(&key.space, 48), one_line(&key.entity, 40));
    let content = one_line(content, CONTENT);
    printable(&match action {
        Action::Forget { id, why } => {
            let why = match why {
                Faded::Group => "its group has faded",
                Faded::Entry => "it has faded",
            };
            format!("forget       {id}  {group}  ({why}) {content}")
        }
        Action::Demote { id, decision } => {
            format!("demote       {id}  {group}  (decision {decision:+.3} contradicts it) {content}")
        }
        Action::Promote { id } => format!("promote      {id}  {group}  {content}"),
        Action::Fold { ids, level } => {
            format!(
                "fold         {} memories into one of {}  {group}  {content}",
                ids.len(),
                level.letter()
            )
        }
        Action::Consolidate(proposal) => {
            let kind = match proposal.sign {
                Sign::Practice => "best practice",
                Sign::Constraint => "constraint",
            };
            format!(
                "consolidate  {group}  ({kind} of {} memories: attention {:.2}, decision {:+.2})",
                proposal.sources.len(),
                proposal.attention,
                proposal.decision
            )
        }
    })
}

/// The same as data.
pub fn step_json(key: &GroupKey, action: &Action) -> Value {
    let mut step = match action {
        Action::Forget { id, why } => {
            let why = match why {
                Faded::Group => "group_faded",
                Faded::Entry => "entry_faded",
            };
            json!({"action": "forget", "id": id, "why": why})
        }
        Action::Demote { id, decision } => json!({"action": "demote", "id": id, "decision": decision}),
        Action::Promote { id } => json!({"action": "promote", "id": id}),
        Action::Fold { ids, level } => json!({"action": "fold", "ids": ids, "level": level}),
        Action::Consolidate(proposal) => {
            json!({"action": "consolidate", "sigma": proposal.sign.valence(), "attention": proposal.attention,
                "decision": proposal.decision, "sources": proposal.sources, "supersedes": proposal.supersedes})
        }
    };
    if let Some(object) = step.as_object_mut() {
        object.insert("space".to_owned(), json!(key.space));
        object.insert("entity".to_owned(), json!(key.entity));
    }
    step
}
