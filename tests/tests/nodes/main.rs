//! Several nodes behind a balancer, of real programs.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports by failing"
)]

mod cluster;
mod faults;
mod race;
mod starts;
mod streams;
