//! Language models for artoo: providers, tolerant reading, cassettes and the built-in offline model.
