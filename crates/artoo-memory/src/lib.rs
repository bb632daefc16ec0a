//! R5: Megrams, decaying potentials and a LevelDB store that does not lose data.

pub mod kv;
