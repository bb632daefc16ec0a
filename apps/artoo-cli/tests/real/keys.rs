//! Keys that artoo keeps: in a keyring, else in a file that nobody else can read; and who says what in `artoo config show`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use artoo_testkit::server::Server;
use serde_json::Value;

use crate::models::obliging;
use crate::pty::Pty;
use crate::support::{Done, Running, Sandbox};

const KEY: &str = "sk-test-abcdefghijklmnopqrstuvwxyz";

/// A folder with a `secret-tool` that keeps its secrets in a file, and otherwise what a shell script needs.
fn keyring(sandbox: &Sandbox, script: &str) -> PathBuf {
    let folder = sandbox.home().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let tool = folder.join("secret-tool");
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// What the real one does, as far as it is used: `store --label L A V A V` from standard input, `lookup`, `clear`.
const WORKING: &str = r#"#!/bin/sh
vault="$HOME/vault"
case "$1" in
store) [ "$4 $5 $6" = "service artoo account" ] && cat > "$vault.$7" ;;
lookup) [ "$2 $3 $4" = "service artoo account" ] && cat "$vault.$5" 2>/dev/null ;;
clear) rm -f "$vault.$5" ;;
esac
"#;
const NO_SERVICE: &str = "#!/bin/sh\necho 'secret-tool: Cannot autolaunch D-Bus without X11 $DISPLAY' >&2\nexit 1\n";

fn with_path(sandbox: &Sandbox, script: &str, args: &[&str]) -> Command {
    let mut command = sandbox.artoo(args);
    command.env("PATH", format!("{}:/usr/bin:/bin", keyring(sandbox, script).display()));
    command
}

fn set(sandbox: &Sandbox, script: &str, provider: &str) -> Done {
    let mut command = with_path(sandbox, script, &["models", "key", "set", provider]);
    Running::fed(&mut command, format!("{KEY}\n").into_bytes()).wait()
}

fn shown(sandbox: &Sandbox, script: &str, name: &str) -> (String, String) {
    let done = Running::start(&mut with_path(sandbox, script, &["config", "show", "--json"])).wait();
    assert!(!done.ended(0).out.contains(KEY), "{}", done.out);
    let rows = done.json();
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == name)
        .unwrap()
        .clone();
    let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
    (text("value"), text("from"))
}

/// Whether the model gets the key.
fn works_with_the_key(sandbox: &Sandbox, script: &str) -> Done {
    let server = Server::start(obliging).unwrap();
    let mut command = with_path(sandbox, script, &["config", "show"]);
    command
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_MODEL", "scripted");
    Running::start(&mut command).wait()
}

#[test]
fn a_key_goes_into_the_keyring_is_used_and_forgotten() {
    let sandbox = Sandbox::new();
    let done = set(&sandbox, WORKING, "openai");
    assert!(done.ended(0).err.contains("in the system's keyring"), "{}", done.err);
    assert_eq!(
        std::fs::read_to_string(sandbox.home().join("vault.openai")).unwrap(),
        KEY
    );
    let file = std::fs::read_to_string(sandbox.data().join("keys.toml")).unwrap();
    assert!(
        file.contains("openai = { keyring = true }") && !file.contains(KEY),
        "{file}"
    );
    let used = works_with_the_key(&sandbox, WORKING);
    assert!(
        used.ended(0).out.contains("scripted at http://127.0.0.1:") && used.out.contains("(with a key)"),
        "{}",
        used.out
    );
    let removed = Running::start(&mut with_path(&sandbox, WORKING, &["models", "key", "rm", "openai"])).wait();
    assert!(
        removed.ended(0).err.contains("no longer in the system's keyring"),
        "{}",
        removed.err
    );
    assert!(!sandbox.home().join("vault.openai").exists());
    let again = Running::start(&mut with_path(&sandbox, WORKING, &["models", "key", "rm", "openai"])).wait();
    again.refused(2, &["no key of openai is kept"]);
    assert!(works_with_the_key(&sandbox, WORKING).out.contains("(without a key)"));
}

#[test]
fn without_a_keyring_it_goes_into_a_private_file_and_that_is_said() {
    let nobody = "#!/bin/sh\nexit 1\n";
    for (script, why) in [(NO_SERVICE, "Cannot autolaunch D-Bus"), (nobody, "could not do it")] {
        let sandbox = Sandbox::new();
        let done = set(&sandbox, script, "anthropic");
        for said in [
            "there is no system keyring to use",
            why,
            "keys.toml",
            "only you can read",
        ] {
            assert!(done.ended(0).err.contains(said), "{said}: {}", done.err);
        }
        assert!(!done.err.contains(KEY), "{}", done.err);
        let path = sandbox.data().join("keys.toml");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(std::fs::read_to_string(&path).unwrap().contains(KEY));
        let named = sandbox.artoo(&["--model", "anthropic:c", "config", "show"]);
        let done = Running::start(&mut { named }).wait();
        assert!(
            done.ended(0)
                .out
                .contains("c at https://api.anthropic.com/v1 (with a key)"),
            "{}",
            done.out
        );
        assert!(!done.out.contains(KEY));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = sandbox.run(&["--model", "builtin:offline", "count the files in src"]);
        assert!(open.ended(0).err.contains("others may read"), "{}", open.err);
    }
}

#[test]
fn a_keyring_that_lost_its_key_is_named_and_the_environment_weighs_more() {
    let sandbox = Sandbox::new();
    set(&sandbox, WORKING, "anthropic").ended(0);
    let mut command = with_path(
        &sandbox,
        NO_SERVICE,
        &["--model", "anthropic:c", "count the files in src"],
    );
    Running::start(&mut command).wait().refused(
        2,
        &[
            "the key of anthropic is in the system's keyring",
            "Cannot autolaunch",
            "ANTHROPIC_API_KEY",
        ],
    );
    let mut command = with_path(&sandbox, NO_SERVICE, &["--model", "anthropic:c", "config", "show"]);
    let done = Running::start(command.env("ANTHROPIC_API_KEY", "other-key-of-the-environment")).wait();
    assert!(done.ended(0).out.contains("(with a key)"), "{}", done.out);
}

