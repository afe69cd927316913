//! The runtime in real browsers, on real pages of a real platform.

mod harness;

fn main() -> std::process::ExitCode {
    let files = [harness::TESTS];
    platform_tests::suite::run(&files.concat())
}
