//! `artoo doctor`: what could be wrong on this machine, each with its remedy (design §20).

use std::path::Path;

use artoo_protocol::text::printable;
use serde_json::json;

use crate::args::Options;
use crate::failure::Failure;
use crate::settings::{self, Environment, ModelChoice, Settings};
use crate::{models, output};

struct Finding {
    what: &'static str,
    /// Fine, or the complaint with its remedy.
    state: Result<String, String>,
}

/// Looks, and exits with 1 when something does not work.
///
/// # Errors
/// [`Failure`] when a finding is bad; the findings themselves are printed.
pub async fn run(options: &Options, env: &Environment, json: bool) -> Result<u8, Failure> {
    let mut findings = Vec::new();
    match settings::load(options, env) {
        Err(failure) => findings.push(Finding {
            what: "configuration",
            state: Err(format!(
                "{}{}",
                failure.message,
                failure.hint.map(|h| format!(" — {h}")).unwrap_or_default()
            )),
        }),
        Ok(settings) => look(&settings, &mut findings).await,
    }
    let bad = findings.iter().filter(|f| f.state.is_err()).count();
    if json {
        let rows: Vec<_> = findings
            .iter()
            .map(|f| json!({"check": f.what, "ok": f.state.is_ok(), "detail": f.state.as_ref().unwrap_or_else(|complaint| complaint)}))
            .collect();
        output::pretty_json(&rows);
    } else {
        for finding in &findings {
            let (mark, detail) = match &finding.state {
                Ok(detail) => ("ok", detail),
                Err(complaint) => ("BAD", complaint),
            };
            output::result(&printable(&format!("{mark:<4} {:<15} {detail}", finding.what)));
        }
    }
    if bad == 0 {
        Ok(0)
    } else {
        Err(Failure::failed(format!("{bad} thing(s) do not work")))
    }
}

async fn look(settings: &Settings, findings: &mut Vec<Finding>) {
    findings.push(Finding {
        what: "configuration",
        state: Ok(format!("data in {}", settings.data_dir.display())),
    });
    findings.push(Finding {
        what: "data folder",
        state: writable(&settings.data_dir),
    });
    findings.push(Finding {
        what: "workspace",
        state: writable(&settings.workspace),
    });
    findings.push(Finding {
        what: "brain model",
        state: answers(&settings.brain).await,
    });
    if settings.tool != settings.brain {
        findings.push(Finding {
            what: "tool model",
            state: answers(&settings.tool).await,
        });
    }
    // Which judges may judge at all is part of the configuration: a refused one never gets this far.
    for (what, choice) in [
        ("judge", &settings.judges.own),
        ("second judge", &settings.judges.second),
    ] {
        if let Some(choice) = choice {
            findings.push(Finding {
                what,
                state: answers(choice).await,
            });
        }
    }
    let shell = Path::new("/bin/bash").exists() || Path::new("/usr/bin/bash").exists();
    findings.push(Finding {
        what: "shell",
        state: if shell {
            Ok("bash".into())
        } else {
            Err("bash was not found: the shell tool cannot run — install bash".into())
        },
    });
    findings.push(Finding {
        what: "sandbox",
        state: Ok(match artoo_executor::Sandbox::of_this_program().in_force() {
            Ok(in_force) => in_force.to_owned(),
            Err(why) => format!("none, so every command is asked about: {why}"),
        }),
    });
}

/// Whether files can be made in a folder, or in the nearest one above that exists. Nothing is left behind.
fn writable(folder: &Path) -> Result<String, String> {
    let existing = folder.ancestors().find(|p| p.exists()).unwrap_or(folder);
    if !existing.is_dir() {
        return Err(format!(
            "{} is no folder — move it away or choose another",
            existing.display()
        ));
    }
    let probe = existing.join(format!(".artoo-probe-{}", std::process::id()));
    match std::fs::OpenOptions::new().write(true).create_new(true).open(&probe) {
        Ok(_) => {
            let _ = std::fs::remove_file(&probe);
            Ok(if existing == folder {
                folder.display().to_string()
            } else {
                format!("{} (will be made)", folder.display())
            })
        }
        Err(error) => Err(format!(
            "{} cannot be written: {error} — make it writable or choose another",
            existing.display()
        )),
    }
}

async fn answers(choice: &ModelChoice) -> Result<String, String> {
    match choice {
        ModelChoice::Offline => Ok(
            "builtin:offline (a small grammar; set OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL for a real model)"
                .into(),
        ),
        ModelChoice::Endpoint { .. } => models::probe(choice)
            .await
            .map(|_| choice.to_string())
            .map_err(|e| format!("{choice}: {e}")),
    }
}
