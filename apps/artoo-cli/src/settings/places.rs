//! Variables and paths as a person writes them (design §20).
//!
//! Owns how they are read: what is blank counts as unset, `~` is the home folder, relative paths have a base.

use std::path::{Path, PathBuf};

use super::Environment;
use crate::args::Options;
use crate::failure::Failure;

pub(super) fn env_value(env: &Environment, name: &str) -> Option<String> {
    env.get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty())
}

pub(super) fn current_dir(options: &Options) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()
        .map_err(|e| Failure::usage(format!("the working directory cannot be read: {e}")).hint("name one with --cwd"));
    let Some(named) = &options.cwd else { return here };
    let path = if named.is_absolute() {
        named.clone()
    } else {
        here?.join(named)
    };
    std::fs::canonicalize(&path)
        .ok()
        .filter(|p| p.is_dir())
        .ok_or_else(|| Failure::usage(format!("--cwd {} is no folder", path.display())))
}

pub(super) fn home(env: &Environment) -> Result<PathBuf, Failure> {
    match env_value(env, "HOME").map(PathBuf::from) {
        Some(home) if home.is_absolute() => Ok(home),
        Some(home) => Err(Failure::usage(format!(
            "HOME is `{}`, which is not an absolute path",
            home.display()
        ))),
        None => Err(Failure::usage("there is no home folder (HOME is not set)")),
    }
}

pub(super) fn absolute(path: &Path, base: &Path, env: &Environment) -> Result<PathBuf, Failure> {
    if let Ok(rest) = path.strip_prefix("~") {
        return Ok(home(env)?.join(rest));
    }
    std::path::absolute(base.join(path))
        .map_err(|e| Failure::usage(format!("`{}` is not a usable path: {e}", path.display())))
}
