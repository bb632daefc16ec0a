//! `artoo config`: what is in force and who said it (design §20).

use std::path::PathBuf;

use artoo_protocol::text::printable;
use serde_json::{Value, json};

use crate::args::{ConfigCommand, Options};
use crate::failure::Failure;
use crate::output;
use crate::settings::{self, Environment, Shown};

/// Shows it.
///
/// # Errors
/// [`Failure`] (exit 2) when the settings make no sense.
pub fn run(command: &ConfigCommand, options: &Options, env: &Environment) -> Result<(), Failure> {
    match command {
        ConfigCommand::Path => {
            let path: PathBuf = settings::data_dir(options, env)?.join("config.toml");
            output::result(&path.display().to_string());
        }
        ConfigCommand::Show { json } => {
            let rows = settings::shown(options, env)?;
            if *json {
                let rows: Vec<Value> = rows
                    .iter()
                    .map(|row| json!({"name": row.name, "value": row.value, "from": row.from}))
                    .collect();
                output::pretty_json(&rows);
            } else {
                for row in &rows {
                    output::result(&printable(&line(row)));
                }
            }
        }
    }
    Ok(())
}

fn line(row: &Shown) -> String {
    format!("{:<20} {}  [{}]", row.name, row.value, row.from)
}
