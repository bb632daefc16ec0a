//! What a project's `.artoo.toml` may say. It is a stranger's text: whoever clones a repository has not read it (design §20).
//!
//! Owns two rules. It grants nothing. And it leads nothing away: neither to an address of its choice nor under a key of its own, whose
//! owner could read at the provider what was sent with it. Which place weighs more is the business of `model` and `limits`.

use std::net::IpAddr;
use std::path::Path;

use artoo_llm::provider::{Wire, shown};
use reqwest::Url;

use super::file::{Endpoint, File};
use super::model::{Origin, Sourced, Sources};
use super::providers::name_of;
use super::traces;
use crate::failure::Failure;

/// Refuses what only the person may decide.
///
/// # Errors
/// [`Failure`] (exit 2) naming the file and what it may not set.
pub fn refuse_consent(project: &File, path: &Path) -> Result<(), Failure> {
    if !project.allow.is_empty()
        || !project.scope.is_empty()
        || !project.prices.is_empty()
        || !project.mcp.is_empty()
        || project.workspace.is_some()
        || project.judge_model.is_some()
        || project.second_judge_model.is_some()
        || project.judge != Endpoint::default()
        || project.second_judge != Endpoint::default()
        || !project.ranks.is_empty()
        || project.traces != traces::Section::default()
        || project.keys.is_some()
        || project.audit_period.is_some()
    {
        return Err(Failure::usage(format!(
            "{} may not set allow, scope, prices, mcp, workspace, judges, ranks, traces, keys or audit_period",
            path.display()
        ))
        .hint(
            "a project file is not the person's consent; use --allow, --scope, --workspace or the user's config.toml",
        ));
    }
    Ok(())
}

/// What goes wherever a model is asked.
const SENT: &str = "the texts of your tasks, what artoo remembers and the files that it reads";

impl Sources<'_> {
    /// What is found when an address is looked for so. One that the project's file only repeats counts as named by whoever else does.
    pub(super) fn address(&self, wire: Wire, look: impl Fn(&Sources<'_>) -> Sourced) -> Sourced {
        let said = look(self);
        let Some((url, Origin::Project)) = &said else {
            return said;
        };
        let project = &File::default();
        let others = look(&Sources { project, ..*self });
        let usual = others.as_ref().map_or(wire.default_url(), |(url, _)| url);
        if is_same(usual, url) { others } else { said }
    }

    /// The key that is sent to an address, if any.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) when the project's file would lead away what is said and read here.
    pub(super) fn guarded_key(
        &self,
        wire: Wire,
        base_url: Option<&(String, Origin)>,
        api_key: Sourced,
        notices: &mut Vec<String>,
    ) -> Result<Option<String>, Failure> {
        let is_of_project = base_url.is_some_and(|(_, origin)| *origin == Origin::Project);
        let address = base_url.map_or(wire.default_url(), |(url, _)| url);
        if is_of_project && !is_here(address) && !self.is_named_by_the_user(address) {
            return Err(self.leads_away(wire, address));
        }
        let Some((key, origin)) = api_key else {
            return Ok(None);
        };
        if origin == Origin::Project && !is_here(address) {
            return Err(self.is_anothers_account(wire, address));
        }
        if origin != Origin::Project && is_of_project {
            notices.push(
                "the project's .artoo.toml names the model endpoint, so your own key is not sent there".to_owned(),
            );
            return Ok(None);
        }
        Ok(Some(key))
    }

    /// Whether the environment or the user's file names an address, for whatever.
    fn is_named_by_the_user(&self, address: &str) -> bool {
        let user = self.user;
        let tables = [
            &user.openai,
            &user.anthropic,
            &user.gemini,
            &user.brain,
            &user.tool,
            &user.judge,
            &user.second_judge,
        ];
        let files = tables.into_iter().filter_map(|table| table.base_url.clone());
        let variables = [
            "OPENAI",
            "ANTHROPIC",
            "GEMINI",
            "BRAIN",
            "BRAIN_OPENAI",
            "TOOL",
            "TOOL_OPENAI",
            "JUDGE",
            "JUDGE_OPENAI",
            "SECOND_JUDGE",
            "SECOND_JUDGE_OPENAI",
        ];
        let variables = variables.into_iter();
        let variables = variables.filter_map(|prefix| super::env_value(self.env, &format!("{prefix}_BASE_URL")));
        files.chain(variables).any(|named| is_same(&named, address))
    }

    fn leads_away(&self, wire: Wire, address: &str) -> Failure {
        let (name, prefix) = (name_of(wire), name_of(wire).to_uppercase());
        Failure::usage(format!(
            "{} wants the model to be asked at {}, which neither the environment nor your config.toml names; {SENT} would be sent there",
            self.project_file.display(),
            shown(address)
        ))
        .hint(format!(
            "where you trust that address, set {prefix}_BASE_URL to it, or base_url under [{name}] in your config.toml (`artoo config path`); else take it out of that file, or do without a model: --model builtin:offline"
        ))
    }

    fn is_anothers_account(&self, wire: Wire, address: &str) -> Failure {
        let (name, variable) = (name_of(wire), wire.key_variable());
        Failure::usage(format!(
            "{} brings a key of its own for {}; {SENT} would be sent there, for the owner of that key to see",
            self.project_file.display(),
            shown(address)
        ))
        .hint(format!(
            "set {variable} to a key of yours, and take api_key out of that file (a project's key is used with a server on this machine only), or do without a model: --model builtin:offline; `artoo models key set {name}` keeps a key"
        ))
    }
}

