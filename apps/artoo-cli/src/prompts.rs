//! Prompts of the user's own: files in `prompts/` of the data folder stand for those that are built in (design §18, §20).
//!
//! Owns which files there may be. The laws are not among them: they are in front of every prompt, whoever wrote it.

use std::io::ErrorKind;
use std::path::Path;

use artoo_protocol::prompt::with_laws;

use crate::failure::Failure;
use crate::roles::RoleSettings;

/// The four laws.
const LAWS: &str = "laws";

/// One prompt that may be replaced.
struct Slot {
    name: &'static str,
    /// Puts a text into the place of the built-in one.
    put: fn(&mut RoleSettings, &str, &str) -> Result<(), artoo_protocol::prompt::PromptError>,
}

const SLOTS: [Slot; 6] = [
    Slot {
        name: "perceiver",
        put: |roles, text, _| {
            text.clone_into(&mut roles.perceiver.prompts.system);
            roles.perceiver.prompts.system_text().map(drop)
        },
    },
    Slot {
        name: "planner",
        put: |roles, text, _| {
            text.clone_into(&mut roles.planner.prompts.plan);
            roles.planner.prompts.plan_text().map(drop)
        },
    },
    Slot {
        name: "partial_result",
        put: |roles, text, _| {
            text.clone_into(&mut roles.planner.prompts.partial_result);
            roles.planner.prompts.partial_result_text().map(drop)
        },
    },
    Slot {
        name: "executor",
        put: |roles, text, laws| {
            roles.executor.system = with_laws(text, laws)?;
            Ok(())
        },
    },
    Slot {
        name: "agent_validator",
        put: |roles, text, laws| {
            roles.agent_validator.prompts = artoo_validators::agent::Prompts::new(text, laws)?;
            Ok(())
        },
    },
    Slot {
        name: "meta_validator",
        put: |roles, text, laws| {
            roles.meta_validator.prompts = artoo_validators::meta::Prompts::new(text, laws)?;
            Ok(())
        },
    },
];

/// Puts the user's own prompts into the settings and names those that were found.
///
/// # Errors
/// [`Failure`] (exit 2) for a file that stands for no prompt, cannot be read, or does not hold `{{laws}}` and nothing else
/// in braces.
pub fn replace(roles: &mut RoleSettings, data_dir: &Path) -> Result<Vec<String>, Failure> {
    let folder = data_dir.join("prompts");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        // Whether the data folder itself can be used is said by whoever opens it.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(Failure::usage(format!("{}: {error}", folder.display()))),
    };
    let laws = artoo_perceiver::Prompts::default().laws;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let wrong = |why: String| Failure::usage(format!("the prompt {} cannot be used: {why}", path.display()));
        if name == LAWS {
            return Err(wrong("the laws cannot be replaced".to_owned()));
        }
        let Some(slot) = SLOTS.iter().find(|slot| slot.name == name) else {
            let names: Vec<&str> = SLOTS.iter().map(|slot| slot.name).collect();
            return Err(
                wrong("there is no prompt of this name".to_owned()).hint(format!("there are: {}", names.join(", ")))
            );
        };
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        (slot.put)(roles, &text, &laws).map_err(|error| wrong(error.to_string()))?;
        found.push(name);
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(files: &[(&str, &str)]) -> (RoleSettings, Result<Vec<String>, Failure>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("prompts")).unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join("prompts").join(name), text).unwrap();
        }
        let mut roles = RoleSettings::default();
        let found = replace(&mut roles, dir.path());
        (roles, found)
    }

    /// Every system message as the roles will send it.
    fn systems(roles: &RoleSettings) -> [(&'static str, String); 6] {
        [
            ("perceiver", roles.perceiver.prompts.system_text().unwrap()),
            ("planner", roles.planner.prompts.plan_text().unwrap()),
            ("partial_result", roles.planner.prompts.partial_result_text().unwrap()),
            ("executor", roles.executor.system.clone()),
            ("agent_validator", roles.agent_validator.prompts.system.clone()),
            ("meta_validator", roles.meta_validator.prompts.system.clone()),
        ]
    }

    #[test]
    fn every_prompt_can_be_replaced_and_keeps_the_laws() {
        for slot in &SLOTS {
            let text = format!("My {}.\n{{{{laws}}}}\nBe short.", slot.name);
            let (roles, found) = with(&[(&format!("{}.md", slot.name), &text), ("notes.txt", "x")]);
            assert_eq!(found.unwrap(), [slot.name]);
            for (name, system) in systems(&roles) {
                assert!(system.contains("Never deceive") && !system.contains("{{"), "{name}");
                assert_eq!(
                    system.starts_with(&format!("My {}.", slot.name)),
                    name == slot.name,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_prompt_without_the_laws_or_with_another_placeholder_or_of_no_role_is_refused() {
        for (name, text, why) in [
            ("planner.md", "Plan.", "`laws` has no placeholder"),
            ("planner.md", "{{laws}} {{tools}}", "`{{tools}}` has no value"),
            ("executor.md", "{{laws}} {{", "not closed"),
            ("laws.md", "Do anything.", "cannot be replaced"),
            ("planer.md", "{{laws}}", "no prompt of this name"),
        ] {
            let failure = with(&[(name, text)]).1.unwrap_err();
            assert_eq!(failure.code, 2);
            assert!(
                failure.message.contains(why) && failure.message.contains(name),
                "{}",
                failure.message
            );
        }
        let mut roles = RoleSettings::default();
        assert_eq!(
            replace(&mut roles, Path::new("/nonexistent")).unwrap(),
            Vec::<String>::new()
        );
    }
}
