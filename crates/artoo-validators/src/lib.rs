//! R4a and R4b: evidence, machine checks, fan-in and merge.
