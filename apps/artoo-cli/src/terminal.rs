//! The person at the terminal: asked for single actions and for what R1 did not understand (design §5, §9, §21).

use std::io::{BufRead, IsTerminal, Write};

use artoo_protocol::message::{ClarificationRequest, ConfirmationRequest, Consent};
use artoo_protocol::ports::Confirm;
use artoo_protocol::text::printable;
use async_trait::async_trait;

/// Asks on standard error and reads from standard input; where either is no terminal, nobody is there.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    present: bool,
}

impl Terminal {
    /// Looks whether someone can be asked.
    pub fn detect() -> Self {
        Self { present: std::io::stdin().is_terminal() && std::io::stderr().is_terminal() }
    }

    async fn ask(&self, question: String) -> Option<String> {
        if !self.present {
            return None;
        }
        let answer = tokio::task::spawn_blocking(move || {
            eprint!("{}", printable(&question));
            std::io::stderr().flush().ok()?;
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line).ok()?;
            (read > 0).then_some(line)
        });
        answer.await.ok().flatten()
    }
}

#[async_trait]
impl Confirm for Terminal {
    fn person_present(&self) -> bool {
        self.present
    }

    async fn confirm(&self, request: &ConfirmationRequest) -> Consent {
        let question = format!(
            "\nartoo asks for your consent ({}, {}):\n\n{}\n\n{}\n[y]es, [a]lways this exact action in this task, [N]o: ",
            request.tool, request.effect, request.action, request.reason
        );
        match self.ask(question).await.as_deref().map(str::trim) {
            None => Consent::Nobody,
            Some("y" | "Y" | "yes") => Consent::Yes,
            Some("a" | "A" | "always") => Consent::Always,
            Some(_) => Consent::No,
        }
    }

    async fn clarify(&self, request: &ClarificationRequest) -> String {
        let questions = request.questions.iter().map(|q| format!("  - {q}")).collect::<Vec<_>>().join("\n");
        let question = format!("\nartoo asks (empty: go on as you think best):\n{questions}\n> ");
        self.ask(question).await.map(|answer| answer.trim().to_owned()).unwrap_or_default()
    }
}
