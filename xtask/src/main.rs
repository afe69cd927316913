//! The program of `cargo xtask`; the [library](xtask) is all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main()
}
