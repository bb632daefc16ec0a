//! What must hold whatever stands in the settings files; the target `configuration` in `fuzz/` looks for texts that break it.
//!
//! Owns the claim. Reads no file.

use std::path::PathBuf;

use super::stored::Stored;
use super::{Environment, Files, ModelChoice, file, put_together};
use crate::args::Options;

/// The person's key, which no project may lead away.
const KEY: &str = "sk-the-persons-own-key-0123456789";

/// Any two texts give settings or one clear sentence: nothing panics; a refusal names the fault without repeating a key; and a
/// project's text grants nothing and never gets the person's key. The texts are divided by a line of three dashes: the user's, the
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
        || project.traces != super::traces::Section::default();
    let stranger: Vec<String> = [&project.openai, &project.brain, &project.tool]
        .into_iter()
        .filter_map(|endpoint| endpoint.base_url.clone())
        .collect();
    let own: Vec<&String> = [&user.openai, &user.brain, &user.tool]
        .into_iter()
        .filter_map(|endpoint| endpoint.base_url.as_ref())
        .collect();
    let own: Vec<String> = own.into_iter().cloned().collect();
    let files = Files {
        user,
        project,
        stored: Stored::default(),
    };
    let data = PathBuf::from("/nonexistent-home/.artoo");
    match put_together(
        &Options::default(),
        &env,
        data,
        PathBuf::from("/nonexistent-home/project"),
        files,
    ) {
        Ok(settings) => {
            assert!(!wants, "a project granted something");
            assert!(settings.max_cost.is_none_or(|cost| cost.is_finite() && cost >= 0.0));
            assert!(settings.time_budget.0 > 0 && settings.audit_period.0 > 0);
            for choice in [&settings.brain, &settings.tool] {
                let ModelChoice::Endpoint { base_url, api_key, .. } = choice else {
                    continue;
                };
                if api_key.as_deref() == Some(KEY) {
                    let is_strangers = stranger.contains(base_url) && !own.contains(base_url);
                    assert!(!is_strangers, "the key would go to {base_url}");
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
