//! `docs/offline.md` shows what the built-in offline model understands; this test writes it and notices when it is stale.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

use std::fmt::Write as _;

#[test]
fn the_offline_page_is_up_to_date() {
    let mut page = String::from(
        "# The built-in offline model\n\n<!-- written by `UPDATE_DOCS=1 cargo test -p artoo-llm --test offline_doc`; do not edit -->\n\n\
         `builtin:offline` answers when no model is configured. It is no language model: it reads the sentences below, in these and similar\n\
         words, and chains of them with \"then\" or \"and write the result to FILE\". Everything else it refuses in one sentence (exit code 3), and\n\
         it never makes anything up. Paths with spaces go into quotes; \"here\" and \"this folder\" mean the working directory. A file that is written under a\n\
         bare name lands in the workspace, and later steps of the chain that read it, or count its lines or words, mean it there; any other bare name is in the\n\
         working directory. See design §18.\n\n\
         | what | for instance | understood as |\n|---|---|---|\n",
    );
    for example in artoo_llm::offline::examples() {
        for (sentence, canonical) in example.sentences {
            writeln!(page, "| {} | {sentence} | {canonical} |", example.name).unwrap();
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/offline.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == page,
        "docs/offline.md is stale: run UPDATE_DOCS=1 cargo test -p artoo-llm --test offline_doc"
    );
}
