//! What the roles are built from, out of what a person configured (design §20).
//!
//! Owns the translation of settings; the roles' own crates own what each of them means.

use artoo_executor::Grant;
use artoo_protocol::LocalZone;
use artoo_protocol::model::Tier;
use artoo_protocol::tool::ToolSpec;
use artoo_validators::Judges;

use crate::roles::{RoleSettings, Validator};
use crate::settings::{Environment, Settings};
use crate::system::OUTPUTS;

/// What the roles are built from.
pub fn role_settings(settings: &Settings, env: &Environment, grants: Vec<Grant>, specs: Vec<ToolSpec>) -> RoleSettings {
    let zone = zone();
    let judges = settings.judges.second.as_ref().map_or(Judges::One, |_| Judges::Two);
    let places = artoo_planner::Places {
        home: env.get("HOME").cloned().unwrap_or_default(),
        cwd: settings.cwd.to_string_lossy().into_owned(),
        workspace: settings.workspace.to_string_lossy().into_owned(),
    };
    RoleSettings {
        perceiver: artoo_perceiver::Config {
            zone: zone.clone(),
            ..artoo_perceiver::Config::default()
        },
        planner: artoo_planner::Config {
            zone: zone.clone(),
            tools: specs.clone(),
            limits: artoo_planner::Limits {
                parallel: std::thread::available_parallelism().map_or(4, usize::from).max(4),
                judging_time: crate::models::judging_time(settings),
                ..artoo_planner::Limits::default()
            },
            places: places.clone(),
            outputs: Some(settings.data_dir.join(OUTPUTS).to_string_lossy().into_owned()),
            ..artoo_planner::Config::default()
        },
        executor: artoo_executor::Settings {
            facts: format!(
                "working directory: {}\nworkspace: {}",
                settings.cwd.display(),
                settings.workspace.display()
            ),
            zone,
            places,
            grants,
            ..artoo_executor::Settings::new(specs)
        },
        agent_validator: Validator {
            limits: artoo_validators::agent::Config {
                judges,
                ..artoo_validators::agent::Config::default()
            },
            ..Validator::default()
        },
        meta_validator: Validator {
            limits: artoo_validators::meta::Config {
                max_replans: settings.max_replans,
                judge: settings.judges.own.as_ref().map_or(Tier::Brain, |_| Tier::Judge),
                judges,
                judging_time: crate::models::judging_time(settings),
            },
            ..Validator::default()
        },
        controller: artoo_ggs::Params {
            time_budget_ms: settings.time_budget,
            max_replans: settings.max_replans,
            ..artoo_ggs::Params::default()
        },
    }
}

fn zone() -> LocalZone {
    let now = jiff::Zoned::now();
    LocalZone {
        name: now.time_zone().iana_name().unwrap_or_default().to_owned(),
        utc_offset_minutes: now.offset().seconds() / 60,
    }
}
