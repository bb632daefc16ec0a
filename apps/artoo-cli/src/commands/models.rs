//! `artoo models`: which models are configured and whether they answer, and what each provider in reach offers (design §18).

use artoo_protocol::Millis;
use artoo_protocol::text::{one_line, printable};
use serde_json::{Value, json};

use crate::args::Options;
use crate::failure::Failure;
use crate::settings::{self, Environment, ModelChoice, Offer};
use crate::{models, output};

/// Most names that a line of text holds; `--json` has all.
const SHOWN: usize = 30;

/// Longest name in a line of text, in characters.
const NAME_MAX: usize = 120;

/// A model in use.
struct Used {
    tier: &'static str,
    model: String,
    /// How long a short answer took, where that is known, or why there was none.
    answer: Result<Option<Millis>, String>,
}

/// A provider, with the names of its models, or why they are not known.
struct Listed {
    offer: Offer,
    models: Result<Vec<String>, String>,
}

/// Asks every configured model for one word, and every provider with a key, or on this machine, for its list.
///
/// # Errors
/// [`Failure`] (exit 2) when the configuration cannot be read, (exit 3) when a configured model does not answer.
pub async fn run(options: &Options, env: &Environment, as_json: bool) -> Result<u8, Failure> {
    let offers = settings::offers(options, env)?;
    // Who looks for the name of a model has none configured yet.
    let configured = settings::load(options, env);
    let (used, listed) = tokio::join!(
        async {
            match &configured {
                Ok(settings) => ask_all(&settings.named_models()).await,
                Err(_) => Vec::new(),
            }
        },
        list_all(offers)
    );
    let broken = configured.as_ref().err().map(|failure| {
        let hint = failure.hint.as_ref().map(|hint| format!(" — {hint}"));
        format!("{}{}", failure.message, hint.unwrap_or_default())
    });
    if as_json {
        output::pretty_json(&json!({
            "configured": used.iter().map(Used::json).collect::<Vec<_>>(),
            "problem": broken,
            "providers": listed.iter().map(Listed::json).collect::<Vec<_>>(),
        }));
    } else {
        output::result(&printable_lines(&text(&used, broken.as_deref(), &listed)));
    }
    let silent = used.iter().filter(|used| used.answer.is_err()).count();
    match (configured, silent) {
        (Err(failure), _) => Err(failure),
        (Ok(_), 0) => Ok(0),
        (Ok(_), _) => Err(Failure {
            code: 3,
            ..Failure::failed(format!("{silent} configured model(s) do not answer"))
        }),
    }
}

async fn ask_all(tiers: &[(&'static str, &ModelChoice)]) -> Vec<Used> {
    let mut used: Vec<Used> = Vec::new();
    for (tier, choice) in tiers {
        let model = choice.to_string();
        // One model in two places is asked once.
        let known = used.iter().find(|other| other.model == model);
        let answer = match known {
            Some(other) => other.answer.clone(),
            // It answers what its grammar knows, and no question is needed to find that out.
            None if **choice == ModelChoice::Offline => Ok(None),
            None => models::probe(choice).await,
        };
        used.push(Used { tier, model, answer });
    }
    used
}

async fn list_all(offers: Vec<Offer>) -> Vec<Listed> {
    // Started together: one that does not answer must not hold up the others.
    let asked: Vec<_> = offers
        .into_iter()
        .map(|offer| {
            let asked = tokio::spawn({
                let offer = offer.clone();
                async move {
                    match &offer.choice {
                        Ok(choice) => models::offered(choice).await,
                        Err(why) => Err(why.clone()),
                    }
                }
            });
            (offer, asked)
        })
        .collect();
    let mut listed = Vec::new();
    for (offer, asked) in asked {
        let models = asked.await.unwrap_or_else(|error| Err(error.to_string()));
        listed.push(Listed { offer, models });
    }
    listed
}

impl Used {
    fn json(&self) -> Value {
        json!({
            "tier": self.tier, "model": self.model, "answers": self.answer.is_ok(),
            "milliseconds": self.answer.as_ref().ok().copied().flatten(),
            "problem": self.answer.as_ref().err(),
        })
    }
}

impl Listed {
    fn json(&self) -> Value {
        json!({
            "provider": self.offer.name, "base_url": self.offer.choice.as_ref().map(ModelChoice::address).ok(),
            "models": self.models.as_ref().ok(), "problem": self.models.as_ref().err(),
        })
    }
}

fn text(used: &[Used], broken: Option<&str>, listed: &[Listed]) -> String {
    let mut lines = vec!["Configured".to_owned()];
    lines.extend(broken.map(|why| format!("  nothing: {why}")));
    lines.extend(used.iter().map(|used| {
        let answer = match &used.answer {
            Ok(Some(took)) => format!("answers ({} ms)", took.0),
            Ok(None) => "answers".to_owned(),
            Err(why) => format!("does not answer: {why}"),
        };
        format!("  {:<13} {}: {answer}", used.tier, used.model)
    }));
    lines.push("On offer (--model PROVIDER:NAME)".to_owned());
    for Listed { offer, models } in listed {
        let place = offer.choice.as_ref().map(ModelChoice::address).unwrap_or_default();
        lines.push(match models {
            Err(why) => format!("  {:<10} {why}", offer.name),
            Ok(names) => format!("  {:<10} {place}: {}", offer.name, counted(names)),
        });
    }
    lines.push("  builtin    offline (a small grammar, no language model)".to_owned());
    lines.join("\n")
}

fn counted(names: &[String]) -> String {
    match names.len() {
        0 => "no models".to_owned(),
        all => {
            // A name comes from a server: one with a line break in it must not look like two.
            let shown = names.iter().take(SHOWN).map(|name| one_line(name, NAME_MAX));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = all.saturating_sub(SHOWN);
            let rest = if more > 0 {
                format!(" and {more} more (--json lists them)")
            } else {
                String::new()
            };
            format!("{shown}{rest}")
        }
    }
}

/// Names and errors come from servers.
fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_and_say_so() {
        let names: Vec<String> = (0..40).map(|n| format!("m{n}")).collect();
        let shown = counted(&names);
        assert!(
            shown.starts_with("m0, m1, ") && shown.ends_with("m29 and 10 more (--json lists them)"),
            "{shown}"
        );
        assert_eq!(counted(&names[..2]), "m0, m1");
        assert_eq!(counted(&[]), "no models");
        assert_eq!(counted(&["a\nopenai  none".to_owned()]), "a openai none");
    }

    #[test]
    fn a_server_cannot_steer_the_terminal() {
        let listed = Listed {
            offer: Offer {
                name: "openai",
                choice: Err("no key (OPENAI_API_KEY)".to_owned()),
            },
            models: Ok(vec!["a\u{1b}[2Jb".to_owned()]),
        };
        let shown = printable_lines(&text(&[], Some("half a configuration"), &[listed]));
        assert!(
            !shown.contains('\u{1b}') && shown.contains("nothing: half a configuration"),
            "{shown}"
        );
    }
}
