//! Who speaks on the bus: the eight roles, the person, and the runtime that hosts them (design §2).

use serde::{Deserialize, Serialize};

/// A participant of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Perceiver: the reference signal.
    R1,
    /// Planner and dispatcher: the actuator.
    R2,
    /// Executor: the plant.
    R3,
    /// Agent-Validator: sensor and controller of the fast loop.
    R4a,
    /// Meta-Validator: sensor of the medium loop.
    R4b,
    /// Shared Memory.
    R5,
    /// Auditor: sees everything, is addressed only by the operator.
    R6,
    /// Goal Gradient Solver: controller of the medium loop.
    R7,
    /// The person, through whichever front end is in use.
    User,
    /// The process that hosts the roles: it keeps the hard budgets of tokens and money.
    Runtime,
}

impl Role {
    /// Every participant, in order.
    pub const ALL: [Self; 10] = [
        Self::R1,
        Self::R2,
        Self::R3,
        Self::R4a,
        Self::R4b,
        Self::R5,
        Self::R6,
        Self::R7,
        Self::User,
        Self::Runtime,
    ];

    /// The role's name in words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::R1 => "Perceiver",
            Self::R2 => "Planner",
            Self::R3 => "Executor",
            Self::R4a => "Agent-Validator",
            Self::R4b => "Meta-Validator",
            Self::R5 => "Shared Memory",
            Self::R6 => "Auditor",
            Self::R7 => "Goal Gradient Solver",
            Self::User => "User",
            Self::Runtime => "Runtime",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}
