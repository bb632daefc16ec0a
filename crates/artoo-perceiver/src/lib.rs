//! R1: turns the user's words into a task specification.
