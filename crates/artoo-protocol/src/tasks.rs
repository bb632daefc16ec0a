//! The open tasks of a role, and the ended ones that a late message must not open again (design §4).
//!
//! Owns when state exists. Knows nothing of what the state is.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::TaskId;

/// How many ended tasks are remembered. A late message follows within moments, so few are needed.
const ENDED_KEPT: usize = 256;

/// State by task. An id counts as the same run when its eight hex digits agree, whichever slug stands before them.
#[derive(Debug)]
pub struct Tasks<S> {
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
    pub fn get_mut(&mut self, task: &TaskId) -> Option<&mut S> {
        self.open.get_mut(task.suffix())
    }

    /// The state of the task, made first if there is none; `None` for a task that has ended.
    pub fn open(&mut self, task: &TaskId, first: impl FnOnce() -> S) -> Option<&mut S> {
        if self.has_ended(task) {
            return None;
        }
        Some(self.open.entry(task.suffix().to_owned()).or_insert_with(first))
    }

    /// Forgets the task for good.
    pub fn close(&mut self, task: &TaskId) {
        self.open.remove(task.suffix());
        if !self.has_ended(task) {
            self.ended.push_back(task.suffix().to_owned());
        }
        if self.ended.len() > ENDED_KEPT {
            self.ended.pop_front();
        }
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The states of all open tasks, in the order of their ids.
    pub fn states(&self) -> impl Iterator<Item = &S> {
        self.open.values()
    }

    /// The same, to change them.
    pub fn states_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.open.values_mut()
    }

    /// Opens a task that is neither open nor ended: what `first` gives besides the state is handed back, else nothing.
    pub fn begin<T>(&mut self, task: &TaskId, first: impl FnOnce() -> (S, T)) -> Option<T> {
        let known = self.open.contains_key(task.suffix()) || self.has_ended(task);
        (!known).then(|| {
            let (state, more) = first();
            self.open.insert(task.suffix().to_owned(), state);
            more
        })
    }

    fn has_ended(&self, task: &TaskId) -> bool {
        self.ended.iter().any(|id| id == task.suffix())
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
        assert_eq!(tasks.begin(&TaskId::new("count_0123abcd"), || (4, "ended")), None);
        assert_eq!(tasks.begin(&TaskId::new("count_0123abce"), || (5, "open")), None);
        assert_eq!(tasks.begin(&TaskId::new("count_0123abcf"), || (6, "new")), Some("new"));
        assert!(tasks.states().eq(&[3, 6]) && !tasks.is_empty());
        for n in 0..1000 {
            tasks.close(&TaskId::new(format!("t_{n:08x}")));
        }
        assert!(tasks.ended.len() <= ENDED_KEPT);
    }
}
