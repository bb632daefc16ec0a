//! What must hold whatever stands in the settings files; the target `configuration` in `fuzz/` looks for texts that break it.
//!
//! Owns the claim. Reads no file.

use std::path::PathBuf;

use artoo_llm::provider::Wire;

use super::file::{Endpoint, File};
use super::project::{is_here, is_same};
use super::stored::Stored;
use super::{Environment, Files, ModelChoice, file, put_together};
use crate::args::Options;

/// The person's key, which no project may lead away.
const KEY: &str = "sk-the-persons-own-key-0123456789";

/// Any two texts give settings or one clear sentence: nothing panics; a refusal names the fault without repeating a key; and a
/// project's text grants nothing, never gets the person's key and has nothing sent off this machine. The texts are divided by a line of three dashes: the user's, the
/// project's.
///
/// # Panics
/// Where that is not so.
pub fn configuration(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (user, project) = text.split_once("\n---\n").unwrap_or((&text, ""));
    let Ok(user) = file::parse(user) else { return };
    let Ok(project) = file::parse(project) else { return };
    let env: Environment = [("HOME", "/nonexistent-home"), ("OPENAI_API_KEY", KEY)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let wants = !project.allow.is_empty()
        || !project.scope.is_empty()
        || project.workspace.is_some()
        || project.audit_period.is_some()
        || project.traces != super::traces::Section::default();
    let endpoints = |file: &File| {
        let all = [&file.openai, &file.brain, &file.tool, &file.anthropic, &file.gemini];
        all.map(Endpoint::clone)
    };
    let (strange, own) = (endpoints(&project), endpoints(&user));
    let judges = [user.judge.clone(), user.second_judge.clone()];
    let files = Files {
        user,
        project,
        project_file: PathBuf::from("/nonexistent-home/project/.artoo.toml"),
        stored: Stored::default(),
    };
    let data = PathBuf::from("/nonexistent-home/.artoo");
    match put_together(
        &Options::default(),
        &env,
        data,
        PathBuf::from("/nonexistent-home/project"),
        &files,
    ) {
        Ok((settings, unusable)) => {
            if let Some(failure) = unusable {
                assert_eq!(failure.code, 2);
                assert!(!failure.message.contains(KEY), "a key is printed");
            }
            assert!(!wants, "a project granted something");
            assert!(settings.max_cost.is_none_or(|cost| cost.is_finite() && cost >= 0.0));
            assert!(settings.time_budget.0 > 0 && settings.audit_period.0 > 0);
            for choice in [&settings.brain, &settings.tool] {
                let ModelChoice::Endpoint { base_url, api_key, .. } = choice else {
                    continue;
                };
                let names = |all: &[Endpoint]| {
                    let mut addresses = all.iter().filter_map(|endpoint| endpoint.base_url.as_ref());
                    addresses.any(|named| is_same(named, base_url))
                };
                let is_usual = [Wire::OpenAi, Wire::Anthropic, Wire::Gemini]
                    .iter()
                    .any(|wire| is_same(wire.default_url(), base_url));
                let is_strangers = names(&strange) && !is_usual && !names(&own) && !names(&judges);
                assert!(!is_strangers || is_here(base_url), "all would go to {base_url}");
                if api_key.as_deref() == Some(KEY) {
                    let is_mine = is_usual || names(&own[..3]);
                    assert!(is_mine || !names(&strange), "the key would go to {base_url}");
                }
                let brings = |all: &[Endpoint]| all.iter().any(|endpoint| endpoint.api_key == *api_key);
                if api_key.is_some() && brings(&strange) && !brings(&own) && api_key.as_deref() != Some(KEY) {
                    assert!(is_here(base_url), "all would go to {base_url} under another's key");
                }
                assert!(!format!("{choice:?}").contains(KEY), "a key is printed");
            }
        }
        Err(failure) => {
            assert_eq!(failure.code, 2);
            assert!(!failure.message.is_empty());
            assert!(!failure.message.contains(KEY), "a key is printed");
        }
    }
}

#[cfg(test)]
#[test]
fn the_kept_texts_keep_the_claim() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/configuration");
    let mut seen = 0;
    for seed in std::fs::read_dir(folder).unwrap() {
        configuration(&std::fs::read(seed.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen >= 10, "{seen} inputs");
}
