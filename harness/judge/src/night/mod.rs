//! The verdict of a night over all metrics of a system, with one stated error rate.
//!
//! ```text
//! input      what is judged: metrics, values, annotations, settings
//! segment    which values belong together: since the last change of the metric, or of its check
//! word       the words of verdicts
//! gaps       how likely a value falls between which values of the baseline, with and without a change
//! evidence   M: how much more likely the values are with a change
//! constants  what metrics that are constant say of each other
//! change     a change: since when, by how much, and what became of it
//! judge      all metrics of a system together: the words
//! event      changes that go together
//! explain    the arithmetic of one verdict
//! ```

mod change;
mod constants;
mod event;
mod evidence;
mod explain;
mod gaps;
mod input;
mod judge;
mod segment;
mod word;

pub use change::{Change, ChangeId, ChangeState, Turn};
pub use event::Event;
pub use evidence::{Evidence, LOOKED_AT, SHORTEST_BASELINE, evidence};
pub use explain::{Explanation, Step, explain};
pub use gaps::{ALTERNATIVES, Alternative, Side, factor};
pub use input::{Metric, Plan, Settings, System, Value};
pub use judge::{Coverage, Family, NightVerdicts, Verdict, judge, judge_with, replay};
pub use muster_core::{
    night::Night,
    query::{
        figures::Metric as MetricName,
        remarks::{Remark, RemarkKind},
    },
};
pub use segment::Began;
pub use word::Word;
