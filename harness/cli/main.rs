//! The muster binary.

fn main() -> std::process::ExitCode {
    muster::main(&std::env::args_os().collect::<Vec<_>>())
}
