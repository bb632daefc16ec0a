//! Rules of the tree that no compiler checks: who may depend on whom, what every file opens with, what is never cited.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/packages.rs"]
mod packaging;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What each library may use from outside, besides `artoo-protocol`. A new name here is a decision: say why in the manifest.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "artoo-protocol",
        &[
            "async-trait",
            "jiff",
            "serde",
            "serde_json",
            "thiserror",
            "unicode-segmentation",
            "uuid",
        ],
    ),
    (
        "artoo-bus",
        &[
            "async-trait",
            "regex",
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "uuid",
        ],
    ),
    (
        "artoo-llm",
        &[
            "async-trait",
            "backon",
            "futures-util",
            "jsonschema",
            "llm_json",
            "regex",
            "reqwest",
            "rustls",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
        ],
    ),
    (
        "artoo-perceiver",
        &["regex", "serde", "serde_json", "thiserror", "unicode-segmentation"],
    ),
    (
        "artoo-planner",
        &[
            "regex",
            "regex-syntax",
            "serde",
            "serde_json",
            "thiserror",
            "unicode-segmentation",
        ],
    ),
    (
        "artoo-executor",
        &[
            "async-trait",
            "brush-parser",
            "encoding_rs",
            "encoding_rs_io",
            "globset",
            "grep-matcher",
            "grep-regex",
            "grep-searcher",
            "html5gum",
            "ignore",
            "landlock",
            "libc",
            "percent-encoding",
            "process-wrap",
            "regex",
            "reqwest",
            "rmcp",
            "rustix",
            "rustls",
            "seccompiler",
            "serde",
            "serde_json",
            "sha2",
            "similar",
            "tempfile",
            "thiserror",
            "tokio",
        ],
    ),
    (
        "artoo-validators",
        &[
            "async-trait",
            "regex",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
        ],
    ),
    (
        "artoo-ggs",
        &[
            "cmaes",
            "lz4_flex",
            "plotters",
            "rand_xoshiro",
            "rayon",
            "serde",
            "serde_json",
            "thiserror",
        ],
    ),
    (
        "artoo-memory",
        &[
            "async-trait",
            "crc32c",
            "icu_segmenter",
            "rustix",
            "rusty-leveldb",
            "serde",
            "serde_json",
            "snap",
            "tempfile",
            "thiserror",
            "tokio",
            "uuid",
        ],
    ),
    (
        "artoo-auditor",
        &["memchr", "ring", "serde", "serde_json", "sha2", "thiserror"],
    ),
];

struct Package {
    name: String,
    /// (name, is a dev-dependency)
    dependencies: Vec<(String, bool)>,
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages: Vec<Package> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| Package {
            name: package["name"].as_str().unwrap().into(),
            dependencies: package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .map(|d| (d["name"].as_str().unwrap().into(), d["kind"] == "dev"))
                .collect(),
        })
        .collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    packages
}

#[test]
fn libraries_depend_on_the_protocol_and_on_nothing_else_of_the_workspace() {
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    for package in packages() {
        let Some(externals) = allowed.get(package.name.as_str()) else {
            assert!(
                ["artoo-cli", "artoo-testkit"].contains(&package.name.as_str()),
                "{} is not in the table",
                package.name
            );
            continue;
        };
        for (dependency, dev) in &package.dependencies {
            if *dev {
                assert!(
                    !dependency.starts_with("artoo-") || dependency == "artoo-protocol",
                    "{}'s tests need {dependency}: move them to the testkit",
                    package.name
                );
            } else {
                let fine = dependency == "artoo-protocol" || externals.contains(&dependency.as_str());
                assert!(fine, "{} may not use {dependency}", package.name);
            }
        }
    }
}

