//! Keys that artoo was given to keep: in the system's keyring, else in `keys.toml` of the data folder, mode 0600 (docs/models.md).
//!
//! Owns that file, which also says what the keyring holds: a keyring is only asked for a key that was put there, so that nobody who
//! never used it waits for it or has to unlock it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::keyring;
use crate::failure::Failure;

/// Longest file and longest key, in bytes.
const FILE_MAX: u64 = 64 << 10;
const KEY_MAX: usize = 4096;

/// Where a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the system's keyring.
    Keyring,
    /// In the file itself.
    File,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    keyring: bool,
    /// Named so that whatever masks secrets knows it.
    #[serde(default)]
    api_key: Option<String>,
}

/// Keys to mask, which are never printed.
#[derive(Clone, Default)]
pub struct KeptKeys(Vec<String>);

impl KeptKeys {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl std::fmt::Debug for KeptKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

/// Every key that was given to keep, by the provider's name. Those of the keyring are looked up when they are needed.
#[derive(Default)]
pub struct Stored {
    entries: BTreeMap<String, Entry>,
    /// What the keyring answered.
    found: RefCell<BTreeMap<String, Result<String, String>>>,
}

impl Stored {
    /// What the data folder says.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) when the file is there and cannot be used.
    pub fn read(data: &Path) -> Result<Self, Failure> {
        let path = file(data);
        let Some(text) = super::file::text_of(&path, FILE_MAX)? else {
            return Ok(Self::default());
        };
        let entries: Option<BTreeMap<String, Entry>> = toml::from_str(&text).ok();
        // Each key is in exactly one place.
        let clear = |all: &BTreeMap<_, Entry>| all.values().all(|entry| entry.keyring != entry.api_key.is_some());
        let entries = entries.filter(clear).ok_or_else(|| {
            // What it says may be a key, so nothing of it is repeated.
            Failure::usage(format!("{} is not valid", path.display()))
                .hint("remove it and keep the keys again with: artoo models key set PROVIDER")
        })?;
        Ok(Self {
            entries,
            found: RefCell::default(),
        })
    }

    /// Where a provider's key is kept, if it is.
    pub fn place(&self, provider: &str) -> Option<Kept> {
        let entry = self.entries.get(provider)?;
        Some(if entry.keyring { Kept::Keyring } else { Kept::File })
    }

    /// A provider's key, where it is kept and can be had.
    pub fn key(&self, provider: &str) -> Option<String> {
        let entry = self.entries.get(provider)?;
        if !entry.keyring {
            return entry.api_key.clone();
        }
        let mut found = self.found.borrow_mut();
        let answer = found
            .entry(provider.to_owned())
            .or_insert_with(|| match keyring::find(provider) {
                Ok(Some(key)) => Ok(key),
                Ok(None) => Err("it is not there any more".to_owned()),
                Err(why) => Err(why),
            });
        answer.clone().ok()
    }

    /// Why a key that the keyring is to hold could not be had.
    pub fn problem(&self, provider: &str) -> Option<String> {
        self.found.borrow().get(provider)?.as_ref().err().cloned()
    }
}

impl Stored {
    /// Every key that is known without asking the keyring again.
    pub fn known(&self) -> KeptKeys {
        let found = self.found.borrow();
        let of_the_keyring = found.values().filter_map(|answer| answer.as_ref().ok());
        let of_the_file = self.entries.values().filter_map(|entry| entry.api_key.as_ref());
        KeptKeys(of_the_file.chain(of_the_keyring).cloned().collect())
    }
}

/// Where the file is.
pub fn file(data: &Path) -> PathBuf {
    data.join("keys.toml")
}

/// Where a key was put.
#[derive(Debug, PartialEq, Eq)]
pub enum Put {
    /// Into the keyring.
    Keyring,
    /// Into the file.
    File {
        /// Why not into the keyring.
        why: String,
        /// Whether the keyring held an older one, and may still.
        older_remains: bool,
    },
}

/// Keeps a key: in the keyring if there is one that works, else in the file.
///
/// # Errors
/// [`Failure`] for a text that is no key, and when neither place takes it.
pub fn keep(data: &Path, provider: &str, key: &str) -> Result<Put, Failure> {
    check(key)?;
    let mut stored = Stored::read(data)?;
    let older_remains = stored.place(provider) == Some(Kept::Keyring);
    let kept = keyring::keep(provider, key);
    let entry = Entry {
        keyring: kept.is_ok(),
        api_key: kept.is_err().then(|| key.to_owned()),
    };
    stored.entries.insert(provider.to_owned(), entry);
    stored.write(data)?;
    Ok(match kept {
        Ok(()) => Put::Keyring,
        Err(why) => Put::File { why, older_remains },
    })
}

/// Forgets a key; tells where it was.
///
/// # Errors
/// [`Failure`] when it cannot be removed from where it is.
pub fn forget(data: &Path, provider: &str) -> Result<Option<Kept>, Failure> {
    let mut stored = Stored::read(data)?;
    let Some(place) = stored.place(provider) else {
        return Ok(None);
    };
    if place == Kept::Keyring {
        keyring::forget(provider).map_err(|why| {
            Failure::failed(format!("the key of {provider} may still be in the keyring: {why}")).hint(format!(
                "unlock the keyring and say it again; or remove the entry `artoo` there and the line of {provider} in {} by hand",
                file(data).display()
            ))
        })?;
    }
    stored.entries.remove(provider);
    stored.write(data)?;
    Ok(Some(place))
}

/// Refuses what no provider gives out: it would be a slip of the hand, and could not be sent.
fn check(key: &str) -> Result<(), Failure> {
    if key.is_empty() {
        return Err(Failure::usage("there is no key: the input is empty"));
    }
    if key.len() > KEY_MAX || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Failure::usage(format!(
            "that is no key: one is a single word of at most {KEY_MAX} ASCII characters"
        )));
    }
    Ok(())
}

