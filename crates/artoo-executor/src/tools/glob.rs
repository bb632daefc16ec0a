//! `glob`: files of a project by pattern, as git sees the project (design §8).
//!
//! Owns the meaning of patterns and roots. Must not write.

use std::path::Path;
use std::sync::Arc;

use artoo_protocol::message::FailureClass;
use artoo_protocol::ports::Tool;
use artoo_protocol::tool::{Assessment, Invocation, Permit, ToolOutput, ToolSpec};
use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::json;

use super::find_files::{Missed, listing};
use super::{Abandoned, Places, arguments, blocking, failed, invalid, reading, worker_died};

pub(super) struct Glob {
    pub places: Arc<Places>,
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    root: Option<String>,
}

#[async_trait]
impl Tool for Glob {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "glob".to_owned(),
            description: "Lists the files of a project that match a pattern, sorted. What git ignores and hidden files are left out. \
                `*.rs` matches in every folder, `src/*.rs` and `**/*.rs` from the root."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string"},
                    "root": {"type": "string", "description": "the folder to look in; the working directory without one"}
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
        }
    }

    async fn assess(&self, invocation: &Invocation) -> Assessment {
        match arguments::<Arguments>(invocation) {
            Ok(given) => {
                let root = self.places.reading(given.root.as_deref().unwrap_or("."));
                reading(
                    format!("list `{}` under {}", given.pattern, root.display()),
                    given.pattern,
                )
            }
            Err(error) => invalid(error),
        }
    }

    async fn run(&self, invocation: &Invocation, _permit: Permit) -> ToolOutput {
        let given = match arguments::<Arguments>(invocation) {
            Ok(given) => given,
            Err(error) => return failed(error, FailureClass::Logical),
        };
        let root = self.places.reading(given.root.as_deref().unwrap_or("."));
        blocking(move |abandoned| run(&root, &given.pattern, abandoned))
            .await
            .unwrap_or_else(worker_died)
    }
}

/// As in ignore files: a pattern without a slash matches names in every folder.
pub(super) fn path_matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let trimmed = pattern.trim_start_matches("./").trim_start_matches('/');
    let anchored = if trimmed.contains('/') {
        trimmed.to_owned()
    } else {
        format!("**/{trimmed}")
    };
    GlobBuilder::new(&anchored)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| format!("`{pattern}` is no pattern: {error}"))
}

fn run(root: &Path, pattern: &str, abandoned: &Abandoned) -> ToolOutput {
    if !root.is_dir() {
        return failed(
            format!("{} is not a folder", root.display()),
            FailureClass::Environmental,
        );
    }
    let trimmed = pattern.trim_start_matches("./").trim_start_matches('/');
    let matcher = match path_matcher(pattern) {
        Ok(matcher) => matcher,
        Err(error) => return failed(error, FailureClass::Logical),
    };
    let wants_hidden = trimmed.starts_with('.') || trimmed.contains("/.");
    let (mut found, mut unreadable) = (Vec::new(), 0_u64);
    for entry in WalkBuilder::new(root).hidden(!wants_hidden).follow_links(false).build() {
        if abandoned.is_set() {
            break;
        }
        let Ok(entry) = entry else {
            unreadable += 1;
            continue;
        };
        let is_file = entry.file_type().is_some_and(|kind| !kind.is_dir());
        if let Ok(relative) = entry.path().strip_prefix(root)
            && is_file
            && matcher.is_match(relative)
        {
            found.push(relative.display().to_string());
        }
    }
    found.sort_unstable();
    let what = format!("match `{pattern}` under {}", root.display());
    let missed = Missed {
        unreadable,
        ..Missed::default()
    };
    listing(found.len() as u64, found, &what, missed)
}
