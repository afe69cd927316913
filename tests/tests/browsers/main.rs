//! The runtime in real browsers, on real pages of a real platform.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test reports by failing"
)]

mod calls;
mod harness;
mod identity;
mod loading;
mod tokens;

fn main() -> std::process::ExitCode {
    let files = [
        harness::TESTS,
        loading::TESTS,
        identity::TESTS,
        tokens::TESTS,
        calls::TESTS,
    ];
    platform_tests::suite::run(&files.concat())
}
