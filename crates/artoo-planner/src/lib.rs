//! R2: plans that can be checked, and their dispatch.
