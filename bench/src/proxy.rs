//! How much time the platform adds to a request to a game's backend.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use xtask::terminal;
use xtask::workspace::Workspace;

use super::contenders::{self, Settings, load};
use super::large;
use super::process::Process;
use super::statistics::{Estimate, median_of};
use super::wrk::{self, Sample, script};

/// Rounds; each round measures both ways once.
const ROUNDS: usize = 9;
/// A game of the large store, which is filled as little as possible.
const GAME: &str = "game-000";
const SHARE: f64 = 0.0001;
/// The path of the game's backend settings.
const BACKEND: &str = "/api/projects/game-000/environments/prod/backend";
/// The path that the backend serves.
const PATH: &str = "/api/move";

/// The medians of the rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Proxy {
    /// The median time of requests sent directly to the backend, one after the other, in
    /// milliseconds.
    pub(super) direct_p50: Estimate,
    /// The same through the platform.
    pub(super) proxied_p50: Estimate,
    /// What the platform adds to the median, in milliseconds.
    pub(super) added_p50: Estimate,
    /// Requests per second through the platform divided by those sent directly, on many
    /// connections.
    pub(super) ratio: Estimate,
}

/// Measures both ways.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Proxy> {
    let backend = Process::start(&mut Command::new(
        workspace.binary(true, "examples/bare_backend"),
    ))?;
    let data = folder.join("proxy");
    let server = owned(workspace, &data, &backend)?;
    let host = server.host(GAME);
    let headers = [
        ("Host", host.as_str()),
        ("Content-Type", "application/json"),
    ];
    let body = json!({"move": "e2e4", "player": 1}).to_string();
    let text = script(&headers, Some(&body));
    let direct = load(folder, "backend", &backend, "direct", PATH, &text)?;
    let proxied = load(folder, "proxied backend", &server, "proxied", PATH, &text)?;

    let mut rounds = Vec::new();
    // The first turn is a warm-up and does not count.
    for number in 0..=ROUNDS {
        terminal::note(&format!("bench: proxy, round {number} of {ROUNDS}"));
        let [straight, around] = [&direct, &proxied].map(|load| wrk::run_on(load, 1));
        let (straight, around) = (straight?, around?);
        let [many, many_around] = [&direct, &proxied].map(wrk::run);
        let (many, many_around) = (many?, many_around?);
        if number > 0 {
            rounds.push([straight, around, many, many_around]);
        }
    }
    let of = |figure: fn(&[Sample; 4]) -> f64| median_of(&rounds, figure);
    Ok(Proxy {
        direct_p50: of(|[straight, ..]| straight.p50_milliseconds),
        proxied_p50: of(|[_, around, ..]| around.p50_milliseconds),
        added_p50: of(|[straight, around, ..]| around.p50_milliseconds - straight.p50_milliseconds),
        ratio: of(|[.., many, many_around]| many_around.per_second / many.per_second),
    })
}

/// A server with a game whose owner set `backend` as its backend.
fn owned(workspace: &Workspace, data: &Path, backend: &Process) -> Result<Process> {
    let filled = large::fill(workspace, data, SHARE)?;
    let server = contenders::server(workspace, data, Settings::default())?;
    let platform = server.origin.trim_start_matches("http://");
    let console = contenders::token_for(&server, &filled.cookie, &server.origin)?;
    let headers = format!("Authorization: Bearer {console}\r\nContent-Type: application/json\r\n");
    let body = json!({"url": format!("http://{}", backend.address), "paths": ["/api/"]});
    server.send("PUT", platform, BACKEND, &headers, &body.to_string())?;
    Ok(server)
}
