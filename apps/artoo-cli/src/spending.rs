//! What calls cost and what may be spent, from the settings (design §19).

use std::sync::Arc;

use artoo_bus::{Budget, Meter, Price};

use crate::settings::{ModelChoice, Settings};

/// The meter of the hard budgets.
pub fn meter(settings: &Settings) -> Meter {
    let budget = Budget {
        max_tokens: settings.max_tokens,
        max_cost: settings.max_cost,
    };
    Meter::new(budget, price(settings))
}

/// What a call costs. A name without a price, such as a dated variant that the server reports, costs as much as the dearest
/// configured model, or where none is (a report of what ran before) the dearest that has a price: a hard limit may be reached early,
/// never missed.
pub fn price(settings: &Settings) -> Price {
    let prices = settings.prices.clone();
    let mut chosen: Vec<_> = settings
        .models()
        .into_iter()
        .filter_map(|choice| match choice {
            ModelChoice::Endpoint { model, .. } => prices.get(model).copied(),
            ModelChoice::Offline => None,
        })
        .collect();
    if chosen.is_empty() {
        chosen = prices.values().copied().collect();
    }
    Arc::new(move |model, usage| match prices.get(model) {
        Some(price) => price.of(usage),
        None if model == artoo_llm::offline::NAME => 0.0,
        None => chosen.iter().map(|price| price.of(usage)).fold(0.0, f64::max),
    })
}
