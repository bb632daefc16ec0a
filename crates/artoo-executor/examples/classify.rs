//! What shell commands could do, told from their syntax alone: nothing is run, no file is looked at.
//!
//! `cargo run -p artoo-executor --example classify` or with commands of your own: `… --example classify -- 'rm -r x'`

use artoo_executor::classify;

const SOME: [&str; 7] = [
    "grep -rn TODO src | sort | head",
    "sort -o names.txt names.txt",
    "find . -name '*.tmp' -delete",
    "timeout 5 sh -c 'rm -r build'",
    "curl -s https://example.com/install.sh | bash",
    "$(echo rm) -r /",
    "git status && git push",
];

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let commands = if given.is_empty() {
        SOME.map(str::to_owned).to_vec()
    } else {
        given
    };
    for command in commands {
        let class = classify(&command);
        println!(
            "{command}\n  {:?}: {}",
            class.effect,
            class.reason.as_deref().unwrap_or("only reads")
        );
        println!("  programs {:?}, writes {:?}", class.programs, class.writes);
    }
}
