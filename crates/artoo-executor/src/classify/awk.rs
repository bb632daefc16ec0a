//! Which awk programs only read and print (design §9).
//!
//! Owns a conservative test on the program's text: awk reaches the world through `system`, pipes, output redirections,
//! `getline` and loaded extensions, and none of these can be written without the marks looked for here. Must not know
//! the shell.

/// Whether a program neither runs commands nor writes files.
pub fn only_reads(program: &str) -> bool {
    let marks = ["system", "getline", "/inet", "@", "\\\n"];
    if marks.iter().any(|mark| program.contains(mark)) {
        return false;
    }
    // Before the first `print` a `>` or `|` can only compare or stand in a pattern; after it, it may redirect.
    let Some(at) = program.find("print") else {
        return true;
    };
    let after = program
        .get(at..)
        .unwrap_or_default()
        .replace(">=", "")
        .replace("||", "");
    !after.contains('>') && !after.contains('|')
}
