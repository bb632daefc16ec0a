//! How much a task may use, and who said so (design §19, §20).
//!
//! Owns the rule that a project's file makes the user's limits tighter and never looser: its text is a stranger's.

use std::cmp::Reverse;

use artoo_protocol::Millis;

use super::file::File;
use super::model::Origin;
use crate::args::Options;
use crate::failure::Failure;

/// A limit with who set it; `None` where nobody did.
type Limit<T> = Option<(T, Origin)>;

/// What was said about how much a task may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tokens.
    pub max_tokens: Limit<u64>,
    /// In the currency of the prices; finite, 0 or more.
    pub max_cost: Limit<f64>,
    /// More than 0.
    pub time_budget: Limit<Millis>,
    /// Plans after the first.
    pub max_replans: Limit<u32>,
    /// Whether memory stays out of it.
    pub no_memory: Limit<bool>,
}

impl Limits {
    /// The command line's word counts; of project and user the stricter one.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) for one that is no limit.
    pub fn of(options: &Options, project: &File, user: &File) -> Result<Self, Failure> {
        let costs = [options.max_cost, project.max_cost, user.max_cost];
        if costs.into_iter().flatten().any(|cost| !cost.is_finite() || cost < 0.0) {
            return Err(Failure::usage(
                "a limit on cost (--max-cost, max_cost) is an amount of 0 or more",
            ));
        }
        let span = |text: &Option<String>| {
            let text = text.as_deref();
            text.map(|text| parse_span(text, "a time budget")).transpose()
        };
        let flag = span(&options.time_budget)?;
        let time_budget = match flag {
            Some(_) => strictest(flag, None, None),
            None => strictest(None, span(&project.time_budget)?, span(&user.time_budget)?),
        };
        // What is kept out is the stricter word.
        let no_memory = strictest(
            options.no_memory.then_some(Reverse(true)),
            project.no_memory.map(Reverse),
            user.no_memory.map(Reverse),
        );
        Ok(Self {
            max_tokens: strictest(options.max_tokens, project.max_tokens, user.max_tokens),
            max_cost: strictest(options.max_cost, project.max_cost, user.max_cost),
            time_budget,
            max_replans: strictest(options.max_replans, project.max_replans, user.max_replans),
            no_memory: no_memory.map(|(Reverse(is_out), origin)| (is_out, origin)),
        })
    }
}

/// The value of a limit.
pub fn value<T>(limit: Limit<T>) -> Option<T> {
    limit.map(|(value, _)| value)
}

fn strictest<T: PartialOrd>(flag: Option<T>, project: Option<T>, user: Option<T>) -> Limit<T> {
    if let Some(flag) = flag {
        return Some((flag, Origin::Flag));
    }
    match (project, user) {
        (Some(project), Some(user)) if user < project => Some((user, Origin::User)),
        (Some(project), Some(_) | None) => Some((project, Origin::Project)),
        (None, user) => user.map(|user| (user, Origin::User)),
    }
}

/// Time between the auditor's reports. Not from the project: whoever wrote that is among those who are observed.
///
/// # Errors
/// [`Failure`] (exit 2) for what is no time.
pub fn audit_period(user: &File) -> Result<Millis, Failure> {
    let stated = user.audit_period.as_deref();
    stated.map_or(Ok(artoo_auditor::REPORT_PERIOD), |text| {
        parse_span(text, "a time between reports")
    })
}

/// Reads `90`, `90s`, `5m`, `1h`, `1500ms`.
fn parse_span(text: &str, what: &str) -> Result<Millis, Failure> {
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match trimmed.strip_prefix(digits).unwrap_or_default() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    match digits
        .trim()
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(factor))
        .filter(|&millis| millis > 0)
    {
        Some(millis) => Ok(Millis(millis)),
        None => Err(Failure::usage(format!("`{text}` is not {what}")).hint("write it as 90s, 5m or 1h")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> File {
        super::super::file::parse(text).unwrap()
    }

    #[test]
    fn a_project_tightens_the_users_limits_and_loosens_none() {
        let tight = "max_tokens = 10\nmax_cost = 0.5\ntime_budget = \"90s\"\nmax_replans = 1\nno_memory = true\n";
        let loose = "max_tokens = 9000\nmax_cost = 50.0\ntime_budget = \"2h\"\nmax_replans = 9\nno_memory = false\n";
        for (project, user, from) in [
            (tight, loose, Origin::Project),
            (loose, tight, Origin::User),
            (tight, "", Origin::Project),
            ("", tight, Origin::User),
        ] {
            let limits = Limits::of(&Options::default(), &file(project), &file(user)).unwrap();
            assert_eq!(limits.max_tokens, Some((10, from)));
            assert_eq!(limits.max_cost, Some((0.5, from)));
            assert_eq!(limits.time_budget, Some((Millis(90_000), from)));
            assert_eq!(limits.max_replans, Some((1, from)));
            assert_eq!(limits.no_memory, Some((true, from)));
        }
        let nothing = Limits::of(&Options::default(), &file(""), &file("")).unwrap();
        assert!(nothing.max_tokens.is_none() && nothing.time_budget.is_none() && nothing.no_memory.is_none());
    }

    #[test]
    fn the_command_line_may_loosen_what_files_say() {
        let options = Options {
            max_tokens: Some(500),
            time_budget: Some("1h".into()),
            ..Options::default()
        };
        let limits = Limits::of(&options, &file("max_tokens = 5\n"), &file("time_budget = \"5s\"\n")).unwrap();
        assert_eq!(limits.max_tokens, Some((500, Origin::Flag)));
        assert_eq!(limits.time_budget, Some((Millis::from_seconds(3600), Origin::Flag)));
    }

    #[test]
    fn an_amount_that_is_none_is_refused_whoever_says_it() {
        for (project, user) in [
            ("max_cost = nan", "max_cost = 1.0"),
            ("max_cost = 1.0", "max_cost = -1.0"),
        ] {
            let failure = Limits::of(&Options::default(), &file(project), &file(user)).unwrap_err();
            assert_eq!(failure.code, 2, "{project} {user}");
        }
    }

    #[test]
    fn spans_are_read() {
        for (text, millis) in [
            ("90", 90_000),
            ("90s", 90_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("1500ms", 1500),
        ] {
            assert_eq!(parse_span(text, "x").unwrap(), Millis(millis));
        }
        for bad in ["", "0", "x", "-5s", "5d", "99999999999999999999h"] {
            assert!(parse_span(bad, "x").is_err(), "{bad}");
        }
    }
}
