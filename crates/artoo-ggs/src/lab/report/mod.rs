//! The results for people and programs: CSV, Markdown, pictures, and one page that holds them all.
//!
//! Owns layout only; every number comes from the rows.

pub mod page;
pub mod plots;
pub mod text;

pub use page::page;
pub use text::{csv, markdown};
