//! Maps that hold the weights.
