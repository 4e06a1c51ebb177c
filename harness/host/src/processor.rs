//! The processor on which a thread runs.

/// Keeps this thread, and the threads and processes that it starts from now on, on the processor on which it is. It is meant for threads
/// that take turns: what one hands to the other stays in the caches of that processor, and none has to be woken on another. A process
/// that launches jobs must not call it, for its jobs would share the processor.
pub fn stay_on_one() {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
        let here = sched_getcpu();
        if here < CpuSet::MAX_CPU {
            let mut only = CpuSet::new();
            only.set(here);
            // Where it is refused, the work takes longer, and no more.
            let _ = sched_setaffinity(None, &only);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;
    use std::thread;

    #[test]
    fn a_thread_and_those_that_it_starts_stay_and_others_do_not() {
        let allowed = || sched_getaffinity(None).unwrap().count();
        let before = allowed();
        let stays = thread::spawn(move || {
            stay_on_one();
            (allowed(), thread::spawn(allowed).join().unwrap())
        });
        assert_eq!(stays.join().unwrap(), (1, 1));
        assert_eq!(allowed(), before);
    }
}
