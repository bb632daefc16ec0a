//! Which sed scripts only print (design §9).
//!
//! Owns a small reader of sed's language that accepts what it understands completely and nothing else: `w` and `e`
//! commands and flags, labels and text commands are refused. Must not know the shell.

/// Whether a script neither writes files nor runs commands.
pub fn only_reads(script: &str) -> bool {
    let mut reader = Reader { rest: script };
    loop {
        reader.skip(|c| c.is_whitespace() || c == ';' || c == '{' || c == '}');
        if reader.rest.is_empty() {
            return true;
        }
        if reader.command().is_none() {
            return false;
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self, accept: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(accept);
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..)?;
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn command(&mut self) -> Option<()> {
        if self.address()? {
            self.skip(char::is_whitespace);
            if self.eat(',') {
                self.skip(char::is_whitespace);
                if !self.eat('+') {
                    self.eat('~');
                }
                if !self.address()? {
                    return None;
                }
            }
        }
        self.skip(|c| c.is_whitespace() || c == '!');
        match self.next()? {
            'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | '{' => {}
            'q' | 'Q' => self.skip(|c| c.is_ascii_digit()),
            's' => {
                let delimiter = self.next()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
                self.skip(|c| "gpiI".contains(c) || c.is_ascii_digit());
            }
            'y' => {
                let delimiter = self.next()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
            }
            _ => return None,
        }
        self.skip(|c| c == ' ' || c == '\t');
        let ends = self.rest.is_empty() || self.rest.starts_with([';', '\n', '}', '{']);
        let opened = !self.rest.is_empty() && !ends;
        // After `{` the next command may follow at once; after any other command a separator must.
        (ends || (opened && self.rest.starts_with('#'))).then_some(())
    }

    /// Reads an address if there is one; `None` when it is malformed.
    fn address(&mut self) -> Option<bool> {
        if self.eat('$') {
            return Some(true);
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            self.skip(|c| c.is_ascii_digit() || c == '~');
            return Some(true);
        }
        if self.eat('/') {
            self.until('/')?;
            self.skip(|c| c == 'I');
            return Some(true);
        }
        Some(false)
    }

    /// Skips to behind the delimiter; brackets are not looked into, so a delimiter inside one ends the part early and
    /// what follows is refused.
    fn until(&mut self, delimiter: char) -> Option<()> {
        if delimiter == '\\' || delimiter == '\n' {
            return None;
        }
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                c if c == delimiter => return Some(()),
                // A delimiter inside brackets is literal to sed: what it ends is not certain.
                '[' => return None,
                _ => {}
            }
        }
    }
}
