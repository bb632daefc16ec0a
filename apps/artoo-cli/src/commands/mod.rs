//! The commands that look: each reads one source and prints it for people or as JSON (design §21).

pub mod audit;
pub mod config;
pub mod doctor;
pub mod dropping;
pub mod ggs;
pub mod keys;
pub mod lab;
pub mod mcp;
pub mod memory;
pub mod models;
pub mod naming;
pub mod packaging;
pub mod replay;
pub mod report;
pub mod tasks;
pub mod tools;
pub mod undo;
