//! Several nodes behind a balancer, of real programs.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test reports by failing, and prints what it measured"
)]

mod cluster;
mod faults;
mod race;
mod redis;
mod starts;
mod streams;