/// One that works until it is to forget: that it does as the script says.
fn forgetting(how: &str) -> String {
    WORKING.replace("clear) rm -f \"$vault.$5\" ;;", &format!("clear) {how} ;;"))
}

#[test]
fn a_key_is_called_gone_only_when_it_is() {
    for (how, why) in [
        ("exit 1", "cannot be told"),
        ("kill -9 $$", "signal"),
        ("rm -f \"$vault.$5\"; exit 3", "cannot be told"),
        ("exit 0", "still there"),
    ] {
        let sandbox = Sandbox::new();
        set(&sandbox, WORKING, "openai").ended(0);
        let script = forgetting(how);
        assert_ne!(script, WORKING);
        let removed = Running::start(&mut with_path(&sandbox, &script, &["models", "key", "rm", "openai"])).wait();
        removed.refused(1, &["may still be in the keyring", why, "keys.toml"]);
        let file = std::fs::read_to_string(sandbox.data().join("keys.toml")).unwrap();
        assert!(file.contains("openai"), "{how}: {file}");
    }
    // A lookup that dies tells nothing either.
    let sandbox = Sandbox::new();
    set(&sandbox, WORKING, "openai").ended(0);
    let script = WORKING.replace("cat \"$vault.$5\" 2>/dev/null", "kill -9 $$");
    assert_ne!(script, WORKING);
    let removed = Running::start(&mut with_path(&sandbox, &script, &["models", "key", "rm", "openai"])).wait();
    removed.refused(1, &["may still be in the keyring", "signal"]);
}

#[test]
fn an_older_key_of_the_keyring_is_told_and_one_of_the_file_never_stands_in() {
    let sandbox = Sandbox::new();
    let first = set(&sandbox, WORKING, "anthropic");
    assert!(!first.ended(0).err.contains("older key"), "{}", first.err);
    let mode = std::fs::metadata(sandbox.data()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    // The keyring cannot be had, and the user's file has a key of long ago.
    std::fs::write(
        sandbox.data().join("config.toml"),
        "[anthropic]\napi_key = \"sk-of-long-ago-0123456789\"\n",
    )
    .unwrap();
    let mut command = with_path(
        &sandbox,
        NO_SERVICE,
        &["--model", "anthropic:c", "count the files in src"],
    );
    Running::start(&mut command).wait().refused(
        2,
        &["the key of anthropic is in the system's keyring", "Cannot autolaunch"],
    );
    let second = set(&sandbox, NO_SERVICE, "anthropic");
    assert!(
        second.ended(0).err.contains("an older key of anthropic may still be"),
        "{}",
        second.err
    );
    let third = set(&sandbox, NO_SERVICE, "anthropic");
    assert!(!third.ended(0).err.contains("older key"), "{}", third.err);
}

#[test]
fn a_slip_of_the_hand_is_refused() {
    let sandbox = Sandbox::new();
    for input in ["", "\n", "two words\n", "x\ny\n"] {
        let mut command = with_path(&sandbox, WORKING, &["models", "key", "set", "openai"]);
        Running::fed(&mut command, input.into()).wait().refused(2, &["key"]);
    }
    assert!(!sandbox.data().join("keys.toml").exists());
    sandbox
        .run(&["models", "key", "set", "elsewhere"])
        .refused(2, &["openai"]);
}

#[test]
fn at_a_terminal_the_key_is_not_shown() {
    let sandbox = Sandbox::new();
    let Some(mut pty) = Pty::start(&with_path(&sandbox, WORKING, &["models", "key", "set", "gemini"])) else {
        return;
    };
    pty.expect("key of gemini (not shown): ");
    pty.send(&format!("{KEY}\n"));
    pty.expect("in the system's keyring");
    assert_eq!(pty.wait(), Some(0));
    assert_eq!(
        std::fs::read_to_string(sandbox.home().join("vault.gemini")).unwrap(),
        KEY
    );
    let Some(mut pty) = Pty::start(&with_path(&sandbox, WORKING, &["models", "key", "set", "openai"])) else {
        return;
    };
    pty.expect("(not shown): ");
    pty.send("sk-half\u{3}");
    assert_eq!(pty.wait(), Some(130));
    assert!(!sandbox.home().join("vault.openai").exists());
}

#[test]
fn every_setting_names_who_said_it() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.data()).unwrap();
    std::fs::write(
        sandbox.data().join("config.toml"),
        format!("[openai]\napi_key = \"{KEY}\"\nmodel = \"m\"\n"),
    )
    .unwrap();
    assert_eq!(
        shown(&sandbox, WORKING, "key (openai)"),
        ("set (not shown)".into(), "config.toml".into())
    );
    assert_eq!(shown(&sandbox, WORKING, "traces"), ("off".into(), "default".into()));
    let text = sandbox.run(&["config", "show", "--max-tokens", "5"]);
    assert!(
        text.ended(0).out.contains("max_tokens           5  [command line]"),
        "{}",
        text.out
    );
    let path = sandbox.run(&["config", "path"]);
    assert_eq!(
        path.ended(0).out.trim(),
        sandbox.data().join("config.toml").display().to_string()
    );
    let listed: Value = sandbox.run(&["config", "show", "--json"]).json();
    assert!(listed.as_array().is_some_and(|rows| rows.len() > 10));
}