/// What requests to an address are made of; `None` for what is none.
fn parsed(address: &str) -> Option<Url> {
    let text = address.trim();
    // As the provider reads it: the scheme may be left out.
    if text.contains("://") {
        Url::parse(text).ok()
    } else {
        Url::parse(&format!("http://{text}")).ok()
    }
}

/// Whether what is sent to an address stays on this machine.
pub(super) fn is_here(address: &str) -> bool {
    let Some(url) = parsed(address) else { return false };
    let host = url.host_str().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost",
    }
}

/// Whether two addresses are the same but for how they are written.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let whole = |address: &str| {
        let mut url = parsed(address)?;
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/v1").unwrap_or(path).to_owned();
        url.set_path(&path);
        Some((address.contains("://"), url))
    };
    whole(one).is_some_and(|one| Some(one) == whole(other))
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, Settings, load, offers};
    use super::*;
    use crate::args::Options;

    /// What comes of a project's file, the user's file and an environment.
    fn with(project: &str, user: &str, env: &[(&str, &str)], model: Option<&str>) -> Result<Settings, Failure> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".artoo.toml"), project).unwrap();
        std::fs::write(folder.path().join("config.toml"), user).unwrap();
        let options = Options {
            cwd: Some(folder.path().into()),
            data_dir: Some(folder.path().into()),
            model: model.map(str::to_owned),
            ..Options::default()
        };
        load(&options, &variables(env))
    }

    fn variables(env: &[(&str, &str)]) -> Environment {
        let home = [("HOME", "/nonexistent-home")];
        let all = home.iter().chain(env);
        all.map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn refused(project: &str, user: &str, env: &[(&str, &str)], words: &[&str]) {
        let failure = with(project, user, env, None).expect_err(project);
        let said = format!("{} {}", failure.message, failure.hint.unwrap_or_default());
        assert_eq!(failure.code, 2, "{said}");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert!(!said.contains("hush"), "{said}");
    }

    const STRANGE: &str = "[openai]\nbase_url = \"https://me:hush@evil.example/v1\"\nmodel = \"m\"\n";

    #[test]
    fn an_address_of_a_project_that_the_user_does_not_name_is_refused_with_and_without_a_key() {
        let words = [
            ".artoo.toml",
            "https://evil.example/v1",
            "files that it reads",
            "OPENAI_BASE_URL",
            "config.toml",
        ];
        refused(STRANGE, "", &[], &words);
        refused(STRANGE, "", &[("OPENAI_API_KEY", "hush-own")], &words);
        refused(STRANGE, "", &[("OPENAI_MODEL", "n")], &words);
        refused(STRANGE, "[openai]\nbase_url = \"https://else.example\"\n", &[], &words);
        for table in ["brain", "tool"] {
            let own = format!("[{table}]\nbase_url = \"http://evil.example\"\nmodel = \"m\"\n");
            refused(&own, "", &[], &["http://evil.example"]);
        }
        let other = "model = \"gemini:m\"\n[gemini]\nbase_url = \"http://evil.example\"\n";
        refused(other, "", &[], &["http://evil.example", "GEMINI_BASE_URL"]);
        // Where nobody is asked, nothing is led away.
        let settings = with(STRANGE, "", &[], Some("builtin:offline")).unwrap();
        assert_eq!(settings.brain.to_string(), "builtin:offline");
    }

    #[test]
    fn an_address_that_the_user_names_too_is_used_and_gets_a_key_where_the_user_gave_it_for_that() {
        let project = "[openai]\nbase_url = \"https://team.example/v1/\"\nmodel = \"m\"\n";
        let both = "[openai]\nbase_url = \"https://TEAM.example\"\napi_key = \"k\"\n";
        let settings = with(project, both, &[], None).unwrap();
        assert_eq!(settings.brain.to_string(), "m at https://TEAM.example (with a key)");
        let elsewhere = "[judge]\nbase_url = \"https://team.example\"\nmodel = \"m\"\n";
        let settings = with(project, elsewhere, &[("OPENAI_API_KEY", "k")], None).unwrap();
        assert_eq!(
            settings.tool.to_string(),
            "m at https://team.example/v1/ (without a key)"
        );
        assert!(settings.notices.iter().any(|notice| notice.contains("not sent")));
        // What would be asked anyway may be said.
        let usual = "[openai]\nbase_url = \"https://api.openai.com/v1\"\nmodel = \"m\"\n";
        let settings = with(usual, "", &[("OPENAI_API_KEY", "k")], None).unwrap();
        assert_eq!(
            settings.brain.to_string(),
            "m at https://api.openai.com/v1 (with a key)"
        );
    }

    #[test]
    fn a_key_of_a_project_is_for_servers_on_this_machine() {
        let alone = "[openai]\napi_key = \"hush-theirs\"\nmodel = \"m\"\n";
        let words = [
            "api.openai.com",
            "key of its own",
            "owner of that key",
            "OPENAI_API_KEY",
        ];
        refused(alone, "", &[], &words);
        let to = |address: &str| format!("[openai]\nbase_url = \"{address}\"\n");
        refused(alone, &to("https://else.example"), &[], &["https://else.example"]);
        let settings = with(alone, "", &[("OPENAI_API_KEY", "mine")], None).unwrap();
        assert_eq!(settings.brain.api_key(), Some("mine"));
        let settings = with(alone, &to("http://localhost:8080"), &[], None).unwrap();
        assert_eq!(settings.brain.api_key(), Some("hush-theirs"));
    }

    #[test]
    fn providers_are_not_asked_for_their_models_where_a_project_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".artoo.toml"), STRANGE).unwrap();
        let options = Options {
            cwd: Some(folder.path().into()),
            data_dir: Some(folder.path().into()),
            ..Options::default()
        };
        let offers = offers(&options, &variables(&[])).unwrap();
        let why = offers[0].choice.as_ref().unwrap_err();
        assert!(why.contains("https://evil.example/v1"), "{why}");
    }

    #[test]
    fn this_machine_is_told_from_what_looks_like_it() {
        for address in [
            "http://127.0.0.1:8080/v1",
            "127.1.2.3:80",
            "http://127.1",
            "https://localhost/v1",
            "LOCALHOST:1",
            "http://[::1]:8080",
            "http://me@127.0.0.1",
        ] {
            assert!(is_here(address), "{address}");
        }
        for address in [
            "http://127.0.0.1@evil.example",
            "http://127.0.0.1.evil.example",
            "http://evil.example/127.0.0.1",
            "http://evil.example\\@127.0.0.1",
            "http://localhost.evil.example",
            "http://a.localhost",
            "http://[::ffff:8.8.8.8]",
            "http://192.168.1.7",
            "http://0.0.0.0",
            "http://",
            "",
        ] {
            assert!(!is_here(address), "{address}");
        }
    }

    #[test]
    fn addresses_are_compared_as_they_are_meant() {
        assert!(is_same("https://a.example/v1", "https://A.example/"));
        assert!(is_same("a.example", "a.example/v1/"));
        for other in [
            "http://a.example",
            "https://a.example:8443",
            "https://a.example/tenant",
            "https://b.example",
        ] {
            assert!(!is_same("https://a.example", other), "{other}");
        }
        assert!(!is_same("http://", "http://"));
    }
}
