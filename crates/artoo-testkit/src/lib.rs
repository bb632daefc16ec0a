//! Test support for artoo: scripted models and a whole-system simulation on virtual time.
