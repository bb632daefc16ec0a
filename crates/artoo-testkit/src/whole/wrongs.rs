//! What is wrong with a world at rest (design §2, §17, §19).
//!
//! Owns what is looked at once at the end and not after every step.

use artoo_bus::Difference;
use artoo_bus::journal::summary;
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::model::{ModelError, ModelReply};
use artoo_protocol::prompt::PromptError;
use artoo_protocol::{Answer, Command};

use super::{Settings, offered, replayed};
use crate::laws;
use crate::prices::price;
use crate::scene::Scene;
use crate::world::{Paid, World};

/// Everything that is wrong with a world at rest: laws broken, state left behind, sums that are none, decisions that a replay
/// does not give.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn wrongs(settings: &Settings, world: &World<Scene>) -> Result<Vec<String>, PromptError> {
    let mut wrongs = world.faults.clone();
    let offered = offered();
    for (suffix, records) in world.journals.all() {
        let broken = laws::broken(records, &offered);
        wrongs.extend(broken.into_iter().map(|wrong| format!("task {suffix}: {wrong}")));
    }
    wrongs.extend(wrongs_at_rest(settings, world)?);
    Ok(wrongs)
}

/// The same without what [`Watch`](laws::Watch) sees while it happens.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn wrongs_at_rest(settings: &Settings, world: &World<Scene>) -> Result<Vec<String>, PromptError> {
    let mut wrongs = wrongs_of_journals(settings, world)?;
    let all_ended = world.journals.all().all(|(_, records)| laws::has_end(records));
    if all_ended && world.open_tasks() > 0 {
        wrongs.push(format!("{} states are left behind", world.open_tasks()));
    }
    Ok(wrongs)
}

/// What is wrong with the journals alone: decisions that a replay does not give, sums that are none.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn wrongs_of_journals(settings: &Settings, world: &World<Scene>) -> Result<Vec<String>, PromptError> {
    let mut wrongs = Vec::new();
    for (suffix, records) in world.journals.all_on_disk() {
        wrongs.extend(not_the_same(settings, suffix, records)?);
        wrongs.extend(sums(records).map(|wrong| format!("task {suffix}: {wrong}")));
    }
    // Also what a full disk did not take was paid for.
    for (suffix, records) in world.journals.all() {
        wrongs.extend(bill(records, world.paid(suffix)).map(|wrong| format!("task {suffix}: {wrong}")));
    }
    Ok(wrongs)
}

/// Where a replay decides otherwise, in words.
///
/// # Errors
/// [`PromptError`] when an embedded prompt is broken.
pub fn not_the_same(settings: &Settings, suffix: &str, records: &[Record]) -> Result<Vec<String>, PromptError> {
    let words = |difference: &Difference| {
        let (was, is) = (&difference.recorded, &difference.produced);
        format!("task {suffix}: replay: {difference}; recorded {was:?}; now {is:?}")
    };
    Ok(replayed(settings, records)?.iter().map(words).collect())
}

/// What the accounts say is what stands in the journal.
fn sums(records: &[Record]) -> Option<String> {
    let costs = summary::costs(records);
    let (mut calls, mut input, mut output) = (0, 0, 0);
    for record in records {
        match &record.entry {
            Entry::Commanded {
                command: Command::CallModel { .. },
                ..
            } => calls += 1,
            Entry::Answered {
                answer: Answer::Model(Ok(ModelReply { usage, .. }) | Err(ModelError::Charged { usage, .. })),
                ..
            } => {
                input += usage.input_tokens;
                output += usage.output_tokens;
            }
            _ => {}
        }
    }
    let counted = (costs.calls.len(), costs.usage.input_tokens, costs.usage.output_tokens);
    (counted != (calls, input, output) || costs.sequential_calls > calls)
        .then(|| format!("the accounts say {counted:?}, the journal {:?}", (calls, input, output)))
}

/// What a person is told of costs is what models were paid.
fn bill(records: &[Record], paid: Paid) -> Option<String> {
    let costs = summary::costs(records);
    let told = Paid {
        input: costs.usage.input_tokens,
        output: costs.usage.output_tokens,
        cost: costs.calls.iter().map(|call| price(&call.model, &call.usage)).sum(),
    };
    let same = (told.input, told.output) == (paid.input, paid.output) && (told.cost - paid.cost).abs() < 1e-6;
    (!same).then(|| format!("the accounts say {told:?}, and the models were paid {paid:?}"))
}
