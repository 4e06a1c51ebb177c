//! Logs on disk while they arrive, and the stdout they become.
