//! What a redirection reads or writes (design §9).
//!
//! Owns the judgement of `<`, `>` and their kin. Must not know programs.

use brush_parser::ast;

use super::words::Arg;
use super::{Walk, WrittenPath};

/// Why a redirection from something unknown is no read: bash opens connections for some names.
pub(super) const READS_UNKNOWN: &str = "what it reads from is known only when it runs";

/// What became of the outputs of a command, as far as it matters for opening them by name: on Linux `/dev/stdout` opens the *file*
/// behind the descriptor anew, for writing also one that was opened to be read.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// One of the outputs may be a file that was opened to be read.
    crossed: bool,
    /// One of them is opened by its name.
    reopened: bool,
}

impl Descriptors {
    pub fn may_reopen_a_file(&self) -> bool {
        self.crossed && self.reopened
    }
}

/// Whether a word in front of a redirection is `{name}`, a variable that gets the descriptor's number.
pub(super) fn names_a_descriptor(word: &ast::Word) -> bool {
    word.value
        .strip_prefix('{')
        .is_some_and(|name| name.ends_with('}') && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

impl Walk {
    pub(super) fn redirects(&mut self, redirects: Option<&ast::RedirectList>) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect);
        }
    }

    pub(super) fn redirect(&mut self, redirect: &ast::IoRedirect) {
        match redirect {
            ast::IoRedirect::File(descriptor, kind, target) => {
                let reads = matches!(
                    kind,
                    ast::IoFileRedirectKind::Read | ast::IoFileRedirectKind::ReadAndWrite
                );
                self.descriptors.crossed |= reads && matches!(descriptor, Some(1 | 2));
                self.file_redirect(kind, target);
            }
            ast::IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.here_document(&document.doc.value);
                }
            }
            ast::IoRedirect::HereString(_, word) => {
                self.word(word);
            }
            ast::IoRedirect::OutputAndError(word, _) => {
                let target = self.word(word);
                self.writes_file(&target);
            }
        }
    }

    fn file_redirect(&mut self, kind: &ast::IoFileRedirectKind, target: &ast::IoFileRedirectTarget) {
        use ast::IoFileRedirectKind as K;
        match target {
            ast::IoFileRedirectTarget::Fd(from) => self.descriptors.crossed |= !matches!(from, 1 | 2),
            ast::IoFileRedirectTarget::ProcessSubstitution(_, group) => self.list(&group.list),
            ast::IoFileRedirectTarget::Duplicate(word) => {
                let target = self.word(word);
                let descriptor = target.literal().is_some_and(|text| {
                    let digits = text.strip_suffix('-').unwrap_or(text);
                    digits.chars().all(|c| c.is_ascii_digit())
                });
                if descriptor {
                    self.descriptors.crossed |= !matches!(target.known(), "1" | "2" | "-");
                } else {
                    self.writes_file(&target);
                }
            }
            ast::IoFileRedirectTarget::Filename(word) => {
                let target = self.word(word);
                if let (K::Read, Some(name)) = (kind, variable(&word.value)) {
                    self.read_from.insert(name.to_owned());
                    return;
                }
                match kind {
                    K::Read | K::DuplicateInput => self.reads_file(&target),
                    K::Write | K::Append | K::ReadAndWrite | K::Clobber | K::DuplicateOutput => {
                        self.writes_file(&target);
                    }
                }
            }
        }
    }

    /// `< path`: bash opens a connection for `/dev/tcp/…`, so the path must be known not to be one.
    fn reads_file(&mut self, target: &Arg) {
        const NETWORK: [&str; 2] = ["/dev/tcp", "/dev/udp"];
        let known = target.known();
        if NETWORK.iter().any(|device| known.starts_with(device)) {
            self.unknown("it opens a network connection");
        } else if target.literal().is_none() && NETWORK.iter().any(|device| device.starts_with(known)) {
            self.unknown(READS_UNKNOWN);
        }
    }

    pub(super) fn writes_file(&mut self, target: &Arg) {
        let Some(path) = target.path() else {
            self.writes.push(WrittenPath::Unknown);
            return;
        };
        match path.as_str() {
            "/dev/null" | "/dev/tty" => {}
            "/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2" => self.descriptors.reopened = true,
            device
                if ["/dev/", "/proc/", "/sys/"]
                    .iter()
                    .any(|folder| device.starts_with(folder)) =>
            {
                self.unknown(format!("it writes to the device `{device}`"));
            }
            _ => {
                self.opened.insert(path.clone());
                self.writes.push(WrittenPath::File(path));
            }
        }
    }
}

/// The variable that a word consists of: `$f`, `${f}`, with or without double quotes.
fn variable(word: &str) -> Option<&str> {
    let bare = word
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(word);
    let name = bare.strip_prefix('$')?;
    let name = name
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(name);
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then_some(name)
}
