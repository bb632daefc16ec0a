//! `artoo completions` and `artoo man`: what packagers install beside the program (design §21).

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;

/// The completions for one shell.
pub fn completions(shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "artoo", &mut script);
    output::result(String::from_utf8_lossy(&script).trim_end());
}

/// The program's page; each command has its own `--help`.
///
/// # Errors
/// [`Failure`] when a page cannot be put together.
pub fn man() -> Result<(), Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    output::result(String::from_utf8_lossy(&page).trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_completed_in_every_shell() {
        let mut command = Cli::command();
        let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "artoo", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in &names {
                assert!(script.contains(name.as_str()), "{shell}: {name}");
            }
        }
    }

    #[test]
    fn the_page_names_every_command_and_option() {
        let mut page = Vec::new();
        let command = Cli::command();
        clap_mangen::Man::new(command.clone()).render(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for sub in command.get_subcommands() {
            assert!(page.contains(sub.get_name()), "{}", sub.get_name());
        }
        assert!(page.contains("max\\-tokens") && page.contains("Exit codes"), "{page}");
    }
}
