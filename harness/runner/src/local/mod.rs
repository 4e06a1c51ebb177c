//! The `local` scheduler: processes of this machine.
