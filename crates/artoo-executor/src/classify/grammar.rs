//! A command line as a syntax tree, or why it cannot be one (design §9).
//!
//! Owns the way into the parser, which comes from outside. Must not know what a tree means.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::{Parser, ParserOptions, ast};

use super::limits;

/// A script as a tree.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn parsed(text: &str, depth: usize) -> Result<ast::Program, &'static str> {
    if let Some(why) = limits::unreadable(text, depth) {
        return Err(why);
    }
    // The parser comes from outside and is fed hostile text: should it panic, the command is merely not understood.
    let parsed = catch_unwind(AssertUnwindSafe(|| {
        Parser::new(text.as_bytes(), &options()).parse_program()
    }));
    match parsed {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(_)) | Err(_) => Err("its syntax is not understood"),
    }
}

pub(super) fn options() -> ParserOptions {
    ParserOptions::default()
}
