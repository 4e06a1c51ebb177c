//! Parameters and their product: the variants of a check.
