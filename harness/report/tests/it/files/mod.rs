//! What other programs read.

mod annotations;
mod gitlab;
mod json;
mod junit;
mod perflog;
