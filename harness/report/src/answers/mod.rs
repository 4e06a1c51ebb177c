//! Answers of `muster results` to questions over many sessions.

pub mod causes;
pub mod compared;
pub mod grouped;
pub mod history;
pub mod said;
mod scale;
pub mod suggested;
