//! `artoo tools …`: what R3 may use (design §8).

use artoo_protocol::text::printable;
use artoo_protocol::tool::ToolSpec;
use serde_json::json;

use crate::args::ToolsCommand;
use crate::failure::Failure;
use crate::output;

/// Prints what the command asks for of these tools.
///
/// # Errors
/// [`Failure`] (exit 2) for a tool that does not exist.
pub fn run(command: &ToolsCommand, specs: &[ToolSpec]) -> Result<(), Failure> {
    match command {
        ToolsCommand::List { json: true } => {
            let list: Vec<_> = specs
                .iter()
                .map(|spec| json!({"name": spec.name, "description": spec.description}))
                .collect();
            output::json(&list);
        }
        ToolsCommand::List { json: false } => {
            let width = specs.iter().map(|spec| spec.name.len()).max().unwrap_or_default();
            let lines: Vec<_> = specs
                .iter()
                .map(|spec| {
                    printable(&format!(
                        "{:width$}  {}",
                        spec.name,
                        spec.description.replace('\n', " ")
                    ))
                })
                .collect();
            output::result(&lines.join("\n"));
        }
        ToolsCommand::Schema { tool: None, .. } => output::json(&specs),
        ToolsCommand::Schema { tool: Some(name), .. } => {
            let spec = specs.iter().find(|spec| spec.name == *name);
            let spec = spec.ok_or_else(|| {
                Failure::usage(format!("there is no tool `{name}`")).hint("`artoo tools list` names those there are")
            })?;
            output::json(spec);
        }
    }
    Ok(())
}
