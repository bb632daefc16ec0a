//! The documents: every link leads somewhere, every page is on the map, the glossary is in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use crate::{ROOT, tracked};

/// A page without its code: fenced blocks are left out, and what stands between backticks becomes blanks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fence: Option<String> = None;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let ticks: String = trimmed.chars().take_while(|c| *c == '`' || *c == '~').collect();
        if let Some(open) = &fence {
            if ticks.starts_with(open.as_str()) {
                fence = None;
            }
        } else if ticks.len() >= 3 {
            fence = Some(ticks);
        } else {
            lines.push((number + 1, without_code(line)));
        }
    }
    lines
}

fn without_code(line: &str) -> String {
    let mut parts = line.split('`');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    while let (Some(code), after) = (parts.next(), parts.next()) {
        // Words of a link may be code; its target never is.
        kept.push_str(&code.replace(['[', ']', '(', ')'], " "));
        kept.push_str(after.unwrap_or_default());
    }
    kept
}

/// Targets of `[words](target)` and of `[label]: target`.
fn targets(line: &str) -> Vec<String> {
    let mut found: Vec<String> = line
        .match_indices("](")
        .filter_map(|(at, _)| line[at + 2..].split(')').next())
        .map(|target| target.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    found.extend(definition(line).map(|(_, target)| target.to_owned()));
    found
}

fn definition(line: &str) -> Option<(&str, &str)> {
    let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
    Some((label, target.trim()))
}

/// The anchors of a page as GitHub makes them from its headings, and those that it names itself.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        for id in line.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            anchors.insert(id.to_owned());
        }
        let level = line.chars().take_while(|c| *c == '#').count();
        if in_code || level == 0 || !line[level..].starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let slug = line[level..].trim().to_lowercase();
        let slug: String = slug
            .chars()
            .filter(kept)
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let times = seen.entry(slug.clone()).or_default();
        anchors.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    anchors
}

/// The path that is meant, without asking the file system.
pub fn resolved(base: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in base.join(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// What is wrong with the links of one page.
fn broken_links(page: &Path, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(&line) {
            let elsewhere = ["http://", "https://", "mailto:"];
            if elsewhere.iter().any(|scheme| target.starts_with(scheme)) {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if path.is_empty() {
                page.to_owned()
            } else {
                resolved(page.parent().unwrap(), path)
            };
            let mut complain = |why: &str| complaints.push(format!("{}:{number}: {target} {why}", page.display()));
            if !file.exists() {
                complain("is not there");
            } else if !anchor.is_empty() {
                let there = if path.is_empty() {
                    text.to_owned()
                } else {
                    std::fs::read_to_string(&file).unwrap_or_default()
                };
                if !anchors(&there).contains(anchor) {
                    complain("has no such heading");
                }
            }
        }
    }
    complaints
}

fn root() -> PathBuf {
    Path::new(ROOT).canonicalize().unwrap()
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut complaints = String::new();
    let mut links = 0;
    for page in tracked(&[".md"]) {
        let page = page.canonicalize().unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        links += prose(&text).iter().map(|(_, line)| targets(line).len()).sum::<usize>();
        for complaint in broken_links(&page, &text) {
            writeln!(complaints, "{complaint}").unwrap();
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
    assert!(links > 150, "only {links} links were seen");
}

#[test]
fn a_broken_link_is_seen() {
    let page = root().join("docs/architecture.md");
    let text = "# Two words, once\n## Two words, once\n[a](design.md) [b](design.md#17-journal) [c](#two-words-once-1)\n\
                [d](nowhere.md) [e](design.md#nowhere) [f](#two-words-once-2) `[g](code.md)`\n```\n[h](code.md)\n```\n\
                [`i`](gone.md) [j](https://example.com)\n[k]: gone_too.md\n";
    let complaints = broken_links(&page, text);
    let bad = [
        "nowhere.md",
        "design.md#nowhere",
        "#two-words-once-2",
        "gone.md",
        "gone_too.md",
    ];
    assert_eq!(complaints.len(), bad.len(), "{complaints:#?}");
    for (complaint, target) in complaints.iter().zip(bad) {
        assert!(complaint.contains(&format!(" {target} ")), "{complaint}");
    }
}

#[test]
fn every_page_is_on_the_map_of_the_readme() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let linked: BTreeSet<String> = prose(&readme).iter().flat_map(|(_, line)| targets(line)).collect();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if Path::new(&name).extension().is_some_and(|end| end == "md") {
            assert!(
                linked.contains(&format!("docs/{name}")),
                "README.md does not link docs/{name}"
            );
        }
    }
}

#[test]
fn the_glossary_is_in_order_and_each_word_leads_to_the_design() {
    let text = std::fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let known: BTreeSet<&str> = text.lines().filter_map(definition).map(|(label, _)| label).collect();
    let mut before = String::new();
    let mut words = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("- ")) {
        let (term, _) = line
            .strip_prefix("- **")
            .and_then(|rest| rest.split_once("** — "))
            .unwrap_or_else(|| panic!("not of the form `- **Word** — meaning. [§N]`: {line}"));
        let key: String = term
            .to_lowercase()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        assert!(before < key, "`{term}` stands in the wrong place");
        let section = line
            .rsplit('[')
            .next()
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or_default();
        assert!(
            known.contains(section),
            "`{term}` names no section of the design: {line}"
        );
        words.extend(term.split([',', '(', ')']).map(|word| word.trim().to_lowercase()));
        before = key;
    }
    // What messages, the table of the controller and the laws are made of.
    for word in [
        "attention",
        "blocked target",
        "carried work",
        "check",
        "criterion",
        "d",
        "decay",
        "decision",
        "directive",
        "effect class",
        "envelope",
        "f",
        "gate",
        "grant",
        "journal",
        "k",
        "l",
        "macro-state",
        "megram",
        "p",
        "permit",
        "potential",
        "route",
        "sandbox",
        "tap",
        "valence",
        "verdict",
        "ε",
        "σ",
        "ω",
        "∇l",
    ] {
        assert!(words.contains(word), "the glossary lacks `{word}`");
    }
}
