//! The muster binary.

fn main() -> std::process::ExitCode {
    muster::run(&std::env::args_os().collect::<Vec<_>>(), muster::SCHEDULERS)
}
