//! Which models judge, and whether they may: R4b's own and a second one beside R4a and R4b (design §11, §18).
//!
//! Owns two rules. A judge of its own must stand at least as high as the planner in the operator's order of models, because whoever
//! cannot make the plan cannot tell whether it came out right. A second judge must be another model of another provider, because two of
//! one house err alike. Neither is said by a project's file.

use std::collections::BTreeMap;

use super::model::{ModelChoice, Sources, Tier};
use crate::failure::Failure;

/// Models that judge beside the brain and the tool tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judges {
    /// R4b's own; the brain judges where there is none.
    pub own: Option<ModelChoice>,
    /// Beside R4a and R4b.
    pub second: Option<ModelChoice>,
}

/// The judges that are configured and may judge.
///
/// # Errors
/// [`Failure`] (exit 2) when one is half configured, ranked below the planner or not ranked at all, or when the second is of a
/// provider whose verdicts it is to check.
pub fn choose(
    sources: &Sources<'_>,
    (brain, tool): (&ModelChoice, &ModelChoice),
    ranks: &BTreeMap<String, u32>,
    notices: &mut Vec<String>,
) -> Result<Judges, Failure> {
    let mut chosen = |tier, called: &str| {
        let found = sources.is_named(tier).then(|| sources.choose(tier, notices));
        let found = found.transpose().map_err(|failure| Failure {
            message: format!("{called}: {}", failure.message),
            ..failure
        })?;
        if found == Some(ModelChoice::Offline) {
            return Err(Failure::usage(format!(
                "{called}: the built-in offline model cannot judge, it is no language model"
            ))
            .hint(format!("name a model of a provider under {called}, or remove it")));
        }
        Ok(found)
    };
    let mut own = chosen(Tier::Judge, "[judge]")?;
    let second = chosen(Tier::SecondJudge, "[second_judge]")?;
    if own.is_some() && sources.options.model.is_some() {
        notices.push("--model names the model of every role, so the one under [judge] does not judge this time".into());
        own = None;
    }
    if let Some(own) = &own {
        stands_high_enough(own, brain, ranks)?;
    }
    if let Some(second) = &second {
        for other in [own.as_ref().unwrap_or(brain), tool] {
            is_of_another_house(second, other)?;
        }
    }
    Ok(Judges { own, second })
}

/// Refuses a judge that the operator has not put at least as high as the planner. A model is as capable as itself.
fn stands_high_enough(
    judge: &ModelChoice,
    planner: &ModelChoice,
    ranks: &BTreeMap<String, u32>,
) -> Result<(), Failure> {
    let (judge, planner) = (judge.name(), planner.name());
    if judge == planner {
        return Ok(());
    }
    let rank = |name: &str| ranks.get(name).copied();
    let (Some(own), Some(needed)) = (rank(judge), rank(planner)) else {
        let missing = [judge, planner].into_iter().find(|name| rank(name).is_none());
        let missing = missing.unwrap_or(judge);
        return Err(Failure::usage(format!(
            "`{judge}` is to judge the plans of `{planner}`, but `{missing}` has no rank, so nothing says that it can"
        ))
        .hint(format!(
            "put both under [ranks] in config.toml in the data folder, such as \"{judge}\" = 2 and \"{planner}\" = 2 (more is more capable), or remove [judge]"
        )));
    };
    if own < needed {
        return Err(Failure::usage(format!(
            "`{judge}` (rank {own}) may not judge the plans of `{planner}` (rank {needed}): a judge must be at least as capable"
        ))
        .hint(format!(
            "name a model of rank {needed} or more under [judge], change [ranks], or remove [judge] and let `{planner}` judge"
        )));
    }
    Ok(())
}

