//! The decision table: four bands in, one of 24 cells and its macro-state out (design §12).
//!
//! Ω asks whether to go on at all, D whether it is close enough, |∇L| and P what kind of change is needed. The sign of ∇L
//! chooses no state; it sets the urgency. [`decide`] is one `match` without a wildcard, so the compiler proves that every
//! case is covered once; [`cascade`] says the same as three questions, and a test holds the two together.

use artoo_protocol::message::{Directive, Loss, MacroState, Urgency};
use artoo_protocol::{Finite, Unit01};
use serde::Serialize;

use crate::params::Params;

/// Distance within which two numbers count as equal: 0.6·4/3 is 0.7999999999999999 in binary and has to reach 0.8.
pub const TOLERANCE: f64 = 1e-9;

/// x ≥ t, up to [`TOLERANCE`].
pub fn at_least(x: f64, t: f64) -> bool {
    x > t - TOLERANCE
}

/// x > t, up to [`TOLERANCE`]; with x ≤ t as its opposite.
pub fn above(x: f64, t: f64) -> bool {
    x > t + TOLERANCE
}

/// Resources: Ω against θ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resources {
    /// Ω < θ.
    Left,
    /// Ω ≥ θ.
    Spent,
}

/// Distance: D against δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// D ≤ δ.
    Near,
    /// D > δ.
    Far,
}

/// Implausibility: P against ρ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Implausibility {
    /// P ≤ ρ: the approach is sound, the environment stood in the way.
    Environmental,
    /// P > ρ: the approach is wrong.
    Logical,
}

/// Slope: ∇L against ±ε.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Slope {
    /// ∇L ≤ −ε.
    Improving,
    /// |∇L| < ε.
    Plateau,
    /// ∇L ≥ ε.
    Worsening,
}

impl Slope {
    /// How hard a directive is to be applied.
    pub const fn urgency(self) -> Urgency {
        match self {
            Self::Improving => Urgency::Lower,
            Self::Plateau => Urgency::Neutral,
            Self::Worsening => Urgency::Higher,
        }
    }
}

/// One macro-state of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Stop: the resources are spent.
    Abandon,
    /// Stop: close enough.
    Success,
    /// Go on with a change of this kind.
    Act(Directive),
}

impl Choice {
    /// The name used in JSON and on displays.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abandon => "abandon",
            Self::Success => "success",
            Self::Act(directive) => directive.name(),
        }
    }

    /// The row of the quantisation matrix that belongs to it.
    pub const fn macro_state(self) -> MacroState {
        match self {
            Self::Abandon => MacroState::Abandon,
            Self::Success => MacroState::Success,
            Self::Act(Directive::Refine) => MacroState::Refine,
            Self::Act(Directive::ChangePath) => MacroState::ChangePath,
            Self::Act(Directive::ChangeApproach) => MacroState::ChangeApproach,
            Self::Act(Directive::BreakSymmetry) => MacroState::BreakSymmetry,
        }
    }
}

/// A point of the input space, quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Bands {
    /// Of Ω.
    pub resources: Resources,
    /// Of D.
    pub distance: Distance,
    /// Of P.
    pub implausibility: Implausibility,
    /// Of ∇L.
    pub slope: Slope,
}

/// The bands of Ω, D and P in `loss` and of `grad_l`. Equality with θ is spent, with δ near, with ρ environmental, with ±ε
/// a signal.
pub fn quantise(params: &Params, loss: &Loss, grad_l: Finite) -> Bands {
    Bands {
        resources: if at_least(loss.omega.get(), params.theta.get()) {
            Resources::Spent
        } else {
            Resources::Left
        },
        distance: if above(loss.d.get(), params.delta.get()) {
            Distance::Far
        } else {
            Distance::Near
        },
        implausibility: if above(loss.p.get(), params.rho.get()) {
            Implausibility::Logical
        } else {
            Implausibility::Environmental
        },
        slope: slope(grad_l, params.epsilon),
    }
}

/// The band of ∇L.
pub fn slope(grad_l: Finite, epsilon: Unit01) -> Slope {
    if at_least(grad_l.get(), epsilon.get()) {
        Slope::Worsening
    } else if at_least(-grad_l.get(), epsilon.get()) {
        Slope::Improving
    } else {
        Slope::Plateau
    }
}

/// One cell of the table, by its number from 1 to 24, with its macro-state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// From 1 to 24.
    pub number: u8,
    /// What to do.
    pub choice: Choice,
}

