//! R7, the Goal Gradient Solver: a controller with a loss and its gradient.
