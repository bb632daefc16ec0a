//! Commands and servers that behave badly, each with a clear result and nothing left (design §8, §9).

use std::collections::BTreeMap;

use artoo_executor::mcp::{Server, Way, start};
use artoo_executor::{Grant, Mask, Places, ToolSettings, Tools};
use artoo_protocol::message::MustNot;
use artoo_protocol::ports::Toolbox;
use artoo_protocol::tool::{EffectClass, Permit};
use serde_json::json;

use super::*;
use crate::corpus::invocation;

#[tokio::test]
async fn a_command_that_closes_its_output_is_waited_for_and_its_status_told() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    let ended = output(
        &sandbox,
        &base,
        "echo early; exec >&- 2>&-; sleep 0.3; exit 5",
        Confinement::Read,
    )
    .await;
    assert_eq!(
        (ended.stdout.text.as_str(), ended.exit, ended.timed_out),
        ("early\n", Some(5), false)
    );
}

#[tokio::test]
async fn a_command_has_no_terminal_to_hold() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    for command in [
        "exec < /dev/tty",
        "stty -a",
        "read -r answer",
        "test -t 0 || test -t 1 || test -t 2",
    ] {
        for confinement in [Confinement::Read, Confinement::Allowed] {
            let ended = output(&sandbox, &base, command, confinement).await;
            assert!(ended.exit != Some(0) && !ended.timed_out, "{command}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_the_commands_own_error() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    let ended = output(
        &sandbox,
        &base,
        "echo x > /dev/full; echo \"status $?\"",
        Confinement::Read,
    )
    .await;
    assert_eq!(ended.stdout.text, "status 1\n", "{ended:?}");
    assert!(ended.stderr.text.contains("No space left"), "{ended:?}");
}

#[tokio::test]
async fn bubblewrap_stands_in_for_reads_and_lets_no_write_through() {
    let sandbox = Sandbox::with_landlock_at_most(helper(), 0);
    let words = match sandbox.in_force() {
        Ok(words) => words.to_owned(),
        Err(why) => return skipped("bubblewrap", why),
    };
    assert!(words.contains("bubblewrap") && sandbox.absent().is_none(), "{words}");
    assert!(
        sandbox
            .absent_for_writes()
            .is_some_and(|why| why.contains("bubblewrap"))
    );
    let (_root, base) = world();
    let looked = output(
        &sandbox,
        &base,
        "wc -l < a.txt; echo y > $TMPDIR/y && cat $TMPDIR/y; echo > /dev/null",
        Confinement::Read,
    )
    .await;
    assert_eq!(
        (looked.stdout.text.as_str(), looked.exit),
        ("2\ny\n", Some(0)),
        "{looked:?}"
    );
    let place = Writable {
        path: base.join("work"),
        allows: Allows::Changing,
    };
    let before = snapshot(&base);
    let ended = output(&sandbox, &base, "echo x > work/new", Confinement::Write(vec![place])).await;
    assert_ne!(ended.exit, Some(0), "what comes here without a yes only reads");
    let ended = output(
        &sandbox,
        &base,
        "sleep 50.21 & setsid sleep 50.21 & echo begun",
        Confinement::Read,
    )
    .await;
    assert_eq!(
        (ended.stdout.text.as_str(), running("50.21")),
        ("begun\n", 0),
        "{ended:?}"
    );
    assert_eq!(snapshot(&base), before);
}

fn tools(base: &Path, sandbox: Sandbox, grants: &[&str]) -> Tools {
    Tools::built_in(&ToolSettings {
        places: Places {
            home: base.join("home"),
            cwd: base.to_owned(),
            workspace: base.join("work"),
            own: Some(base.join("home/.artoo")),
        },
        // What lies in `bin` is found before what the system has.
        environment: vec![("PATH".into(), format!("{}/bin:/usr/bin:/bin", base.display()).into())],
        command_limit: Duration::from_secs(20),
        web: None,
        undo: None,
        sandbox,
        grants: grants.iter().map(|grant| Grant::parse(grant).unwrap()).collect(),
    })
}

#[tokio::test]
async fn with_bubblewrap_a_command_that_writes_is_asked_about_and_one_that_reads_is_not() {
    let sandbox = Sandbox::with_landlock_at_most(helper(), 0);
    if let Err(why) = sandbox.in_force() {
        return skipped("bubblewrap", why);
    }
    let (_root, base) = world();
    let tools = tools(&base, sandbox, &[]);
    let free = |found: artoo_protocol::tool::Assessment| artoo_executor::gate::is_free(found.effect, found.reach);
    assert!(free(tools.assess(&invocation("cat a.txt")).await));
    assert!(!free(tools.assess(&invocation("echo x > work/new")).await));
}

/// A grant that names a path is leave to write that path: what the classifier misread beside it stays impossible. Here it
/// is misled by a program that is called `cat` and is none.
#[tokio::test]
async fn a_command_that_is_granted_by_its_paths_writes_those_and_nothing_else() {
    let Some(sandbox) = sandbox() else { return };
    for (grant, held) in [("modify:PATH", true), ("modify:cat *", false)] {
        let (_root, base) = world();
        let cat = base.join("bin/cat");
        std::fs::create_dir(base.join("bin")).unwrap();
        std::fs::write(&cat, "#!/bin/sh\necho new\necho x > work/old.txt\n").unwrap();
        std::fs::set_permissions(&cat, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = base.join("a.txt");
        let grant = grant.replace("PATH", &path.display().to_string());
        let tools = tools(&base, sandbox.clone(), &[&grant]);
        let permit = Permit {
            effect: EffectClass::Modify,
            confirmed: true,
            seen: 0,
        };
        let done = tools.run(&invocation("cat x > a.txt"), permit).await;
        assert_eq!(done.error, None, "{done:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n", "{grant}: {done:?}");
        let other = std::fs::read_to_string(base.join("work/old.txt")).unwrap();
        assert_eq!(other == "old\n", held, "{grant}: {done:?}");
    }
}

/// What a grant by paths opens is tried by a `cat` that is none: it writes wherever it can.
#[tokio::test]
async fn a_grant_by_paths_opens_no_folder_above_what_was_granted() {
    let Some(sandbox) = sandbox() else { return };
    let cases: [(&str, &str, &[&str], Option<&str>); 6] = [
        (
            "cat > home/new.txt",
            "create:BASE/home/new.txt",
            &["home/new.txt"],
            None,
        ),
        (
            "cat > home/a/b/new.txt",
            "create:BASE/home/a/b/new.txt",
            &[],
            Some("is not there"),
        ),
        ("cat x | mkdir docs/sub", "create:BASE/docs/*", &["docs/sub"], None),
        (
            "cat x | mkdir -p docs/a/b",
            "create:BASE/docs/*",
            &[],
            Some("is not there"),
        ),
        (
            "cat x | mkdir home/sub",
            "create:BASE/home/*",
            &[],
            Some("own records are below"),
        ),
        ("cat > home/.artoo/config.toml", "create:BASE/*", &[], None),
    ];
    for (command, grant, done, says) in cases {
        let (_root, base) = world();
        for folder in ["bin", "home", "home/.artoo", "docs"] {
            std::fs::create_dir(base.join(folder)).unwrap();
        }
        let cat = base.join("bin/cat");
        let tries =
            "echo x > home/other; echo x > docs/other; echo x > other; echo x > work/other; echo x > home/.artoo/other";
        std::fs::write(&cat, format!("#!/bin/bash\n{{ {tries}; }} 2>/dev/null\necho x\n")).unwrap();
        std::fs::set_permissions(&cat, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let tools = tools(
            &base,
            sandbox.clone(),
            &[&grant.replace("BASE", &base.display().to_string())],
        );
        let found = tools.assess(&invocation(command)).await;
        let given = Grant::parse(&grant.replace("BASE", &base.display().to_string())).unwrap();
        let decided = artoo_executor::gate::decide(
            "shell",
            command,
            &found,
            &MustNot::default(),
            &artoo_protocol::places::Places::default(),
            &[given],
            &artoo_executor::gate::Answers::default(),
        );
        let artoo_executor::gate::Decision::Run(permit) = decided else {
            assert!(command.contains(".artoo"), "{command}: {decided:?}");
            continue;
        };
        let ran = tools.run(&invocation(command), permit).await;
        let error = ran.error.clone().unwrap_or_default();
        assert_eq!(says.is_some(), ran.error.is_some(), "{command}: {ran:?}");
        assert!(error.contains(says.unwrap_or_default()), "{command}: {ran:?}");
        for path in ["home/new.txt", "docs/sub", "home/a", "docs/a", "home/sub"] {
            assert_eq!(
                base.join(path).exists(),
                done.contains(&path),
                "{command}: {path} {ran:?}"
            );
        }
        for path in ["home/other", "docs/other", "other", "work/other", "home/.artoo/other"] {
            assert!(!base.join(path).exists(), "{command}: {path}");
        }
    }
}

/// The file that a grant opens is made before the command begins; what the command then does with it, and whether it says that all
/// went well, decides whether it is there in the end, and its mode is that of any new file.
#[tokio::test]
async fn a_file_made_for_a_command_stays_when_it_was_used_or_all_went_well_and_the_command_redirects_into_it() {
    use std::os::unix::fs::PermissionsExt;
    let Some(sandbox) = sandbox() else { return };
    for (command, exit, left) in [
        ("false && echo x > new.txt", 1, None),
        ("[ -e other.txt ] && echo x > new.txt; true", 0, Some("")),
        ("cat empty.txt >> new.txt", 0, Some("")),
        ("cat empty.txt | tee -a new.txt", 0, Some("")),
        ("cat empty.txt >> new.txt; false", 1, None),
        ("[ -e new.txt ] || echo x > new.txt", 0, Some("")),
        ("echo x > new.txt; false", 1, Some("x\n")),
        ("cat missing > new.txt", 1, Some("")),
        (": > new.txt", 0, Some("")),
        ("touch new.txt", 0, Some("")),
        ("echo x >> new.txt", 0, Some("x\n")),
        ("echo x | tee new.txt", 0, Some("x\n")),
    ] {
        let (_root, base) = world();
        let path = base.join("new.txt");
        std::fs::write(base.join("empty.txt"), "").unwrap();
        let tools = tools(&base, sandbox.clone(), &[&format!("create:{}", path.display())]);
        let found = tools.assess(&invocation(command)).await;
        let permit = Permit {
            effect: EffectClass::Create,
            confirmed: true,
            seen: found.fingerprint,
        };
        let ran = tools.run(&invocation(command), permit).await;
        assert_eq!(ran.exit, Some(exit), "{command}: {ran:?}");
        assert_eq!(
            std::fs::read_to_string(&path).ok().as_deref(),
            left,
            "{command}: {ran:?}"
        );
        assert_eq!(ran.touched.len(), usize::from(left.is_some()), "{command}: {ran:?}");
        if left.is_some() {
            std::fs::write(base.join("mine"), "").unwrap();
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
            assert_eq!(mode(&path), mode(&base.join("mine")), "{command}");
        }
    }
}

/// A server that answers `initialize` and `tools/list`, and starts children that get out of its session first.
const SERVER: &str = r#"
setsid sleep 50.31 &
(setsid sh -c 'trap "" TERM HUP; sleep 50.31; true' &)
sleep 50.31 &
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"script","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"method":"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"heard"}]}}\n' "$id" ;;
  esac
