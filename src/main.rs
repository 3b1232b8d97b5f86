//! The `piton` binary: parse, call, print, exit.

use std::process::ExitCode;

fn main() -> ExitCode {
    piton::cli::main()
}
