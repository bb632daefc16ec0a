//! The crates as packages: what a registry shows of each, what is inside, and an example of how to use it alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::ROOT;
use crate::documents::resolved;

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn folder(package: &Value) -> PathBuf {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().to_owned()
}

fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

#[test]
fn every_published_crate_has_what_a_registry_shows() {
    let published: Vec<Value> = packages().into_iter().filter(is_published).collect();
    assert_eq!(published.len(), 11);
    for package in published {
        let name = package["name"].as_str().unwrap();
        for field in ["description", "license", "repository", "readme", "rust_version"] {
            assert!(
                package[field].as_str().is_some_and(|text| !text.is_empty()),
                "{name} has no {field}"
            );
        }
        for field in ["keywords", "categories"] {
            let given = package[field].as_array().unwrap();
            assert!((1..=5).contains(&given.len()), "{name} has {} {field}", given.len());
        }
        // What a package holds lies in its folder; links to what the repository has once are followed.
        for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            assert!(folder(&package).join(file).is_file(), "{name} has no {file}");
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let (on, is_dev) = (dependency["name"].as_str().unwrap(), dependency["kind"] == "dev");
            let has_version = dependency["req"] != "*";
            // A package may not need what no registry has; a dependency of its tests without a version is left out of it.
            assert!(
                has_version != (is_dev && on == "artoo-testkit"),
                "{name} depends on {on} as `{}`",
                dependency["req"]
            );
        }
    }
}

/// Sources that a program includes as text have to be in its package.
#[test]
fn no_crate_includes_what_lies_outside_its_package() {
    for package in packages().iter().filter(|package| is_published(package)) {
        let mut folders = vec![folder(package).join("src"), folder(package).join("examples")];
        while let Some(from) = folders.pop() {
            for entry in std::fs::read_dir(&from).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                // What only tests need may stay outside, as tests do.
                if path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests") {
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap();
                let parts = ["include_str!(\"", "include_bytes!(\""]
                    .map(|open| text.split(open).skip(1).map(str::to_owned).collect::<Vec<_>>());
                for included in parts.concat() {
                    let target = included.split('"').next().unwrap();
                    // Where nothing is there, a macro means the folder of whoever calls it.
                    let Ok(real) = from.join(target).canonicalize() else {
                        continue;
                    };
                    let link = resolved(&from, target);
                    assert!(
                        link.starts_with(folder(package)),
                        "{} includes {}, which no package holds",
                        path.display(),
                        real.display()
                    );
                }
            }
        }
    }
}

#[test]
fn every_library_has_an_example_that_says_how_it_is_run() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let targets = package["targets"].as_array().unwrap();
        let is_a = |target: &Value, kind: &str| target["kind"].as_array().unwrap().iter().any(|k| k == kind);
        if !targets.iter().any(|target| is_a(target, "lib")) {
            continue;
        }
        let examples: Vec<&Value> = targets.iter().filter(|target| is_a(target, "example")).collect();
        assert!(!examples.is_empty(), "{name} has no example");
        for example in examples {
            let (file, called) = (example["src_path"].as_str().unwrap(), example["name"].as_str().unwrap());
            let text = std::fs::read_to_string(file).unwrap();
            let command = format!("-p {name} --example {called}");
            let opening: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
            assert!(
                opening.contains("cargo run ") && opening.contains(&command),
                "{file} does not say `cargo run … {command}`"
            );
        }
    }
}