done
"#;

#[tokio::test]
async fn what_an_mcp_server_started_does_not_outlive_it() {
    let Some(sandbox) = sandbox() else { return };
    let (_root, base) = world();
    std::fs::write(base.join("server.sh"), SERVER).unwrap();
    let server = Server {
        name: "odd".into(),
        way: Way::Program {
            command: "/bin/sh".into(),
            args: vec![base.join("server.sh").display().to_string()],
            environment: environment(std::env::vars_os()),
            cwd: base.clone(),
        },
        effect: None,
        tool_effects: BTreeMap::new(),
        limit: Duration::from_secs(20),
    };
    let (offered, reports) = start(vec![server], &sandbox).await;
    assert_eq!(reports[0].tools, Ok(vec!["odd.echo".to_owned()]), "{reports:?}");
    let tools = Tools::of(offered, Mask::default());
    let mut call = invocation("");
    call.tool = "odd.echo".into();
    call.input = json!({});
    let permit = Permit {
        effect: EffectClass::External,
        confirmed: true,
        seen: tools.assess(&call).await.fingerprint,
    };
    assert_eq!(tools.run(&call, permit).await.output, "heard\n");
    assert_eq!(running("50.31"), 3);
    drop(tools);
    assert!(gone("50.31").await, "they live on");
}
