//! What the simulated models cost: one list for the program's meter, and for whoever counts beside it (design §19).

use artoo_protocol::model::{Tier, Usage};

/// The dearer one.
pub const DEAR: &str = "dear";

/// The name of the model that answers requests of a tier.
pub const fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::Brain | Tier::Judge | Tier::SecondJudge => DEAR,
        Tier::Tool => "cheap",
    }
}

/// What a call costs, in cents; every other model is free.
pub fn price(model: &str, usage: &Usage) -> f64 {
    let (input, output) = match model {
        DEAR => (0.000_5, 0.002),
        "cheap" => (0.000_05, 0.000_2),
        _ => (0.0, 0.0),
    };
    usage.input_tokens as f64 * input + usage.output_tokens as f64 * output
}
