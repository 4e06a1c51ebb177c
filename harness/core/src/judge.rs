//! Judging a stdout: sanity, figures, references, and the outcome they make together.
