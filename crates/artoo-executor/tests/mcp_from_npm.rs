//! A real MCP server from the npm registry, installed once under the build folder; skipped, and said so, where npm or the network is missing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

#[path = "../../artoo-testkit/src/skipping.rs"]
mod skipping;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use artoo_executor::mcp::{Server, Way, start};
use artoo_executor::{Mask, Tools, spawn};
use artoo_protocol::ports::Toolbox;
use artoo_protocol::tool::{EffectClass, Invocation, Permit, ToolOutput};
use artoo_protocol::{SubTaskId, TaskId};
use serde_json::{Value, json};

/// Pinned, so that the test is the same tomorrow.
const PACKAGE: &str = "@modelcontextprotocol/server-filesystem";
const VERSION: &str = "2026.8.31";

/// The server's script, installed if need be.
fn installed() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mcp-filesystem-{VERSION}"));
    let script = folder.join("node_modules").join(PACKAGE).join("dist/index.js");
    if script.is_file() {
        return Ok(script);
    }
    // Beside and then renamed: an installation that was cut off is no installation.
    let beside = folder.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&beside).map_err(|e| e.to_string())?;
    let npm = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--fetch-retries=0",
            "--prefix",
        ])
        .arg(&beside)
        .arg(format!("{PACKAGE}@{VERSION}"))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("npm: {e}"))?;
    if !npm.status.success() {
        return Err(format!(
            "npm could not install it: {}",
            String::from_utf8_lossy(&npm.stderr).trim()
        ));
    }
    let _ = std::fs::rename(&beside, &folder);
    if script.is_file() {
        Ok(script)
    } else {
        Err("the package holds no server".to_owned())
    }
}

async fn call(tools: &Tools, tool: &str, input: Value) -> ToolOutput {
    let invocation = Invocation {
        tool: tool.into(),
        input,
        task_id: TaskId::new("t_00000000"),
        subtask_id: SubTaskId::new("s"),
        scope: Vec::new(),
        created: Vec::new(),
    };
    let found = tools.assess(&invocation).await;
    assert_eq!(found.invalid, None);
    let permit = Permit {
        effect: found.effect,
        confirmed: true,
        seen: found.fingerprint,
    };
    tools.run(&invocation, permit).await
}

#[tokio::test]
async fn a_real_server_from_the_registry_is_listed_and_called() {
    let script = match installed() {
        Ok(script) => script,
        Err(why) => return skipping::skipped("npm", &why),
    };
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::write(root.join("note.txt"), "from the file system").unwrap();
    let server = Server {
        name: "files".into(),
        way: Way::Program {
            command: "node".into(),
            args: vec![script.display().to_string(), root.display().to_string()],
            environment: spawn::environment(std::env::vars_os()),
            cwd: root.clone(),
        },
        effect: Some(EffectClass::Read),
        tool_effects: BTreeMap::new(),
        limit: Duration::from_secs(60),
    };
    let (offered, reports) = start(vec![server], &artoo_executor::Sandbox::unchecked()).await;
    let tools = Tools::of(offered, Mask::default());
    let names = reports[0].tools.clone().unwrap();
    assert!(names.contains(&"files.write_file".to_owned()), "{names:?}");
    let path = |name: &str| root.join(name).display().to_string();
    let effect = async |tool: &str| {
        let invocation = Invocation {
            tool: tool.into(),
            input: json!({}),
            task_id: TaskId::new("t_00000000"),
            subtask_id: SubTaskId::new("s"),
            scope: Vec::new(),
            created: Vec::new(),
        };
        tools.assess(&invocation).await.effect
    };
    // The user vouched for reading; what the server says of its writing tools raises them.
    assert_eq!(effect("files.list_directory").await, EffectClass::Read);
    assert!(effect("files.write_file").await >= EffectClass::Modify);
    let read = call(&tools, "files.read_text_file", json!({"path": path("note.txt")})).await;
    assert_eq!((read.error, read.output.trim()), (None, "from the file system"));
    let written = call(
        &tools,
        "files.write_file",
        json!({"path": path("new.txt"), "content": "x"}),
    )
    .await;
    assert_eq!(written.error, None, "{}", written.output);
    assert_eq!(std::fs::read_to_string(root.join("new.txt")).unwrap(), "x");
    let outside = call(&tools, "files.read_text_file", json!({"path": "/etc/hostname"})).await;
    assert!(outside.error.is_some(), "{}", outside.output);
}
