//! Several nodes behind a balancer, of real programs.

#![expect(clippy::panic, reason = "a test reports by failing")]

mod cluster;
mod race;
