//! `AGENTS.md`: standing instructions of the working folder, read before a task and shown to the person (design §6, docs/safety.md).
//!
//! Owns which file is taken and what the person is told of it. What it is worth is said by [`artoo_planner::Standing`]; here nothing
//! is read out of it.

use std::io::ErrorKind;
use std::path::Path;

use artoo_executor::Mask;
use artoo_planner::Standing;
use artoo_protocol::text::printable;

use crate::{output, plain_file};

/// The file's name.
const NAME: &str = "AGENTS.md";
/// Longest text, in bytes; every plan is made with it in sight.
const BYTES_MAX: u64 = 32 << 10;

/// How much the person wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Nothing.
    Nothing,
    /// That there is one.
    ThatItIs,
    /// All of it.
    All,
}

/// The folder's instructions, if it has any that can be used; the person is told which, or why not. Secrets in them are masked like those
/// in a tool's output, for a repository may have brought the file.
pub fn of_folder(cwd: &Path, telling: Telling) -> Option<Standing> {
    let mask = Mask::of_environment(&std::env::vars_os().collect::<Vec<_>>());
    match read(cwd, &mask) {
        Ok(found) => {
            if let Some(standing) = &found {
                tell(standing, telling);
            }
            found
        }
        Err(why) => {
            // Also where nothing else is told: the person counts on it.
            output::note(&format!("artoo: {NAME} is not followed: {why}"));
            None
        }
    }
}

fn tell(standing: &Standing, telling: Telling) {
    if telling == Telling::Nothing {
        return;
    }
    let bytes = standing.text.len();
    output::note(&format!(
        "artoo: {NAME} of this folder ({bytes} bytes) guides the plan; it permits nothing"
    ));
    if telling == Telling::All {
        for line in standing.text.lines() {
            output::note(&format!("  | {}", printable(line)));
        }
    }
}

/// The file's text; `None` where there is no such file, or nothing in it.
///
/// # Errors
/// In words that follow a colon, when there is one that cannot be used.
fn read(cwd: &Path, mask: &Mask) -> Result<Option<Standing>, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let named = cwd.join(NAME);
    let is_link = match std::fs::symlink_metadata(&named) {
        Ok(found) => found.is_symlink(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let folder = std::fs::canonicalize(cwd).map_err(unreadable)?;
    let path = std::fs::canonicalize(&named).map_err(unreadable)?;
    if !path.starts_with(&folder) {
        return Err("it is a link to a place outside of the folder".to_owned());
    }
    if is_link && !is_document(&path) {
        return Err("it is a link to a file that is no `.md`, such as one with keys".to_owned());
    }
    let text = plain_file::resolved_text(&path, BYTES_MAX).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => format!("{error}; keep what matters for every task, and name other files in it"),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => error.to_string(),
        _ => unreadable(error),
    })?;
    let text = mask.text(&text);
    Ok((!text.trim().is_empty()).then(|| Standing {
        name: NAME.to_owned(),
        text,
    }))
}

/// Whether somebody made it to be read: `.env.md` and `.env` are not.
fn is_document(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn found(cwd: &Path) -> Result<Option<Standing>, String> {
        read(cwd, &Mask::default())
    }

    #[test]
    fn a_plain_file_or_a_link_within_the_folder_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(found(folder.path()), Ok(None));
        assert_eq!(found(&folder.path().join("gone")), Ok(None));
        std::fs::write(folder.path().join(NAME), " \n").unwrap();
        assert_eq!(found(folder.path()), Ok(None));
        std::fs::write(folder.path().join(NAME), "Use yarn.\n").unwrap();
        assert_eq!(found(folder.path()).unwrap().unwrap().text, "Use yarn.\n");
        std::fs::remove_file(folder.path().join(NAME)).unwrap();
        std::fs::write(folder.path().join("CLAUDE.md"), "Use cargo.\n").unwrap();
        symlink("CLAUDE.md", folder.path().join(NAME)).unwrap();
        assert_eq!(found(folder.path()).unwrap().unwrap().text, "Use cargo.\n");
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        let with = |make: &dyn Fn(&Path)| {
            let folder = tempfile::tempdir().unwrap();
            make(&folder.path().join(NAME));
            found(folder.path()).unwrap_err()
        };
        let longest = usize::try_from(BYTES_MAX).unwrap();
        let whole = "x".repeat(longest);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAME), &whole).unwrap();
        assert_eq!(found(folder.path()).unwrap().unwrap().text.len(), longest);
        assert!(with(&|path| std::fs::write(path, format!("{whole}x")).unwrap()).contains("more than 32768 bytes"));
        assert!(with(&|path| std::fs::write(path, [0xff, 0xfe]).unwrap()).contains("UTF-8"));
        assert!(with(&|path| std::fs::create_dir(path).unwrap()).contains("no file"));
        assert!(with(&|path| symlink("/etc/hostname", path).unwrap()).contains("outside"));
        assert!(with(&|path| symlink("nowhere", path).unwrap()).contains("cannot be read"));
        for name in [".env", "key.txt", ".hidden.md"] {
            let to = |path: &Path| {
                std::fs::write(path.with_file_name(name), "TOKEN=x").unwrap();
                symlink(name, path).unwrap();
            };
            assert!(with(&to).contains("no `.md`"), "{name}");
        }
        let pipe = |path: &Path| {
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        };
        assert!(with(&pipe).contains("no file"));
    }

    #[test]
    fn secrets_in_it_are_masked() {
        let folder = tempfile::tempdir().unwrap();
        let text = "Log in with abcdefgh1234.\nOPENAI_API_KEY=of-no-known-shape-0123\n";
        std::fs::write(folder.path().join(NAME), text).unwrap();
        let mask = Mask::of_environment(&[("MY_TOKEN".into(), "abcdefgh1234".into())]);
        let standing = read(folder.path(), &mask).unwrap().unwrap();
        assert_eq!(
            standing.text,
            "Log in with [masked: MY_TOKEN].\nOPENAI_API_KEY=[masked key]\n"
        );
    }
}
