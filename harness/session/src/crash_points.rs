//! The points of a case's life between which the harness may be killed.
//!
//! After each of them the store, the stage folder and the scheduler together say what was done, so that `muster attach` goes on
//! and `muster sweep` leaves nothing. A debug build proves it: `RFM_CRASH_AT=launched` ends the process there as SIGKILL
//! does, `RFM_CRASH_AT=launched:3` when the third case gets there. `RFM_INTERRUPT_AT` is the same with SIGINT. In a release build
//! this is nothing.

/// What was just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// The identifier is drawn and the plan is made.
    Planned,
    /// The plan is in the store.
    IntentStored,
    /// The scheduler is about to be asked.
    LaunchStarted,
    /// The identifier is taken, and nothing of ours has it any more.
    Taken,
    /// The plan with another one is in the store.
    Redrawn,
    /// The scheduler has launched it.
    Launched,
    /// And that is queued for the store.
    LaunchStored,
    /// The first status has come.
    Seen,
    /// It runs.
    Running,
    /// It ended by itself.
    Ended,
    /// Its log is on disk.
    LogDrained,
    /// A piece of it has its place in the stdout, and is in its own file still.
    Assembling,
    /// It is judged, and its files are kept.
    Judged,
    /// Nothing of it runs, and what is not kept is gone.
    CleanedUp,
    /// Its result is in the store.
    ResultStored,
    /// The result is reported.
    Reported,
}

/// A point is reached.
#[cfg(not(debug_assertions))]
pub(crate) fn reached(_: Point) {}

/// Kills or interrupts the process if an environment variable names this point.
#[cfg(debug_assertions)]
pub(crate) fn reached(point: Point) {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    };
    struct Order {
        point: String,
        times: u32,
        signal: Signal,
        reached: AtomicU32,
    }
    static ORDERS: LazyLock<Vec<Order>> = LazyLock::new(|| {
        let order = |(variable, signal)| {
            let wanted = std::env::var(variable).ok()?;
            let (point, times) = wanted.split_once(':').unwrap_or((&wanted, "1"));
            Some(Order { point: point.replace('-', ""), times: times.parse().ok()?, signal, reached: AtomicU32::new(0) })
        };
        [("RFM_CRASH_AT", Signal::KILL), ("RFM_INTERRUPT_AT", Signal::INT)].into_iter().filter_map(order).collect()
    });
    for order in ORDERS.iter().filter(|order| format!("{point:?}").eq_ignore_ascii_case(&order.point)) {
        if order.reached.fetch_add(1, Ordering::SeqCst) + 1 == order.times {
            let _ = kill_process(getpid(), order.signal);
        }
    }
}
