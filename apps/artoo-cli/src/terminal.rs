//! The person at the terminal: asked for single actions and for what R1 did not understand (design §5, §9, §21).

use std::io::{ErrorKind, IsTerminal, Write};

use artoo_protocol::message::{ClarificationRequest, ConfirmationRequest, Consent};
use artoo_protocol::ports::Confirm;
use artoo_protocol::text::printable;
use async_trait::async_trait;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::termios::{QueueSelector, tcflush};

/// Longest answer that a terminal hands out at once, in bytes.
const LINE_MAX: usize = 4096;

/// Asks on standard error and reads from standard input; where either is no terminal, nobody is there.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    present: bool,
}

impl Terminal {
    /// Looks whether someone can be asked.
    pub fn detect() -> Self {
        Self {
            present: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        }
    }

    /// The answer; empty when the person only closes the input, `None` where nobody can answer.
    async fn ask(&self, question: &str) -> Option<String> {
        if !self.present {
            return None;
        }
        // What was typed before the question was there is no answer to it.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        let mut screen = std::io::stderr();
        screen
            .write_all(printable(question).as_bytes())
            .and_then(|()| screen.flush())
            .ok()?;
        line().await.ok()
    }
}

/// One line from the terminal. Dropping the future ends the wait: a thread that stayed in a blocking read after an abort
/// would take the next line from whoever asks then.
async fn line() -> std::io::Result<String> {
    // The writing end is dropped with the future, which the thread sees at the reading end.
    let (abandoned, _held) = std::io::pipe()?;
    let answer = tokio::task::spawn_blocking(move || {
        let keyboard = std::io::stdin();
        let mut ends = [
            PollFd::new(&abandoned, PollFlags::IN),
            PollFd::new(&keyboard, PollFlags::IN),
        ];
        retry_on_intr(|| poll(&mut ends, None))?;
        if ends.first().is_some_and(|end| !end.revents().is_empty()) {
            return Err(ErrorKind::Interrupted.into());
        }
        let mut bytes = [0; LINE_MAX];
        // A terminal is readable when a whole line is there, and hands out no more than that line.
        let read = rustix::io::read(&keyboard, &mut bytes)?;
        Ok(String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).into_owned())
    });
    answer.await?
}

#[async_trait]
impl Confirm for Terminal {
    fn person_present(&self) -> bool {
        self.present
    }

    async fn confirm(&self, request: &ConfirmationRequest) -> Consent {
        let question = format!(
            "\n{}\n[y]es, [a]lways this exact action in this task, [N]o: ",
            consent_question(request)
        );
        match self.ask(&question).await.as_deref().map(str::trim) {
            None => Consent::Nobody,
            Some("y" | "Y" | "yes") => Consent::Yes,
            Some("a" | "A" | "always") => Consent::Always,
            Some(_) => Consent::No,
        }
    }

    async fn clarify(&self, request: &ClarificationRequest) -> String {
        let question = format!("\n{}\n> ", questions_listed(request));
        self.ask(&question)
            .await
            .map(|answer| answer.trim().to_owned())
            .unwrap_or_default()
    }
}

/// An action that needs a yes, with everything that it would do.
pub fn consent_question(request: &ConfirmationRequest) -> String {
    format!(
        "artoo asks for your consent ({}, {}):\n\n{}\n\n{}",
        request.tool, request.effect, request.action, request.reason
    )
}

/// What R1 wants to know.
pub fn questions_listed(request: &ClarificationRequest) -> String {
    let questions = request.questions.iter().map(|question| format!("\n  - {question}"));
    format!(
        "artoo asks (empty: go on as you think best):{}",
        questions.collect::<String>()
    )
}
