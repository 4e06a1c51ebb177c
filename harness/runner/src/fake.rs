//! The `fake` scheduler: plays a script of statuses, logs, delays and errors.
