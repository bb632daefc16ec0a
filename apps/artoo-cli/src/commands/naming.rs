//! Which task a person means by a part of its id (design §21).
//!
//! Owns the rule, a pure function of names. Must not look for tasks itself.

use artoo_protocol::TaskId;
use artoo_protocol::text::one_line;

use crate::failure::Failure;

/// Candidates that are listed.
const LISTED: usize = 12;

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Meant<'a, T> {
    /// This one.
    One(&'a T),
    /// None has such a name.
    None,
    /// Any of these.
    Several(Vec<&'a T>),
}

/// The one that is meant. The whole id comes first, then the whole slug or the whole eight digits, then the beginning of either, then the
/// end of the id; the first of these that fits any decides.
pub fn meant<'a, T>(all: &'a [T], id: impl Fn(&T) -> &TaskId, text: &str) -> Meant<'a, T> {
    if text.is_empty() {
        return Meant::None;
    }
    let slug = |task: &TaskId| task.as_str().len() - task.suffix().len();
    let ways: [&dyn Fn(&TaskId) -> bool; 4] = [
        &|task| task.as_str() == text,
        &|task| {
            task.suffix() == text
                || task
                    .as_str()
                    .get(..slug(task))
                    .is_some_and(|slug| slug.trim_end_matches('_') == text)
        },
        &|task| task.as_str().starts_with(text) || task.suffix().starts_with(text),
        &|task| task.as_str().ends_with(text),
    ];
    for way in ways {
        let mut fitting = all.iter().filter(|&one| way(id(one)));
        match (fitting.next(), fitting.next()) {
            (None, _) => {}
            (Some(one), None) => return Meant::One(one),
            (Some(first), Some(second)) => {
                let mut several = vec![first, second];
                several.extend(fitting);
                return Meant::Several(several);
            }
        }
    }
    Meant::None
}

/// The error that lists what could be meant (exit 2).
pub fn ambiguous<'a>(text: &str, candidates: impl Iterator<Item = &'a TaskId>) -> Failure {
    let names: Vec<&str> = candidates.map(TaskId::as_str).collect();
    let mut listed = names.iter().take(LISTED).copied().collect::<Vec<_>>().join("\n  ");
    if names.len() > LISTED {
        listed = format!("{listed}\n  and {} more", names.len() - LISTED);
    }
    Failure::usage(format!(
        "`{}` fits {} tasks:\n  {listed}",
        one_line(text, 60),
        names.len()
    ))
    .hint("the eight digits at the end name one task")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let all = [
            "count_files_0a1b2c3d",
            "count_lines_0a1fffff",
            "count_lines_77000001",
            "count_12345678",
            "tidy_up_beef0001",
        ]
        .map(TaskId::new);
        let found: Vec<&str> = match meant(&all, |id| id, text) {
            Meant::One(one) => vec![one.as_str()],
            Meant::None => vec![],
            Meant::Several(several) => several.into_iter().map(TaskId::as_str).collect(),
        };
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn the_beginning_of_a_slug_or_of_the_digits_names_a_task() {
        check("count_files_0a1b2c3d", &["count_files_0a1b2c3d"]);
        check("t", &["tidy_up_beef0001"]);
        check("count_f", &["count_files_0a1b2c3d"]);
        check("0a1b", &["count_files_0a1b2c3d"]);
        check("beef0001", &["tidy_up_beef0001"]);
        check("f0001", &["tidy_up_beef0001"]);
        check("count", &["count_12345678"]);
        check("", &[]);
        check("x", &[]);
        check("up", &[]);
    }

    #[test]
    fn what_fits_several_names_all_of_them() {
        check("0a1", &["count_files_0a1b2c3d", "count_lines_0a1fffff"]);
        check("count_lines", &["count_lines_0a1fffff", "count_lines_77000001"]);
        check(
            "count_",
            &[
                "count_files_0a1b2c3d",
                "count_lines_0a1fffff",
                "count_lines_77000001",
                "count_12345678",
            ],
        );
        check("1", &["count_12345678"]);
        let many: Vec<TaskId> = (0..20).map(|n| TaskId::new(format!("a_{n:08x}"))).collect();
        let failure = ambiguous("a", many.iter());
        assert_eq!(failure.code, 2);
        assert!(
            failure.message.starts_with("`a` fits 20 tasks:\n  a_00000000\n")
                && failure.message.ends_with("and 8 more"),
            "{failure}"
        );
    }
}
