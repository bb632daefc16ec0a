//! The observable bus of artoo: lossless inboxes, lossy taps, the generic driver and the journal.
