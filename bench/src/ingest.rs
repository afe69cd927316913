//! Heartbeats and frontend logs compared with the machine's maximum, and how much a flood of both
//! slows down token requests.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;
use xtask::command::output;
use xtask::terminal;
use xtask::workspace::Workspace;

use super::contenders::{self, Settings, load, token_script};
use super::process::Process;
use super::statistics::{Estimate, median_of};
use super::wrk::{self, CONNECTIONS, Load, script};

/// Rounds; each round measures everything once.
const ROUNDS: usize = 9;
/// Connections that send logs: of one game's requests, 32 may wait for the store.
const LOG_CONNECTIONS: usize = 32;
/// Records in one log request.
pub(super) const RECORDS: usize = 50;

/// The medians of the rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Ingest {
    /// Heartbeats a second.
    pub(super) beats: Estimate,
    /// The same for a bare handler that keeps the last heartbeats in memory.
    pub(super) bare_beats: Estimate,
    /// Heartbeats divided by those of the bare handler.
    pub(super) beats_ratio: Estimate,
    /// Log records a second.
    pub(super) records: Estimate,
    /// Log records divided by the rows that SQLite alone writes in batches of 100.
    pub(super) records_ratio: Estimate,
    /// The 99th percentile of `POST /token` while both run at full speed, divided by the idle one.
    pub(super) token_p99_ratio: Estimate,
}

/// What one round measured.
struct Round {
    beats: f64,
    bare_beats: f64,
    records: f64,
    raw: f64,
    token_p99_ratio: f64,
}

/// Measures all of it.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Ingest> {
    let settings = Settings {
        unlimited: true,
        ..Settings::default()
    };
    let server = contenders::server(workspace, &folder.join("ingest"), settings)?;
    let bare = Process::start(&mut Command::new(
        workspace.binary(true, "examples/bare_beat"),
    ))?;
    let cookie = contenders::visit(&server)?;
    let token = contenders::token(&server, &cookie)?;
    let (demo, bearer) = (server.host("demo"), format!("Bearer {token}"));
    let headers = [
        ("Host", demo.as_str()),
        ("Content-Type", "application/json"),
        ("Authorization", bearer.as_str()),
    ];
    let page = "AAAAAAAAAAAAAAAAAAAAAA";
    let beat = json!({ "page": page }).to_string();
    let path = "/__platform/heartbeat";
    let beats = load(
        folder,
        "heartbeat",
        &server,
        "beats",
        path,
        &script(&headers, Some(&beat)),
    )?;
    let bare_beats = load(
        folder,
        "bare beat",
        &bare,
        "bare-beats",
        path,
        &script(&headers, Some(&beat)),
    )?;
    let logs = script(&headers, Some(&records(page)));
    let logs = load(
        folder,
        "frontend log",
        &server,
        "logs",
        "/__platform/logs",
        &logs,
    )?;
    let tokens = token_script(&server, Some(&cookie));
    let tokens = load(
        folder,
        "token under load",
        &server,
        "tokens",
        "/token",
        &tokens,
    )?;

    let mut rounds = Vec::new();
    for number in 1..=ROUNDS {
        terminal::note(&format!(
            "bench: heartbeats and logs, round {number} of {ROUNDS}"
        ));
        let mut raw = Command::new(workspace.binary(true, "examples/raw_log_rows"));
        raw.arg(folder.join("raw"));
        rounds.push(round(&beats, &bare_beats, &logs, &tokens, &mut raw)?);
    }
    Ok(medians(&rounds))
}

/// One round: everything in turn, then tokens while heartbeats and logs are sent as fast as
/// possible.
fn round(
    beats: &Load,
    bare_beats: &Load,
    logs: &Load,
    tokens: &Load,
    raw: &mut Command,
) -> Result<Round> {
    let (beat, bare) = (wrk::run(beats)?, wrk::run(bare_beats)?);
    let log = wrk::run_on(logs, LOG_CONNECTIONS)?;
    let log = log.per_second * RECORDS as f64;
    let raw = output(raw)?;
    let raw = raw
        .trim()
        .parse::<f64>()
        .context("raw_log_rows printed no rate")?;
    let idle = wrk::run(tokens)?;
    let busy = std::thread::scope(|scope| {
        let floods = [(beats, CONNECTIONS), (logs, LOG_CONNECTIONS)]
            .map(|(load, connections)| scope.spawn(move || wrk::run_on(load, connections)));
        let busy = wrk::run(tokens);
        for flood in floods {
            // It only causes load; if it fails, the next round reports that.
            let _ = flood.join();
        }
        busy
    })?;
    Ok(Round {
        beats: beat.per_second,
        bare_beats: bare.per_second,
        records: log,
        raw,
        token_p99_ratio: busy.p99_milliseconds / idle.p99_milliseconds,
    })
}

fn medians(rounds: &[Round]) -> Ingest {
    let of = |figure: fn(&Round) -> f64| median_of(rounds, figure);
    Ingest {
        beats: of(|round| round.beats),
        bare_beats: of(|round| round.bare_beats),
        beats_ratio: of(|round| round.beats / round.bare_beats),
        records: of(|round| round.records),
        records_ratio: of(|round| round.records / round.raw),
        token_p99_ratio: of(|round| round.token_p99_ratio),
    }
}

/// The body of a request with [`RECORDS`] log records of this page.
pub(super) fn records(page: &str) -> String {
    let records = (0..RECORDS).map(|number| {
        json!({
            "time": 1_800_000_000_000_u64, "level": "info", "source": "console",
            "message": format!("the player picked up coin {number} of level 3 at 12.5, 88.0"),
        })
    });
    json!({ "page": page, "records": records.collect::<Vec<_>>() }).to_string()
}
