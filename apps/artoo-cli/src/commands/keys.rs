//! `artoo models key`: keys that artoo keeps for a person (docs/models.md).
//!
//! Owns how a key is taken from a person; where it goes is [`stored`]'s.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::args::{KeyCommand, ModelsCommand};
use crate::failure::Failure;
use crate::output;
use crate::settings::stored::{self, Kept, Put};

/// Longest input; no key is so long.
const INPUT_MAX: u64 = 8 << 10;
/// What Ctrl+C types where it is no signal.
const CTRL_C: u8 = 3;

/// Keeps a key or forgets it.
///
/// # Errors
/// [`Failure`] for an input that is no key, or when no place takes it or gives it up.
pub fn run(command: &ModelsCommand, data: &Path) -> Result<(), Failure> {
    let ModelsCommand::Key(command) = command;
    match command {
        KeyCommand::Set { provider } => {
            let key = asked_for(provider)?;
            match stored::keep(data, provider, key.trim())? {
                Put::Keyring => output::note(&format!("artoo: the key of {provider} is in the system's keyring")),
                Put::File { why, older_remains } => {
                    output::note(&format!(
                        "artoo: there is no system keyring to use ({why}); the key of {provider} is in {}, which only you can read",
                        stored::file(data).display()
                    ));
                    if older_remains {
                        output::note(&format!(
                            "artoo: an older key of {provider} may still be in the keyring, where it is not used any more: remove \
                             the entry `artoo` there by hand"
                        ));
                    }
                }
            }
        }
        KeyCommand::Rm { provider } => match stored::forget(data, provider)? {
            Some(Kept::Keyring) => output::note(&format!(
                "artoo: the key of {provider} is no longer in the system's keyring"
            )),
            Some(Kept::File) => output::note(&format!(
                "artoo: the key of {provider} is no longer in {}",
                stored::file(data).display()
            )),
            None => {
                return Err(Failure::usage(format!("no key of {provider} is kept"))
                    .hint("artoo config show tells where the keys lie that are in use"));
            }
        },
    }
    Ok(())
}

fn asked_for(provider: &str) -> Result<String, Failure> {
    let input = std::io::stdin();
    let mut bytes = Vec::new();
    if input.is_terminal() {
        let _quiet = Quiet::new()?;
        let mut screen = std::io::stderr();
        write!(screen, "key of {provider} (not shown): ").and_then(|()| screen.flush())?;
        bytes = vec![0; usize::try_from(INPUT_MAX).unwrap_or_default()];
        // A terminal hands out one line at a time.
        let read = rustix::io::read(&input, &mut bytes).map_err(std::io::Error::from)?;
        bytes.truncate(read);
        let _ = writeln!(screen);
        if bytes.contains(&CTRL_C) {
            return Err(Failure {
                message: "nothing was changed".to_owned(),
                hint: None,
                code: 130,
            });
        }
    } else {
        input.lock().take(INPUT_MAX).read_to_end(&mut bytes)?;
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("that is no key: the input is not text"))
}

/// A terminal that does not show what is typed, until the value is dropped. Ctrl+C ends the line instead of the program, which would
/// leave the terminal as it is.
struct Quiet(Termios);

impl Quiet {
    fn new() -> Result<Self, Failure> {
        let before = tcgetattr(std::io::stdin()).map_err(std::io::Error::from)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet).map_err(std::io::Error::from)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
