//! `valid_systems` and `valid_prog_environs`: which partitions and environments a check may run in.
