//! The changes of a night, per system. Nights before it that nobody has judged are judged first.
//!
//! ```text
//! systems -> Chosen -judged-> JudgedNight -keep-> the database: the next call goes on from there
//!                             metric, change: what words name in it; why: what else is known of a change
//! ```

mod chosen;
mod judged;
mod named;
mod why;

pub use chosen::{Chosen, systems};
pub use judged::{JudgedNight, in_the_future, judged, keep};
pub use named::{Place, change, metric, place_of};
pub use why::why;
