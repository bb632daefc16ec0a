//! `artoo mcp …`: the MCP servers in the user's `config.toml` (design §8, §20).
//!
//! Owns the editing of that file: a section is put at its end or cut out of it, everything else stays as it was written, and what comes
//! out is read again before it is stored.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use artoo_executor::mcp::{Report, check_name};
use artoo_protocol::text::printable;
use serde_json::json;

use crate::args::{McpCommand, McpServerArgs};
use crate::failure::Failure;
use crate::output;
use crate::settings::{self, Settings};

/// Starts every configured server, and says what each offers.
pub async fn list(settings: &Settings, as_json: bool) {
    let sandbox = artoo_executor::Sandbox::of_this_program();
    let (_tools, reports) = artoo_executor::mcp::start(settings.mcp.clone(), &sandbox).await;
    if as_json {
        let rows: Vec<_> = reports.iter().map(row).collect();
        return output::json(&rows);
    }
    if reports.is_empty() {
        return output::note("no MCP server is configured; `artoo mcp add NAME -- COMMAND` adds one");
    }
    let lines: Vec<_> = reports.iter().map(line).collect();
    output::result(&printable(&lines.join("\n")));
}

fn row(report: &Report) -> serde_json::Value {
    json!({"name": report.name, "tools": report.tools.as_ref().ok(), "error": report.tools.as_ref().err(), "left_out": report.left_out})
}

fn line(report: &Report) -> String {
    match &report.tools {
        Ok(tools) => {
            let left_out = if report.left_out.is_empty() {
                String::new()
            } else {
                format!("; left out: {}", report.left_out.join(", "))
            };
            format!("{}  {} tools: {}{left_out}", report.name, tools.len(), tools.join(", "))
        }
        Err(why) => format!("{}  does not work: {why}", report.name),
    }
}

/// Adds or removes a server in `config.toml`.
///
/// # Errors
/// [`Failure`] (exit 2) when the file cannot be changed so, or the server is there already or not at all.
pub fn change(command: &McpCommand, data: &Path) -> Result<(), Failure> {
    let path = data.join("config.toml");
    let before = settings::user_file(data)?;
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::usage(format!("{} cannot be read: {error}", path.display()))),
    };
    let (name, new) = match command {
        McpCommand::List { .. } => return Ok(()),
        McpCommand::Add(server) => {
            check_name(&server.name).map_err(Failure::usage)?;
            if before.contains_key(&server.name) {
                return Err(
                    Failure::usage(format!("there is an MCP server `{}` already", server.name))
                        .hint("artoo mcp remove takes it away"),
                );
            }
            (&server.name, with_section(&text, server)?)
        }
        McpCommand::Remove { name } => {
            if !before.contains_key(name) {
                return Err(Failure::usage(format!("there is no MCP server `{name}`")));
            }
            (name, without_section(&text, name))
        }
    };
    let by_hand = || {
        Failure::usage(format!(
            "{} is written in a way that cannot be changed safely",
            path.display()
        ))
        .hint("change it by hand")
    };
    let after = settings::servers_in(&new).ok_or_else(by_hand)?;
    // Exactly this server came or went, and nothing else changed.
    let others = |all: &std::collections::BTreeMap<String, _>| -> Vec<_> {
        all.iter()
            .filter(|(other, _)| *other != name)
            .map(|(k, v): (&String, &settings::McpServer)| (k.clone(), v.clone()))
            .collect()
    };
    let came_or_went = before.contains_key(name) != after.contains_key(name);
    if !came_or_went
        || others(&before) != others(&after)
        || settings::without_servers(&text) != settings::without_servers(&new)
    {
        return Err(by_hand());
    }
    store(data, &path, &new)?;
    output::note(&format!(
        "{} is now in force; `artoo mcp list` tries it",
        path.display()
    ));
    Ok(())
}

/// The text with a section at its end.
fn with_section(text: &str, server: &McpServerArgs) -> Result<String, Failure> {
    let mut section = format!("[mcp.{}]\n", server.name);
    let quoted = |value: &str| toml_string(value);
    match (&server.url, server.command.split_first()) {
        (Some(url), None) => {
            let _ = writeln!(section, "url = {}", quoted(url));
            if let Some(variable) = &server.token_env {
                let _ = writeln!(section, "token_env = {}", quoted(variable));
            }
        }
        (None, Some((command, args))) => {
            let args: Vec<_> = args.iter().map(|arg| quoted(arg)).collect();
            let _ = writeln!(section, "command = {}\nargs = [{}]", quoted(command), args.join(", "));
        }
        _ => {
            return Err(Failure::usage("an MCP server is either a command or --url")
                .hint("artoo mcp add files -- npx -y @modelcontextprotocol/server-filesystem /some/folder"));
        }
    }
    if !server.pass_env.is_empty() {
        let names: Vec<_> = server.pass_env.iter().map(|name| quoted(name)).collect();
        let _ = writeln!(section, "pass_env = [{}]", names.join(", "));
    }
    if let Some(effect) = &server.effect {
        let _ = writeln!(section, "effect = {}", quoted(effect));
    }
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    Ok(format!("{text}{gap}{section}"))
}

/// The text without the sections of a server.
fn without_section(text: &str, name: &str) -> String {
    let (mut kept, mut inside) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            let header = trimmed
                .trim_start_matches('[')
                .split(']')
                .next()
                .unwrap_or_default()
                .replace([' ', '"', '\''], "");
            inside = header == format!("mcp.{name}") || header.starts_with(&format!("mcp.{name}."));
        }
        if !inside {
            kept.push_str(line);
        }
    }
    kept
}

/// A basic string of TOML.
fn toml_string(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes beside the file and renames; only the user may read it, because it may hold keys.
fn store(data: &Path, path: &Path, text: &str) -> Result<(), Failure> {
    crate::data_folder::make_private(data)?;
    let stored = (|| {
        let beside = data.join(format!(".config.toml.{}", std::process::id()));
        let mut options = std::fs::File::options();
        options.write(true).create(true).truncate(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    })();
    stored.map_err(|error: std::io::Error| Failure::usage(format!("{} cannot be written: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_comes_and_goes_and_the_rest_stays() {
        let server = McpServerArgs {
            name: "files".into(),
            url: None,
            token_env: None,
            pass_env: vec!["A_TOKEN".into()],
            effect: Some("read".into()),
            command: vec!["npx".into(), "a \"b\"\\c\n".into()],
        };
        for text in [
            "",
            "# mine\nmodel = \"builtin:offline\"\n\n[prices.big] # dear\ninput = 2\noutput = 10",
            "[mcp.other]\ncommand = \"x\"\n",
        ] {
            let with = with_section(text, &server).unwrap();
            assert!(with.starts_with(text));
            let servers = settings::servers_in(&with).unwrap();
            let added = &servers["files"];
            assert_eq!(added.command.as_deref(), Some("npx"));
            assert_eq!(added.args, ["a \"b\"\\c\n"]);
            assert_eq!(settings::without_servers(text), settings::without_servers(&with));
            let nested = with.clone() + "[mcp.files.env]\nX = \"1\"\n\n[openai]\nmodel = \"m\"\n";
            let without = without_section(&nested, "files");
            assert!(without.contains("[openai]\nmodel") && !without.contains("npx") && !without.contains("X = "));
            assert_eq!(without_section(&with, "files").trim_end(), text.trim_end());
        }
    }

    #[test]
    fn the_folder_and_the_file_are_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        let path = data.join("config.toml");
        store(&data, &path, "").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&data), mode(&path)), (0o700, 0o600));
    }
}
