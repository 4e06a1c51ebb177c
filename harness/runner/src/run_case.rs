//! One case's life, from its turn to its result.
