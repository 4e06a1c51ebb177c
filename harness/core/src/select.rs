//! Which cases run: the filters of the command line.