fn is_of_another_house(second: &ModelChoice, other: &ModelChoice) -> Result<(), Failure> {
    if second.provider() == other.provider() {
        return Err(Failure::usage(format!(
            "the second judge `{}` is of the same provider ({}) as `{}`, whose verdicts it is to check",
            second.name(),
            second.provider(),
            other.name()
        ))
        .hint("name a model of another provider under [second_judge], or remove it"));
    }
    // A reseller's copy of a model errs like the model. The same words at two servers of one's own may be two models.
    if second.bare_name() == other.bare_name() && !second.provider().starts_with("localhost") {
        return Err(Failure::usage(format!(
            "the second judge `{}` is the same model as `{}`, whose verdicts it is to check, at another address",
            second.name(),
            other.name()
        ))
        .hint("name another model under [second_judge], or remove it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, Settings, load};
    use super::*;
    use crate::args::Options;

    /// What a user's file and an environment come to; the brain is `big` at `http://a/v1`, the tool tier `small` there.
    fn with(file: &str, env: &[(&str, &str)], options: Options) -> Result<Settings, Failure> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), file).unwrap();
        let options = Options {
            data_dir: Some(folder.path().into()),
            ..options
        };
        let base = [
            ("HOME", "/nonexistent-home"),
            ("OPENAI_BASE_URL", "http://a/v1"),
            ("OPENAI_API_KEY", "key-of-a"),
            ("BRAIN_MODEL", "big"),
            ("TOOL_MODEL", "small"),
        ];
        let env: Environment = base
            .iter()
            .chain(env)
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        load(&options, &env)
    }

    fn refused(file: &str, words: &[&str]) {
        let failure = with(file, &[], Options::default()).expect_err(file);
        assert_eq!(failure.code, 2, "{file}");
        let said = format!("{} {}", failure.message, failure.hint.unwrap_or_default());
        for word in words {
            assert!(said.contains(word), "{file}: {said}");
        }
    }

    #[test]
    fn a_judge_weaker_than_the_planner_is_refused_with_a_reason_and_a_remedy() {
        let judge = "[judge]\nmodel = \"other\"\n";
        refused(judge, &["`other`", "`big`", "no rank", "[ranks]", "remove [judge]"]);
        refused(&format!("{judge}[ranks]\nother = 5\n"), &["`big` has no rank"]);
        refused(&format!("{judge}[ranks]\nbig = 5\n"), &["`other` has no rank"]);
        refused(
            &format!("{judge}[ranks]\nother = 1\nbig = 2\n"),
            &["rank 1", "rank 2", "at least as capable", "of rank 2 or more"],
        );
        for ranks in ["other = 2\nbig = 2", "other = 3\nbig = 2"] {
            let settings = with(&format!("{judge}[ranks]\n{ranks}\n"), &[], Options::default()).unwrap();
            let own = settings.judges.own.unwrap();
            assert_eq!(own.to_string(), "other at http://a/v1 (with a key)", "{ranks}");
        }
    }

    #[test]
    fn the_same_model_counts_as_equal_and_the_brain_judges_where_none_is_named() {
        let same = with("[judge]\nmodel = \"big\"\n", &[], Options::default()).unwrap();
        assert_eq!(same.judges.own.unwrap().name(), "big");
        assert_eq!(with("", &[], Options::default()).unwrap().judges, Judges::default());
        let env = [("JUDGE_MODEL", "big"), ("JUDGE_BASE_URL", "http://c")];
        let named = with("", &env, Options::default()).unwrap().judges.own.unwrap();
        assert_eq!(named.to_string(), "big at http://c (with a key)");
        refused("[judge]\nbase_url = \"http://c\"\n", &["[judge]", "no model is named"]);
    }

    #[test]
    fn a_model_flag_names_the_judge_too() {
        let options = Options {
            model: Some("builtin:offline".into()),
            ..Options::default()
        };
        let settings = with("[judge]\nmodel = \"other\"\n", &[], options).unwrap();
        assert_eq!(settings.judges.own, None);
        assert!(settings.notices.iter().any(|notice| notice.contains("[judge]")));
    }

    #[test]
    fn a_second_judge_is_of_another_provider_and_gets_nobody_elses_key() {
        let second = |url: &str| format!("[second_judge]\nmodel = \"other\"\nbase_url = \"{url}\"\n");
        refused(&second("http://A/"), &["same provider (a)", "another provider"]);
        refused(&second("http://user@a:80/v1"), &["same provider"]);
        refused(
            "[second_judge]\nmodel = \"other\"\n",
            &["[second_judge]", "neither its endpoint"],
        );
        refused(
            "[second_judge]\nbase_url = \"http://b\"\n",
            &["[second_judge]", "no model is named"],
        );
        let judge = "[judge]\nmodel = \"big\"\nbase_url = \"http://b\"\n";
        refused(
            &format!("{judge}{}", second("http://b:80/v1")),
            &["same provider (b)", "`big`"],
        );
        let settings = with(&second("http://b"), &[], Options::default()).unwrap();
        let chosen = settings.judges.second.unwrap();
        assert_eq!(chosen.to_string(), "other at http://b (without a key)");
        let env = [("SECOND_JUDGE_API_KEY", "own")];
        let settings = with(&second("http://a:8081"), &env, Options::default()).unwrap();
        let chosen = settings.judges.second.unwrap();
        assert_eq!(chosen.to_string(), "other at http://a:8081 (with a key)");
    }

    #[test]
    fn names_of_one_house_are_one_provider() {
        let of = |url: &str| {
            let choice = ModelChoice::Endpoint {
                wire: artoo_llm::provider::Wire::OpenAi,
                base_url: url.to_owned(),
                api_key: None,
                model: "m".to_owned(),
            };
            choice.provider()
        };
        for (url, expect) in [
            ("https://api.example.com/v1", "example.com"),
            ("https://eu.api.example.com:8443/v1", "example.com"),
            ("https://API.Example.COM.", "example.com"),
            ("api.example.co.uk", "example.co.uk"),
            ("https://example.co", "example.co"),
            ("http://localhost:8080/v1", "localhost:8080"),
            ("http://127.0.0.1:8080", "localhost:8080"),
            ("http://127.1.2.3:8080", "localhost:8080"),
            ("http://[::1]:8080/v1", "localhost:8080"),
            ("http://0.0.0.0:8080", "localhost:8080"),
            ("http://gpu.localhost:8081", "localhost:8081"),
            ("http://192.168.1.7:80", "192.168.1.7"),
            ("http://192.168.1.7:81", "192.168.1.7:81"),
            ("http://[fe80::1]", "fe80::1"),
            ("http://gpubox:11434", "gpubox:11434"),
            ("https://user:word@api.example.com", "example.com"),
        ] {
            assert_eq!(of(url), expect, "{url}");
        }
    }

    #[test]
    fn a_second_judge_is_no_copy_of_the_first_and_not_the_offline_model() {
        let second = |model: &str, url: &str| format!("[second_judge]\nmodel = \"{model}\"\nbase_url = \"{url}\"\n");
        refused(
            &second("vendor/Big", "http://b"),
            &["same model", "`big`", "another address"],
        );
        refused(&second("small:latest", "http://b"), &["same model", "`small`"]);
        assert!(with(&second("bigger", "http://b"), &[], Options::default()).is_ok());
        for file in [
            second("builtin:offline", "http://b"),
            "[judge]\nmodel = \"builtin:offline\"\n[ranks]\n\"builtin:offline\" = 9\nbig = 1\n".to_owned(),
            "second_judge_model = \"builtin:offline\"\n".to_owned(),
            "judge_model = \"builtin:offline\"\n".to_owned(),
        ] {
            refused(&file, &["cannot judge", "or remove it"]);
        }
        let tool = [("TOOL_MODEL", "builtin:offline")];
        let settings = with("", &tool, Options::default()).unwrap();
        assert_eq!(
            settings.tool,
            ModelChoice::Offline,
            "the two tiers may do without a provider"
        );
    }

    #[test]
    fn a_project_file_names_no_judge_and_no_rank() {
        for text in [
            "[judge]\nmodel = \"weak\"\n",
            "[second_judge]\nmodel = \"weak\"\nbase_url = \"http://evil\"\n",
            "judge_model = \"openai:weak\"\n",
            "[ranks]\nweak = 99\n",
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(".artoo.toml"), text).unwrap();
            let options = Options {
                cwd: Some(folder.path().into()),
                ..Options::default()
            };
            let failure = with("", &[], options).expect_err(text);
            assert!(
                failure.code == 2 && failure.message.contains("may not set"),
                "{text}: {}",
                failure.message
            );
        }
    }

    #[test]
    fn a_limit_on_cost_needs_the_prices_of_judges_too() {
        let file = "[second_judge]\nmodel = \"other\"\nbase_url = \"http://b\"\n[prices.big]\ninput = 1\noutput = 1\n[prices.small]\ninput = 1\noutput = 1\n";
        let options = || Options {
            max_cost: Some(1.0),
            ..Options::default()
        };
        let failure = with(file, &[], options()).unwrap_err();
        assert!(failure.message.contains("`other`"), "{}", failure.message);
        let priced = format!("{file}[prices.other]\ninput = 1\noutput = 1\n");
        assert!(with(&priced, &[], options()).is_ok());
    }
}
