//! R6: a hash-chained log of everything on the bus, and reports for the operator.
