//! The runtime in real browsers, on real pages of a real platform.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test reports by failing"
)]

mod accounts;
mod answers;
mod calls;
mod engines;
mod failures;
mod focus;
mod harness;
mod heartbeat;
mod identity;
mod loading;
mod local;
mod logs;
mod pages;
mod profile;
mod program;
mod sending;
mod surroundings;
mod suspension;
mod tokens;

fn main() -> std::process::ExitCode {
    let files = [
        harness::TESTS,
        loading::TESTS,
        program::TESTS,
        identity::TESTS,
        accounts::TESTS,
        profile::TESTS,
        suspension::TESTS,
        pages::TESTS,
        tokens::TESTS,
        calls::TESTS,
        answers::TESTS,
        failures::TESTS,
        logs::TESTS,
        sending::TESTS,
        heartbeat::TESTS,
        local::TESTS,
        focus::TESTS,
        engines::TESTS,
        surroundings::TESTS,
    ];
    platform_tests::suite::run(&files.concat())
}
