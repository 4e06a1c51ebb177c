//! The front of a run: one libtest-mimic trial per case, which only waits for its result.