/// The table itself.
#[rustfmt::skip]
pub const fn decide(bands: Bands) -> Cell {
    use Choice::{Abandon, Act, Success};
    use Directive::{BreakSymmetry, ChangeApproach, ChangePath, Refine};
    use Distance::{Far, Near};
    use Implausibility::{Environmental, Logical};
    use Resources::{Left, Spent};
    use Slope::{Improving, Plateau, Worsening};

    let (number, choice) = match (bands.slope, bands.distance, bands.implausibility, bands.resources) {
        (Improving, Near, Environmental, Left)  => ( 1, Success),
        (Improving, Near, Logical,       Left)  => ( 2, Success),
        (Improving, Near, Environmental, Spent) => ( 3, Abandon),
        (Improving, Near, Logical,       Spent) => ( 4, Abandon),
        (Improving, Far,  Environmental, Left)  => ( 5, Act(Refine)),
        (Improving, Far,  Logical,       Left)  => ( 6, Act(ChangeApproach)), // improving by a wrong approach: distrust it
        (Improving, Far,  Environmental, Spent) => ( 7, Abandon),
        (Improving, Far,  Logical,       Spent) => ( 8, Abandon),
        (Plateau,   Near, Environmental, Left)  => ( 9, Success),
        (Plateau,   Near, Logical,       Left)  => (10, Success),
        (Plateau,   Near, Environmental, Spent) => (11, Abandon),
        (Plateau,   Near, Logical,       Spent) => (12, Abandon),
        (Plateau,   Far,  Environmental, Left)  => (13, Act(ChangePath)),
        (Plateau,   Far,  Logical,       Left)  => (14, Act(BreakSymmetry)),
        (Plateau,   Far,  Environmental, Spent) => (15, Abandon),
        (Plateau,   Far,  Logical,       Spent) => (16, Abandon),
        (Worsening, Near, Environmental, Left)  => (17, Success),
        (Worsening, Near, Logical,       Left)  => (18, Success),
        (Worsening, Near, Environmental, Spent) => (19, Abandon),
        (Worsening, Near, Logical,       Spent) => (20, Abandon),
        (Worsening, Far,  Environmental, Left)  => (21, Act(Refine)),
        (Worsening, Far,  Logical,       Left)  => (22, Act(ChangeApproach)),
        (Worsening, Far,  Environmental, Spent) => (23, Abandon),
        (Worsening, Far,  Logical,       Spent) => (24, Abandon),
    };
    Cell { number, choice }
}

/// The same as three questions in the order of their weight; for explaining a decision.
pub const fn cascade(bands: Bands) -> Choice {
    match (bands.resources, bands.distance) {
        (Resources::Spent, Distance::Near | Distance::Far) => Choice::Abandon,
        (Resources::Left, Distance::Near) => Choice::Success,
        (Resources::Left, Distance::Far) => Choice::Act(match (bands.slope, bands.implausibility) {
            (Slope::Plateau, Implausibility::Logical) => Directive::BreakSymmetry,
            (Slope::Plateau, Implausibility::Environmental) => Directive::ChangePath,
            (Slope::Improving | Slope::Worsening, Implausibility::Logical) => Directive::ChangeApproach,
            (Slope::Improving | Slope::Worsening, Implausibility::Environmental) => Directive::Refine,
        }),
    }
}

/// One row of the table as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// From 1 to 24.
    pub cell: u8,
    /// Condition on ∇L.
    pub grad_l: &'static str,
    /// Condition on D.
    #[serde(rename = "D")]
    pub d: &'static str,
    /// Condition on P.
    #[serde(rename = "P")]
    pub p: &'static str,
    /// Condition on Ω.
    #[serde(rename = "Omega")]
    pub omega: &'static str,
    /// What is done.
    pub macro_state: &'static str,
    /// How hard.
    pub urgency: Urgency,
}

/// The 24 rows in order, made from [`decide`].
pub fn table() -> Vec<Row> {
    let mut rows = Vec::with_capacity(24);
    for slope in [Slope::Improving, Slope::Plateau, Slope::Worsening] {
        for distance in [Distance::Near, Distance::Far] {
            for resources in [Resources::Left, Resources::Spent] {
                for implausibility in [Implausibility::Environmental, Implausibility::Logical] {
                    rows.push(row(Bands {
                        resources,
                        distance,
                        implausibility,
                        slope,
                    }));
                }
            }
        }
    }
    rows
}

const fn row(bands: Bands) -> Row {
    let cell = decide(bands);
    Row {
        cell: cell.number,
        grad_l: match bands.slope {
            Slope::Improving => "≤ −ε",
            Slope::Plateau => "|∇L| < ε",
            Slope::Worsening => "≥ ε",
        },
        d: match bands.distance {
            Distance::Near => "≤ δ",
            Distance::Far => "> δ",
        },
        p: match bands.implausibility {
            Implausibility::Environmental => "≤ ρ",
            Implausibility::Logical => "> ρ",
        },
        omega: match bands.resources {
            Resources::Left => "< θ",
            Resources::Spent => "≥ θ",
        },
        macro_state: cell.choice.name(),
        urgency: bands.slope.urgency(),
    }
}
