//! The open tasks of a validator, and the ended ones that a late message must not open again (design §4).
//!
//! Owns when state exists. Knows nothing of what the state is.

use std::collections::{BTreeMap, VecDeque};

use artoo_protocol::TaskId;

/// How many ended tasks are remembered. A late message follows within moments, so few are needed.
const ENDED_KEPT: usize = 256;

/// State by task. An id counts as the same run when its eight hex digits agree, whichever slug stands before them.
#[derive(Debug)]
pub(crate) struct Tasks<S> {
    open: BTreeMap<String, S>,
    ended: VecDeque<String>,
}

impl<S> Default for Tasks<S> {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            ended: VecDeque::new(),
        }
    }
}

impl<S> Tasks<S> {
    /// The state of an open task.
    pub(crate) fn get_mut(&mut self, task: &TaskId) -> Option<&mut S> {
        self.open.get_mut(task.suffix())
    }

    /// The state of the task, made first if there is none; `None` for a task that has ended.
    pub(crate) fn open(&mut self, task: &TaskId, first: impl FnOnce() -> S) -> Option<&mut S> {
        if self.ended.iter().any(|id| id == task.suffix()) {
            return None;
        }
        Some(self.open.entry(task.suffix().to_owned()).or_insert_with(first))
    }

    /// Forgets the task for good.
    pub(crate) fn close(&mut self, task: &TaskId) {
        self.open.remove(task.suffix());
        if !self.ended.iter().any(|id| id == task.suffix()) {
            self.ended.push_back(task.suffix().to_owned());
        }
        if self.ended.len() > ENDED_KEPT {
            self.ended.pop_front();
        }
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_task_is_not_opened_again_under_either_of_its_names() {
        let mut tasks = Tasks::default();
        assert!(tasks.open(&TaskId::new("count_0123abcd"), || 1).is_some());
        tasks.close(&TaskId::new("input_0123abcd"));
        assert_eq!(tasks.len(), 0);
        assert!(tasks.open(&TaskId::new("count_0123abcd"), || 2).is_none());
        assert!(tasks.open(&TaskId::new("count_0123abce"), || 3).is_some());
        for n in 0..1000 {
            tasks.close(&TaskId::new(format!("t_{n:08x}")));
        }
        assert!(tasks.ended.len() <= ENDED_KEPT);
    }
}
