//! Several nodes behind a balancer, of real programs. `cargo xtask test cluster` runs all of them.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test reports by failing, and prints what it measured"
)]

mod cluster;
