//! R3: carries out one subtask with tools behind an effect gate.
