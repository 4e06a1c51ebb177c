//! Cases as jobs, on a cluster that works: what reaches Slurm, and how jobs end.

pub(crate) mod ends;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod shape;
