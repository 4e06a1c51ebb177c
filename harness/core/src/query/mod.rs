//! Questions to stored results, and what answers are made of. Pure: the store reads, `muster-judge` computes, `muster-report` renders.
//!
//! ```text
//! spec      text -> Selection, Comparison: which results, in ReFrame's syntax
//! figures   the figures of metrics, as they are read
//! pairs     two sets of figures -> the samples of each metric
//! answers   two sets compared, a history, references that are suggested
//! remarks   what people have said of nights
//! causes    failures -> groups, since when, and what changed
//! ```

pub mod answers;
pub mod causes;
pub mod figures;
pub mod pairs;
pub mod remarks;
pub mod spec;
