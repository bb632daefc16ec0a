# Each recipe is one plain cargo line; just is a convenience, not a need.

# count this repository's Rust files with the built-in offline model
demo:
    cargo run -p artoo-cli -- "count the Rust files in crates and write the number to rust_files.txt"

test:
    cargo test --workspace

check:
    .ci/run

bench:
    cargo bench --workspace

doc:
    cargo doc --workspace --no-deps --open
