//! The engine: order, `max_jobs` and cancelling of all cases of a session.
