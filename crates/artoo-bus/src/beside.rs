//! What a step does beside its own task (design §17).
//!
//! A role may deal with a deadline that has come in a step that is about another task. Owns the question which tasks these are;
//! their journals hold a wake as the reason for what is done.

use std::collections::BTreeMap;

use artoo_protocol::{Command, TaskId};

/// The tasks, each once, that the commands of a step are about, but for the step's own.
pub fn beside<'a>(task: &TaskId, commands: &'a [Command]) -> impl Iterator<Item = &'a TaskId> {
    let about = commands.iter().filter_map(Command::task_id);
    let others = about.filter(|about| about.suffix() != task.suffix());
    let others: BTreeMap<&str, &TaskId> = others.map(|about| (about.suffix(), about)).collect();
    others.into_values()
}