#[test]
fn the_map_in_the_architecture_page_is_up_to_date() {
    let mut graph = String::from("```mermaid\ngraph LR\n");
    for package in packages() {
        for (dependency, dev) in package.dependencies {
            if !dev && dependency.starts_with("artoo-") && package.name != "artoo-testkit" {
                writeln!(graph, "  {} --> {}", package.name, dependency).unwrap();
            }
        }
    }
    graph.push_str("```\n");
    let path = Path::new(ROOT).join("docs/architecture.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (start, end) = (
        "<!-- graph: written by UPDATE_DOCS=1 cargo test -p artoo-testkit --test tidy -->\n",
        "<!-- end of graph -->",
    );
    let (before, rest) = page.split_once(start).expect("the page has a place for the graph");
    let (stored, after) = rest.split_once(end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{start}{graph}{end}{after}")).unwrap();
    } else {
        assert_eq!(
            stored, graph,
            "docs/architecture.md is stale: run UPDATE_DOCS=1 cargo test -p artoo-testkit --test tidy"
        );
    }
}

fn tracked(suffixes: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(ROOT)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && !name.starts_with("target") && name != ".git" {
                folders.push(path);
            } else if kind.is_file() && suffixes.iter().any(|s| name.ends_with(s)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_source_file_says_what_it_is_and_can_be_read_in_one_sitting() {
    let mut complaints = String::new();
    for path in tracked(&[".rs"]) {
        let text = std::fs::read_to_string(&path).unwrap();
        if !text.starts_with("//!") {
            writeln!(complaints, "{} does not open with //!", path.display()).unwrap();
        }
        let in_src = path.components().any(|c| c.as_os_str() == "src");
        let body = text
            .lines()
            .take_while(|line| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test"))
            .count();
        if in_src && body > 400 && !path.ends_with("tests.rs") {
            writeln!(complaints, "{} has {body} lines without its tests", path.display()).unwrap();
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn the_tree_stands_on_its_own() {
    // Assembled here so that this file does not find itself.
    let outside = [
        ["../", "shared"].concat(),
        ["LESSONS", ".md"].concat(),
        ["DECISIONS", ".md"].concat(),
        ["/work", "/"].concat(),
    ];
    let mut complaints = String::new();
    for path in tracked(&[".rs", ".md", ".toml", ".json", ".jsonl", "run", "justfile"]) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            if outside.iter().any(|needle| line.contains(needle.as_str())) {
                writeln!(
                    complaints,
                    "{}:{} points outside the repository",
                    path.display(),
                    number + 1
                )
                .unwrap();
            }
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn sections_cited_in_the_code_exist() {
    let design = std::fs::read_to_string(Path::new(ROOT).join("docs/design.md")).unwrap();
    for path in tracked(&[".rs"]) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (_, after) in text.match_indices("design §").map(|(i, m)| (i, &text[i + m.len()..])) {
            let number: String = after.chars().take_while(char::is_ascii_digit).collect();
            if number.is_empty() {
                continue; // written as a pattern, as in this test
            }
            assert!(
                design.contains(&format!("## §{number} ")),
                "{} cites design §{number}, which does not exist",
                path.display()
            );
        }
    }
}

#[test]
fn every_prompt_has_the_laws_and_no_other_placeholder() {
    let prompts = Path::new(ROOT).join("prompts");
    let laws = std::fs::read_to_string(prompts.join("laws.md")).unwrap();
    for entry in std::fs::read_dir(&prompts).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("laws.md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let filled = artoo_protocol::prompt::fill(&text, &[("laws", laws.trim())])
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(filled.contains("Never deceive"), "{}", path.display());
    }
}

#[test]
fn every_test_that_the_lessons_name_exists() {
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/lessons.md")).unwrap();
    let sources: String = tracked(&[".rs"])
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let mut named = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let tests = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        for name in tests.split('`').filter(|name| name.contains('_')) {
            named += 1;
            assert!(
                sources.contains(&format!("fn {name}(")),
                "docs/lessons.md names `{name}`, which does not exist"
            );
        }
    }
    assert!(named > 50, "the page lost its table");
}
