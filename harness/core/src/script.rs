//! The job script: what `executable` and the commands around it become.
