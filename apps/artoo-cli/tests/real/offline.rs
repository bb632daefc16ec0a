//! The built-in model on a fresh machine: real numbers, found by real tools.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Running, Sandbox};

#[test]
fn sentences_of_the_grammar_get_the_answers_that_the_shell_confirms() {
    let sandbox = Sandbox::new();
    for (sentence, command) in [
        ("count the Rust files in src", "find src -type f -name '*.rs' | wc -l"),
        ("how many lines are in notes.txt?", "wc -l < notes.txt"),
        ("count the words in \"my notes.txt\"", "wc -w < 'my notes.txt'"),
        (
            "How many lines of Rust code are in src?",
            "find src -name '*.rs' -exec cat {} + | wc -l",
        ),
        ("how much disk space does src use?", "du -sh src | cut -f1"),
        (
            "find the 2 largest files in src",
            "find src -type f -printf '%s\\t%p\\n' | sort -rn | head -n 2",
        ),
        ("how often does \"TODO\" occur in src?", "grep -rho TODO src | wc -l"),
        ("which files contain \"TODO\" in src?", "grep -rl TODO src | sort"),
        ("find all *.rs files in src", "find src -name '*.rs' | sort"),
        ("list the files in src", "ls src"),
        ("show notes.txt", "cat notes.txt"),
    ] {
        let done = sandbox.run(&[sentence]);
        done.ended(0);
        let expected = sandbox.shell(command);
        assert_eq!(done.out.trim_end(), expected.trim(), "{sentence}: {done:#?}");
        assert!(
            done.out.ends_with('\n') && !done.out.ends_with("\n\n"),
            "{sentence}: {:?}",
            done.out
        );
        assert!(done.err.contains("accept (met)"), "{sentence}: {}", done.err);
    }
    assert_eq!(
        sandbox.run(&["-q", "count the Rust files in src"]).err.lines().count(),
        0,
        "quiet means quiet"
    );
}

#[test]
fn a_chain_hands_the_number_on_into_a_file() {
    let sandbox = Sandbox::new();
    let done = sandbox.run(&["count the Rust files in src and write the number to rust_files.txt"]);
    done.ended(0);
    let written = std::fs::read_to_string(sandbox.workspace().join("rust_files.txt")).unwrap();
    assert_eq!(
        written.trim(),
        sandbox.shell("find src -type f -name '*.rs' | wc -l").trim()
    );
    assert!(
        done.err.contains("[1]") && done.err.contains("[2]"),
        "two steps: {}",
        done.err
    );
}

#[test]
fn what_is_not_there_is_named_and_nothing_is_made_up() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["count the lines in nix.txt"])
        .refused(1, &["nix.txt", "abandon (infeasible)"]);
    sandbox.run(&["count the files in nofolder"]).refused(1, &["nofolder"]);
}

#[test]
fn a_folder_without_permission_is_no_empty_folder() {
    let sandbox = Sandbox::new();
    sandbox.file("locked/secret.txt", "x");
    let locked = sandbox.project().join("locked");
    let count = |place: &str| {
        let sentence = format!("count the files in {place}");
        let mut command = sandbox.bound_by_permissions(&[&sentence]);
        std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o000)).unwrap();
        let done = Running::start(&mut command).wait();
        std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o755)).unwrap();
        done
    };
    // A number that leaves out what could not be seen is told with what is missing, or not at all.
    for place in ["locked", "."] {
        let done = count(place);
        let told = if done.code == Some(0) { &done.out } else { &done.err };
        assert!(
            told.contains("locked") && told.contains("ermission denied"),
            "{done:#?}"
        );
        assert!(done.code == Some(0) || done.out.is_empty(), "{done:#?}");
        assert!(
            place == "." || done.code == Some(1),
            "what cannot be looked at at all is no zero: {done:#?}"
        );
    }
}

#[test]
fn a_sentence_outside_the_grammar_is_refused() {
    let sandbox = Sandbox::new();
    for sentence in [
        "write a poem about spring",
        "delete all files in src",
        "what is the capital of France?",
    ] {
        sandbox.run(&[sentence]).refused(
            3,
            &[
                "abandon (no_model)",
                "builtin:offline is no language model",
                "OPENAI_MODEL",
            ],
        );
    }
    assert!(sandbox.project().join("src/a.rs").exists());
}
