//! The runtime in real browsers, on real pages of a real platform.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test reports by failing"
)]

mod accounts;
mod admin;
mod apart;
mod build;
mod build_bounds;
mod build_games;
mod build_hostile;
mod build_stream;
mod calls;
mod clicks;
mod cookies;
mod deletion;
mod devices;
mod engines;
mod failures;
mod fetch_errors;
mod focus;
mod harness;
mod heartbeat;
mod identity;
mod journey;
mod keyboard;
mod loading;
mod local;
mod logs;
mod page_environment;
mod pages;
mod panes;
mod profile;
mod program;
mod project;
mod sending;
mod stacks;
mod suspension;
mod takedown;
mod tls;
mod tokens;
mod traces;

fn main() -> std::process::ExitCode {
    let files = [
        harness::TESTS,
        loading::TESTS,
        program::TESTS,
        identity::TESTS,
        journey::TESTS,
        accounts::TESTS,
        profile::TESTS,
        deletion::TESTS,
        devices::TESTS,
        clicks::TESTS,
        cookies::TESTS,
        suspension::TESTS,
        takedown::TESTS,
        stacks::TESTS,
        pages::TESTS,
        build::TESTS,
        project::page::TESTS,
        project::palette::TESTS,
        project::people::TESTS,
        project::players::TESTS,
        project::log::TESTS,
        project::errors::TESTS,
        project::settings::TESTS,
        project::domains::TESTS,
        project::shifts::TESTS,
        project::listing::TESTS,
        project::previews::TESTS,
        project::upload::TESTS,
        project::takedown::TESTS,
        project::webhook::TESTS,
        admin::page::TESTS,
        admin::players::TESTS,
        admin::platform::TESTS,
        build_bounds::TESTS,
        build_games::TESTS,
        build_hostile::TESTS,
        build_stream::TESTS,
        panes::TESTS,
        keyboard::TESTS,
        tls::TESTS,
        apart::TESTS,
        apart::visitors::TESTS,
        apart::worker::TESTS,
        apart::pages::TESTS,
        tokens::TESTS,
        calls::TESTS,
        traces::TESTS,
        fetch_errors::TESTS,
        failures::TESTS,
        logs::TESTS,
        sending::TESTS,
        heartbeat::TESTS,
        local::TESTS,
        focus::TESTS,
        engines::TESTS,
        page_environment::TESTS,
    ];
    platform_tests::suite::run(&files.concat())
}
