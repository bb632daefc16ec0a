//! The commands that change memory: the operator may, being no role (design §15).
//!
//! Owns what they write. Every change is on disk before it is confirmed.

use std::sync::Arc;

use artoo_bus::SystemClock;
use artoo_bus::journal::Redactor;
use artoo_memory::dreamer::ask::distilled;
use artoo_memory::dreamer::awake::on_demand;
use artoo_memory::dreamer::pass::SLICE;
use artoo_memory::dreamer::shell::sum;
use artoo_memory::dreamer::spent::spent_on;
use artoo_memory::dreamer::{Mode, Outcome, Params, Pass, Scope};
use artoo_memory::records::{CONTENT_MAX, Edit, Stored};
use artoo_memory::{Memory, Records};
use artoo_protocol::model::Usage;
use artoo_protocol::text::{one_line, printable};
use artoo_protocol::{MegramId, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::{broken, find, look};
use crate::failure::Failure;
use crate::settings::{Environment, Settings};
use crate::spending::price;
use crate::{auditing, dreaming, models, output, system};

/// An end or a beginning of an id that is shorter than this could be anybody's: whole ids may be.
const FORGET_MIN: usize = 6;

/// Keeps a wish of the person: its id, and whether it is new. Wishes stand in every prompt, so what looks like a secret in them is
/// kept as asterisks only, and that is said.
///
/// # Errors
/// [`Failure`] for an empty text, and when the store cannot be written.
pub fn remember(
    records: &Records,
    text: &str,
    redactor: &Redactor,
    now: Timestamp,
) -> Result<(MegramId, bool), Failure> {
    if text.chars().all(|c| c.is_whitespace() || c.is_control()) {
        return Err(Failure::usage("there is nothing to remember: the text is empty")
            .hint("say what always holds, such as: artoo memory remember \"use yarn, not npm\""));
    }
    if text.trim().chars().nth(CONTENT_MAX).is_some() {
        return Err(
            Failure::usage(format!("that is longer than a memory can be: {CONTENT_MAX} characters"))
                .hint("nothing was remembered; keep it in a file, and let memory say where"),
        );
    }
    let masked = redactor.text(text);
    if masked != text {
        output::note(
            "artoo: what looks like a key or a password in it is kept as asterisks only: memory is told to every model. Keep it \
             in the environment or in a file of your own, and let memory say where",
        );
    }
    let wish = Memory::wish(MegramId::new(Uuid::now_v7().to_string()), &masked, now);
    let id = wish.id.clone();
    let stored = records.commit(&[Edit::Store(wish)], now).map_err(|e| broken(&e))?;
    records.kv().flush().map_err(|e| broken(&e))?;
    match stored.first() {
        Some(Stored::Refused(why)) => Err(Failure::failed(format!("it cannot be remembered: {why}"))),
        stored => Ok((id, stored == Some(&Stored::New))),
    }
}

pub(super) fn remember_and_say(
    records: &Records,
    text: &str,
    redactor: &Redactor,
    now: Timestamp,
    json: bool,
) -> Result<u8, Failure> {
    let (id, is_new) = remember(records, text, redactor, now)?;
    if json {
        output::json(&json!({"id": id, "new": is_new}));
    } else if is_new {
        output::result(&format!("remembered as {id}"));
    } else {
        output::result("it was known already");
    }
    Ok(0)
}

/// Removes a memory for good: what was distilled, a rule or one that lost its standing, together with what it was distilled
/// from, or it would be learned again.
///
/// # Errors
/// [`Failure`] for an unknown id, and when the store cannot be written.
pub fn forget(records: &Records, id: &str, now: Timestamp) -> Result<Vec<MegramId>, Failure> {
    let id = to_forget(records, id)?;
    let Some(megram) = records.get(&id).map_err(|e| broken(&e))? else {
        return Err(super::unknown(id.as_str()));
    };
    // The sources first: a rule that goes before them would let them count again if this were cut off.
    let mut gone = spent_on(records, &megram).map_err(|e| broken(&e))?;
    gone.push(id);
    let mut forgotten = Vec::new();
    for slice in gone.chunks(SLICE) {
        let edits: Vec<Edit> = slice.iter().cloned().map(Edit::Remove).collect();
        let removed = records.commit(&edits, now).map_err(|e| broken(&e))?;
        let done = slice
            .iter()
            .zip(removed)
            .filter(|(_, stored)| *stored == Stored::Removed);
        forgotten.extend(done.map(|(id, _)| id.clone()));
    }
    records.kv().flush().map_err(|e| broken(&e))?;
    forgotten.reverse();
    Ok(forgotten)
}

/// The one memory that is meant; what is forgotten is gone, so a digit or two do not mean one.
fn to_forget(records: &Records, text: &str) -> Result<MegramId, Failure> {
    let is_short = !text.is_empty() && text.chars().count() < FORGET_MIN;
    let is_whole = || records.get(&MegramId::new(text)).map_err(|e| broken(&e));
    if is_short && is_whole()?.is_none() {
        let text = one_line(text, 60);
        return Err(Failure::usage(format!(
            "`{text}` is too short to say which memory is to be forgotten; nothing was"
        ))
        .hint(format!(
            "give the whole id, or {FORGET_MIN} characters of its beginning or end: artoo memory list shows them"
        )));
    }
    find(records, text)
}

pub(super) fn forget_and_say(records: &Records, id: &str, now: Timestamp, json: bool) -> Result<u8, Failure> {
    let forgotten = forget(records, id, now)?;
    if json {
        output::json(&json!({"forgotten": forgotten}));
    } else {
        output::result(&forgotten_line(&forgotten));
    }
    Ok(0)
}

/// What was forgotten, in a line.
pub fn forgotten_line(forgotten: &[MegramId]) -> String {
    match forgotten {
        [] => "nothing was forgotten".to_owned(),
        [id] => format!("{id} is forgotten"),
        [id, rest @ ..] => format!(
            "{id} is forgotten, and the {} memories that it was distilled from",
            rest.len()
        ),
    }
}

/// One whole pass, and the rules that were earned.
pub(super) async fn dream(
    records: &Arc<Records>,
    settings: &Settings,
    env: &Environment,
    json: bool,
) -> Result<u8, Failure> {
    let clock = SystemClock;
    let model = system::dreams_by(settings, &models::build(settings, true)?);
    let mut total = artoo_memory::dreamer::Tidied::default();
    loop {
        let now = artoo_protocol::ports::Clock::now(&clock);
        let params = Params {
            words_rules: model.is_some(),
            ..Params::default()
        };
        let tidied = Pass {
            records,
            params: on_demand(&**records.kv(), now, params, Mode::Perform).map_err(|e| broken(&e))?,
            now,
            mode: Mode::Perform,
            stop: &|| false,
            on_action: &mut |_, _| {},
        }
        .run(&Scope::Everything)
        .map_err(|e| broken(&e))?;
        total.forgotten += tidied.forgotten;
        total.promoted += tidied.promoted;
        total.demoted += tidied.demoted;
        total.folded += tidied.folded;
        (total.groups, total.entries, total.proposals) = (tidied.groups, tidied.entries, tidied.proposals);
        if !tidied.unfinished {
            break;
        }
    }
    let account = dreaming::Account::new(&settings.data_dir, system::redactor(settings, env));
    let may_spend = dreaming::may_spend(settings.max_tokens, settings.max_cost, price(settings));
    let (mut rules, mut spent, mut used) = (Vec::new(), Usage::default(), String::new());
    match &model {
        Some(model) => {
            for proposal in total.proposals.clone() {
                if !may_spend(&used, &spent) {
                    output::note("artoo: the limit of tokens or money is reached; no more rules are worded");
                    break;
                }
                let call = distilled(records, model.as_ref(), proposal, &clock)
                    .await
                    .map_err(|e| broken(&e))?;
                let Some(call) = call else { continue };
                account.call(&call);
                auditing::record_dream(settings, system::redactor(settings, env), &call)?;
                spent = sum(spent, call.usage);
                used.clone_from(&call.model);
                match call.outcome {
                    Outcome::Rule { id, words } => rules.push(json!({"id": id, "rule": words})),
                    Outcome::NoRule(why) | Outcome::Failed(why) => output::note(&format!("artoo: no rule: {why}")),
                }
            }
        }
        None if !total.proposals.is_empty() => {
            output::note("artoo: rules are distilled by a model, and none is configured; the rest was done");
        }
        None => {}
    }
    if json {
        output::json(
            &json!({"groups": total.groups, "entries": total.entries, "forgotten": total.forgotten,
            "promoted": total.promoted, "demoted": total.demoted, "folded": total.folded, "rules": rules}),
        );
        return Ok(0);
    }
    for rule in &rules {
        let words = rule.get("rule").and_then(serde_json::Value::as_str).unwrap_or_default();
        output::result(&printable(&format!("learned: {}", one_line(words, 400))));
    }
    output::result(&look::summary("did", &total, rules.len()));
    Ok(0)
}
