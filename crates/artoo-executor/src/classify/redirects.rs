//! What a redirection reads or writes (design §9).
//!
//! Owns the judgement of `<`, `>` and their kin. Must not know programs.

use brush_parser::ast;

use super::words::Arg;
use super::{Walk, WrittenPath};

/// Why a redirection from something unknown is no read: bash opens connections for some names.
pub(super) const READS_UNKNOWN: &str = "what it reads from is known only when it runs";

impl Walk {
    pub(super) fn redirects(&mut self, redirects: Option<&ast::RedirectList>) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect);
        }
    }

    pub(super) fn redirect(&mut self, redirect: &ast::IoRedirect) {
        match redirect {
            ast::IoRedirect::File(_, kind, target) => self.file_redirect(kind, target),
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
            ast::IoFileRedirectTarget::Fd(_) => {}
            ast::IoFileRedirectTarget::ProcessSubstitution(_, group) => self.list(&group.list),
            ast::IoFileRedirectTarget::Duplicate(word) => {
                let target = self.word(word);
                let descriptor = target.literal().is_some_and(|text| {
                    let digits = text.strip_suffix('-').unwrap_or(text);
                    digits.chars().all(|c| c.is_ascii_digit())
                });
                if !descriptor {
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
        let known = target.known();
        if known.starts_with("/dev/tcp") || known.starts_with("/dev/udp") {
            self.unknown("it opens a network connection");
        } else if target.literal().is_none() && (known.is_empty() || "/dev/tcp".starts_with(known)) {
            self.unknown(READS_UNKNOWN);
        }
    }

    pub(super) fn writes_file(&mut self, target: &Arg) {
        let Some(path) = target.literal() else {
            self.writes.push(WrittenPath::Unknown);
            return;
        };
        let harmless =
            ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"].contains(&path) || path.starts_with("/dev/fd/");
        if harmless {
            return;
        }
        if path.starts_with("/dev/") || path.starts_with("/proc/") || path.starts_with("/sys/") {
            self.unknown(format!("it writes to the device `{path}`"));
        } else {
            self.writes.push(WrittenPath::File(path.to_owned()));
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
