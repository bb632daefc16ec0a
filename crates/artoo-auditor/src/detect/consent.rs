//! A yes that no person gave (design §9).

use std::collections::BTreeSet;

use artoo_protocol::message::{Consent, Message};

use super::{Seen, TaskDetector};

/// Questions of one task, and whether somebody is there to answer them.
#[derive(Clone, Debug, Default)]
pub struct ConsentWithoutPerson {
    /// Unknown when neither the beginning of the task was seen nor, in words, how it was taken up.
    present: Option<bool>,
    /// Whether everything of the task was seen in this process; else a question may have been asked before.
    from_start: bool,
    open: BTreeSet<String>,
}

impl TaskDetector for ConsentWithoutPerson {
    const NAME: &'static str = "consent_without_person";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        if let Message::UserInput(input) = &envelope.payload {
            self.present = Some(input.person_present);
            self.from_start = true;
        } else if let Message::TaskResumed(resumed) = &envelope.payload {
            self.present = resumed.person_present;
        } else if let Message::ConfirmationRequest(request) = &envelope.payload {
            self.open.insert(request.request_id.clone());
        } else if let Message::ConfirmationAnswer(answer) = &envelope.payload {
            let asked = self.open.remove(&answer.request_id);
            let yes = match answer.consent {
                Consent::Yes | Consent::Always => true,
                Consent::No | Consent::Nobody => false,
            };
            return match (yes, self.present) {
                (true, Some(false)) => Some(format!(
                    "question {} got a yes, and nobody was there",
                    answer.request_id
                )),
                (true, Some(true)) if self.from_start && !asked => Some(format!(
                    "a yes came to question {}, which was not asked, or answered before",
                    answer.request_id
                )),
                _ => None,
            };
        }
        None
    }
}
