//! The control loop on bare numbers: observe a gap, get a move (design §12).
//!
//! This is all that a controller of something else than artoo needs. Owns what is carried from round to round; knows no
//! tasks, tools or messages.

use artoo_protocol::message::{Cause, Directive, Loss, Urgency};
use artoo_protocol::{Finite, Millis, Unit01};

use crate::loss::{gradient, loss, omega, task_part};
use crate::params::{FirstRound, Gradient, NearGoal, Params, WrongButImproving};
use crate::table::{Bands, Cell, Choice, Distance, Resources, Slope, above, decide, quantise};

/// What the sensor reports about one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Distance between what was wanted and what there is.
    pub d: Unit01,
    /// Implausibility of the approach.
    pub p: Unit01,
    /// Running time so far.
    pub elapsed: Millis,
    /// The sensor refused a result that looked complete: this is never close enough.
    pub rejected: bool,
    /// Something outside the controller ends the task whatever the table says.
    pub veto: Option<Cause>,
    /// The sensor advises to stop; turns an action into this ending, and leaves a success alone.
    pub advice: Option<Cause>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Change the plan in this way.
    Direct(Directive),
    /// Stop: close enough.
    Succeed,
    /// Stop without success.
    Abandon(Cause),
}

/// One decision with everything that it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// Signals and loss.
    pub loss: Loss,
    /// ∇L.
    pub grad_l: Finite,
    /// The part of ∇L that D and P make, at constant β.
    pub grad_task: Finite,
    /// Where the point lies.
    pub bands: Bands,
    /// Its cell and what the table says.
    pub cell: Cell,
    /// How hard to apply a directive.
    pub urgency: Urgency,
    /// Worsening rounds in a row, this one among them.
    pub worsening: u32,
    /// What is done, after budgets, kill-switch and advice.
    pub decision: Move,
}

/// What the controller remembers between rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Control {
    round: u32,
    worsening: u32,
    previous: Option<(Finite, Finite)>,
}

impl Control {
    /// How many gaps were observed.
    pub const fn rounds(&self) -> u32 {
        self.round
    }

    /// Takes one observation and decides.
    ///
    /// Order: hard time budget and veto, then the table, then the kill-switch, then the sensor's advice. The last two only
    /// ever turn an action into an ending.
    pub fn observe(&mut self, params: &Params, observation: Observation) -> Round {
        self.round = self.round.saturating_add(1);
        let resources = omega(params, self.round, observation.elapsed);
        let loss = loss(params, observation.d, observation.p, resources);
        let task = task_part(params, observation.d, observation.p);
        let grad_l = gradient(self.previous.map(|(total, _)| total), loss.l);
        let grad_task = gradient(self.previous.map(|(_, task)| task), task);
        self.previous = Some((loss.l, task));

        let steering = match params.gradient {
            Gradient::Total => grad_l,
            Gradient::Task => grad_task,
        };
        self.worsening = if is_worsening(params, steering, grad_task) {
            self.worsening.saturating_add(1)
        } else {
            0
        };

        let mut bands = quantise(params, &loss, steering);
        if observation.rejected {
            bands.distance = Distance::Far;
        }
        if self.round == 1 && params.first_round == FirstRound::Movement {
            bands.slope = Slope::Improving;
        }
        let cell = decide(bands);
        Round {
            number: self.round,
            loss,
            grad_l,
            grad_task,
            bands,
            cell,
            urgency: bands.slope.urgency(),
            worsening: self.worsening,
            decision: resolve(
                params,
                &observation,
                bands,
                wanted(params, bands, cell.choice),
                kill_switch(params, self.worsening),
            ),
        }
    }

    /// Signals and gradient of an ending that is not a new gap: the round does not count.
    pub fn read(&self, params: &Params, d: Unit01, p: Unit01, elapsed: Millis) -> (Loss, Finite) {
        let loss = loss(params, d, p, omega(params, self.round, elapsed));
        (loss, gradient(self.previous.map(|(total, _)| total), loss.l))
    }
}

/// Whether a round counts for the kill-switch: the loss rises by more than ε, and the task itself has a part in that.
/// Time alone must not kill a task.
pub fn is_worsening(params: &Params, grad_l: Finite, grad_task: Finite) -> bool {
    above(grad_l.get(), params.epsilon.get()) && above(grad_task.get(), 0.0)
}

/// Law 2: so many worsening rounds in a row, and the task is diverging; no budget will help.
pub const fn kill_switch(params: &Params, worsening: u32) -> bool {
    params.kill_after > 0 && worsening >= params.kill_after
}

/// What is wanted in a cell: what the table says, but for the one cell that a parameter may read otherwise.
fn wanted(params: &Params, bands: Bands, choice: Choice) -> Choice {
    let improving_by_a_wrong_approach =
        bands.slope == Slope::Improving && choice == Choice::Act(Directive::ChangeApproach);
    match params.wrong_but_improving {
        WrongButImproving::Refine if improving_by_a_wrong_approach => Choice::Act(Directive::Refine),
        WrongButImproving::Refine | WrongButImproving::ChangeApproach => choice,
    }
}

fn resolve(params: &Params, observation: &Observation, bands: Bands, choice: Choice, killed: bool) -> Move {
    if observation.elapsed >= params.time_budget_ms {
        return Move::Abandon(Cause::Budget);
    }
    if let Some(cause) = observation.veto {
        return Move::Abandon(cause);
    }
    if params.near_goal == NearGoal::Finish && bands.distance == Distance::Near {
        let ends = bands.resources == Resources::Spent || killed || observation.advice.is_some();
        return if ends {
            Move::Succeed
        } else {
            Move::Direct(Directive::Refine)
        };
    }
    match choice {
        Choice::Abandon => Move::Abandon(Cause::Resources),
        Choice::Success => Move::Succeed,
        Choice::Act(_) if killed => Move::Abandon(Cause::Divergence),
        Choice::Act(directive) => observation.advice.map_or(Move::Direct(directive), Move::Abandon),
    }
}
