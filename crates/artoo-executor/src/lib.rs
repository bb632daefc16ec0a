//! R3: carries out one subtask with tools behind an effect gate.

pub mod capture;
pub mod classify;
pub mod spawn;
