//! Which sed scripts only print (design §9).
//!
//! Owns a small reader of sed's language that accepts what it understands completely and nothing else: `w` and `e`
//! commands and flags are refused, and texts and labels whose end implementations see differently. Must not know the shell.

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
            // What stands in braces follows at once.
            '{' => return Some(()),
            'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' => {}
            'q' | 'Q' | 'l' => self.skip(|c| c.is_ascii_digit()),
            's' => {
                let delimiter = self.next()?;
                self.pattern(delimiter)?;
                self.text(delimiter)?;
                self.skip(|c| "gpiI".contains(c) || c.is_ascii_digit());
            }
            ':' | 'b' | 't' | 'T' => {
                self.skip(|c| c == ' ');
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
            }
            'a' | 'i' | 'c' => return self.inserted(),
            'y' => {
                let delimiter = self.next()?;
                self.text(delimiter)?;
                self.text(delimiter)?;
            }
            _ => return None,
        }
        self.skip(|c| c == ' ' || c == '\t');
        (self.rest.is_empty() || self.rest.starts_with([';', '\n', '}'])).then_some(())
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
            self.pattern('/')?;
            self.skip(|c| c == 'I');
            return Some(true);
        }
        Some(false)
    }

    /// Skips a text that is put out: it goes to the end of its line, and a backslash there would carry it on.
    fn inserted(&mut self) -> Option<()> {
        self.skip(|c| c == ' ' || c == '\t');
        if self.eat('\\') {
            self.eat('\n');
        }
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!line.is_empty() && !line.contains('\\')).then_some(())
    }

    /// Skips to behind the delimiter that ends a plain text.
    fn text(&mut self, delimiter: char) -> Option<()> {
        if delimiter == '\\' || delimiter == '\n' {
            return None;
        }
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                c if c == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    /// Skips to behind the delimiter that ends a regular expression.
    ///
    /// Implementations differ on a delimiter inside brackets, so such an expression is refused.
    fn pattern(&mut self, delimiter: char) -> Option<()> {
        if delimiter == '\\' || delimiter == '\n' || delimiter == '[' {
            return None;
        }
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                c if c == delimiter => return Some(()),
                '[' => self.bracket(delimiter)?,
                _ => {}
            }
        }
    }

    fn bracket(&mut self, delimiter: char) -> Option<()> {
        self.eat('^');
        if self.rest.starts_with(']') {
            return None;
        }
        loop {
            match self.next()? {
                ']' => return Some(()),
                '[' if self.rest.starts_with(':') => {
                    let end = self.rest.find(":]")?;
                    if self.rest.get(..end)?.contains(delimiter) {
                        return None;
                    }
                    self.rest = self.rest.get(end + 2..)?;
                }
                // Before a letter or a dot it ends nothing, whether it stands for itself or not.
                '\\' if self
                    .rest
                    .starts_with(|c: char| c != delimiter && (c.is_ascii_alphabetic() || c == '.')) => {}
                c if c == delimiter || c == '\\' || c == '\n' => return None,
                _ => {}
            }
        }
    }
}
