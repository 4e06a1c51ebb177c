//! Results in, text out.