impl Stored {
    fn write(&self, data: &Path) -> Result<(), Failure> {
        let path = file(data);
        let mut text = String::from("# Written by `artoo models key`; nobody else may read it.\n");
        for (provider, entry) in &self.entries {
            // JSON's way of writing such a word is TOML's as well.
            let value = match &entry.api_key {
                Some(key) if !entry.keyring => format!("api_key = {}", serde_json::Value::from(key.as_str())),
                Some(_) | None => "keyring = true".to_owned(),
            };
            let _ = writeln!(text, "{provider} = {{ {value} }}");
        }
        let unwritable = |error: std::io::Error| Failure::unwritable(&path, &error);
        crate::data_folder::make_private(data)?;
        // Whole or not at all, and never readable by others, not even for a moment.
        let beside = data.join(".keys.toml.new");
        let _ = std::fs::remove_file(&beside);
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)
            .map_err(unwritable)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&beside, &path))
            .map_err(unwritable)
    }
}

/// What to say when others may read the file.
pub fn too_open(data: &Path) -> Option<String> {
    let path = file(data);
    let mode = std::fs::metadata(&path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| format!("others may read {0}: chmod 600 {0}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> (tempfile::TempDir, Result<Stored, Failure>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(file(folder.path()), text).unwrap();
        let stored = Stored::read(folder.path());
        (folder, stored)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut stored = Stored::default();
        let key = r#"sk-"\odd"#;
        check(key).unwrap();
        let entry = |keyring, key: Option<&str>| Entry {
            keyring,
            api_key: key.map(str::to_owned),
        };
        stored.entries.insert("gemini".into(), entry(false, Some(key)));
        stored.entries.insert("openai".into(), entry(true, None));
        stored.write(folder.path()).unwrap();
        stored.write(folder.path()).unwrap();
        let again = Stored::read(folder.path()).unwrap();
        assert_eq!(again.key("gemini").as_deref(), Some(key));
        assert_eq!(again.place("gemini"), Some(Kept::File));
        assert_eq!(again.place("openai"), Some(Kept::Keyring));
        assert_eq!((again.place("anthropic"), again.key("anthropic")), (None, None));
        assert_eq!(too_open(folder.path()), None);
        std::fs::set_permissions(file(folder.path()), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(too_open(folder.path()).unwrap().contains("chmod 600"));
    }

    #[test]
    fn a_damaged_file_is_told_without_its_text() {
        for text in [
            "openai = \"sk-hush\"",
            "openai = { api_key = \"sk-hush\", other = 1 }",
            "openai = { api_key = \"sk-hush\", keyring = true }",
            "openai = {}",
            "openai = { api_key = ",
        ] {
            let failure = kept(text).1.err().expect(text);
            let said = format!("{failure:?}");
            assert!(
                failure.code == 2 && said.contains("keys.toml") && !said.contains("hush"),
                "{said}"
            );
        }
    }

    #[test]
    fn the_folder_is_private_and_what_masks_secrets_knows_the_keys() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("new/data");
        let key = "of-no-known-shape-0123456789";
        let mut stored = Stored::default();
        let entry = Entry {
            keyring: false,
            api_key: Some(key.to_owned()),
        };
        stored.entries.insert("openai".into(), entry);
        stored.write(&data).unwrap();
        assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
        let text = std::fs::read_to_string(file(&data)).unwrap();
        let masked = artoo_executor::Mask::default().text(&text);
        assert!(text.contains(key) && !masked.contains(key), "{masked}");
        assert_eq!(stored.known().iter().collect::<Vec<_>>(), [key]);
        assert!(!format!("{:?}", stored.known()).contains(key));
    }

    #[test]
    fn a_slip_of_the_hand_is_no_key() {
        for text in ["", "two words", "ключ", "line\nbreak", &"k".repeat(KEY_MAX + 1)] {
            assert_eq!(check(text).unwrap_err().code, 2, "{text:?}");
        }
    }
}
