//! Questions about stored results, one async function each: a [`Reader`](muster_store::Reader) and the time go in, values come out. The
//! command line prints the values, and a server can send them. A question writes nothing: [`nights::keep`] is the one function here
//! that does, and a caller decides whether to call it.
//!
//! ```text
//! asked       a selection in the syntax of ReFrame -> its sessions
//! sessions    which sessions have which cases
//! nights      what changed in a night, and why
//! causes      why cases failed, and since when
//! compare     two sets of sessions
//! history     metrics over time
//! references  bounds that healthy machines keep
//! owners      signs of the processes that own sessions
//! ```

mod asked;
pub mod causes;
pub mod compare;
mod error;
pub mod history;
pub mod nights;
pub mod owners;
pub mod references;
pub mod sessions;
mod variables;

pub use asked::{Asked, LATEST};
pub use error::{Unanswered, nothing_stored};
