//! The tools of macOS, against stand-ins on PATH that record what they were asked.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use artoo_protocol::tool::EffectClass;
use serde_json::json;

use super::tests::World;
use super::*;

#[tokio::test]
async fn macos_tools_run_what_they_show() {
    let world = World::new();
    let bin = world.root.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for program in ["mdfind", "osascript", "shortcuts"] {
        fs::write(bin.join(program), "#!/bin/sh\nprintf '%s|' \"${0##*/}\" \"$@\"\n").unwrap();
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let settings = ToolSettings {
        places: Places {
            home: world.root.join("home"),
            cwd: world.root.join("cwd"),
            workspace: world.root.join("work"),
            own: None,
        },
        environment: vec![("PATH".into(), path.into())],
        command_limit: Duration::from_secs(20),
        web: None,
        undo: None,
        sandbox: crate::Sandbox::unchecked(),
        grants: Vec::new(),
    };
    let tools = Tools::of(
        mac::tools(&Arc::new(settings.places.clone()), &settings),
        Mask::default(),
    );
    let home = world.root.join("home").display().to_string();
    for (tool, input, effect, expect) in [
        (
            "mdfind",
            json!({"query": "kind:pdf o'neil"}),
            EffectClass::Read,
            "mdfind|kind:pdf o'neil|".to_owned(),
        ),
        (
            "mdfind",
            json!({"query": "x", "under": "~"}),
            EffectClass::Read,
            format!("mdfind|-onlyin|{home}|x|"),
        ),
        (
            "applescript",
            json!({"script": "tell app \"Finder\"\ndelete x\nend"}),
            EffectClass::External,
            "osascript|-e|tell app \"Finder\"\ndelete x\nend|".to_owned(),
        ),
        ("shortcuts", json!({}), EffectClass::Read, "shortcuts|list|".to_owned()),
        (
            "shortcuts",
            json!({"run": "Send $(it)"}),
            EffectClass::External,
            "shortcuts|run|Send $(it)|".to_owned(),
        ),
    ] {
        let invocation = world.invocation(tool, input.clone());
        let found = tools.assess(&invocation).await;
        assert_eq!((found.invalid, found.effect), (None, effect), "{tool} {input}");
        let out = tools
            .run(
                &invocation,
                Permit {
                    effect,
                    confirmed: effect > EffectClass::Fetch,
                    seen: 0,
                },
            )
            .await;
        assert_eq!(out.output, expect);
    }
    for (tool, input) in [
        ("mdfind", json!({"query": "-delete"})),
        ("shortcuts", json!({"run": "-x"})),
    ] {
        assert!(
            tools
                .assess(&world.invocation(tool, input.clone()))
                .await
                .invalid
                .is_some(),
            "{tool} {input}"
        );
    }
    let unconfirmed = Permit {
        effect: EffectClass::Read,
        confirmed: false,
        seen: 0,
    };
    let out = tools
        .run(&world.invocation("applescript", json!({"script": "x"})), unconfirmed)
        .await;
    assert!(out.error.is_some() && out.output.is_empty());
}
