//! Requests that are sent as fast as possible to both servers: tokens, deployed files, and what pages
//! send besides. For each, the rate, and the processor time of the server for one, which differs less
//! from turn to turn.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rcgen::{CertificateParams, KeyPair};
use xtask::terminal::Stopwatch;

use super::servers::{self, Sides};
use super::turns::{Side, in_turns};
use super::verdict::{Better, Figure};
use super::{Both, h2load};
use crate::hosting::entity_tag;
use crate::nodes::{self, connections};
use crate::process::Process;
use crate::wrk::{self, CONNECTIONS, Load};

/// How long one kind of request is measured at most.
const LOAD_PERIOD: Duration = Duration::from_secs(80);
/// How long a server may take to compress a file.
const COMPRESSION_TIMEOUT: Duration = Duration::from_secs(20);
/// Seconds of one turn.
const SECONDS: u32 = 1;
/// A deployed file: the largest of the demo game, which every platform under `localhost` serves.
const FILE: &str = "/view.js";
/// The names of the certificate.
const NAMES: [&str; 2] = ["platform.localhost", "*.platform.localhost"];

/// Compares tokens of guests who return, and of new ones.
pub(super) fn tokens(both: &Both<'_>) -> Result<Vec<Figure>> {
    let sides = Sides::make(|side| with_loads(both, side, "tokens"))?;
    let mut figures = Vec::new();
    for kind in [0, 1] {
        figures.extend(of_load(&sides, kind)?);
    }
    Ok(figures)
}

/// Compares heartbeats, and log records.
pub(super) fn traffic(both: &Both<'_>) -> Result<Vec<Figure>> {
    let sides = Sides::make(|side| with_loads(both, side, "traffic"))?;
    let mut figures = Vec::new();
    for kind in [2, 3] {
        figures.extend(of_load(&sides, kind)?);
    }
    Ok(figures)
}

/// Compares a file, the answer that it has not changed, and the file over HTTP/2 and TLS.
pub(super) fn files(both: &Both<'_>) -> Result<Vec<Figure>> {
    let plain = Sides::make(|side| {
        let server = servers::start(both, side, "files", &[])?;
        let loads = loads_of_file(both.folder, side, &server)?;
        Ok((server, loads))
    })?;
    let mut figures = Vec::new();
    for kind in [0, 1] {
        figures.extend(of_load(&plain, kind)?);
    }
    let secure = Sides::make(|side| secure(both, side))?;
    let [rates, times] = in_turns("HTTP/2", LOAD_PERIOD, |side| {
        let server = secure.of(side);
        let (answers, time) = timed(server, || {
            let url = format!("https://demo.platform.localhost{FILE}");
            h2load::run(server.address, &url, SECONDS)
        })?;
        Ok([answers.per_second, time / answers.succeeded])
    })?;
    figures.extend(figures_of("a file over HTTP/2 and TLS", &rates, &times));
    Ok(figures)
}

/// A server with loads on it.
type Loaded<const LOADS: usize> = (Process, [Load; LOADS]);

/// A server, and the loads of tokens, heartbeats and logs.
fn with_loads(both: &Both<'_>, side: Side, name: &str) -> Result<Loaded<4>> {
    let server = servers::start(both, side, name, &[])?;
    let files = format!("{name}-{}", side.name());
    let loads = nodes::loads(both.folder, &files, &server)?;
    Ok((server, loads))
}

/// Requests for a file, and for one that the browser has.
fn loads_of_file(folder: &Path, side: Side, server: &Process) -> Result<[Load; 2]> {
    let host = server.host("demo");
    let answer = in_brotli(server, &host)?;
    let tag = entity_tag(&answer).with_context(|| format!("{FILE} has no ETag"))?;
    let accept = [("Host", host.as_str()), ("Accept-Encoding", "br")];
    let tagged = [&accept[..], &[("If-None-Match", tag.as_str())]].concat();
    let load = |name, kind: &str, headers: &[(&str, &str)]| {
        let script = folder.join(format!("{kind}-{}.lua", side.name()));
        std::fs::write(&script, wrk::get_script(headers))
            .with_context(|| format!("cannot write {}", script.display()))?;
        anyhow::Ok(Load {
            name,
            url: format!("http://{}{FILE}", server.address),
            script,
        })
    };
    Ok([
        load("a file", "file", &accept)?,
        load("a file that has not changed", "unchanged", &tagged)?,
    ])
}

/// The response with the file once the server has compressed it, which the first request only begins.
fn in_brotli(server: &Process, host: &str) -> Result<String> {
    let stopwatch = Stopwatch::start();
    loop {
        let answer = server.ask("GET", host, FILE, "Accept-Encoding: br\r\n")?;
        if answer.to_ascii_lowercase().contains("content-encoding: br") {
            return Ok(answer);
        }
        ensure!(
            stopwatch.elapsed() < COMPRESSION_TIMEOUT,
            "{FILE} does not come in brotli"
        );
        servers::pause();
    }
}

/// A server that speaks TLS itself, with a certificate that only this program trusts.
fn secure(both: &Both<'_>, side: Side) -> Result<Process> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(NAMES.map(str::to_owned))?.self_signed(&key)?;
    let write = |name: &str, text: String| {
        let file = both.folder.join(format!("{}-{name}", side.name()));
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        anyhow::Ok(file.to_string_lossy().into_owned())
    };
    let variables = [
        ("PLATFORM_ORIGIN", "https://platform.localhost".to_owned()),
        ("PLATFORM_TLS", "files".to_owned()),
        (
            "PLATFORM_TLS_CERTIFICATES",
            write("certificate.pem", certificate.pem())?,
        ),
        ("PLATFORM_TLS_KEYS", write("key.pem", key.serialize_pem())?),
    ];
    servers::start(both, side, "secure", &variables)
}

/// Compares one load in turns.
fn of_load<const LOADS: usize>(sides: &Sides<Loaded<LOADS>>, kind: usize) -> Result<[Figure; 2]> {
    let name = sides.of(Side::New).1[kind].name;
    let [rates, times] = in_turns(name, LOAD_PERIOD, |side| {
        let (server, loads) = sides.of(side);
        let load = &loads[kind];
        let count = connections(load).min(CONNECTIONS);
        let (sample, time) = timed(server, || wrk::run_for(load, count, SECONDS))
            .with_context(|| format!("{name} failed"))?;
        Ok([sample.per_second, time / sample.responses])
    })?;
    Ok(figures_of(name, &rates, &times))
}

fn figures_of(
    name: &str,
    rates: &[super::verdict::Pair],
    times: &[super::verdict::Pair],
) -> [Figure; 2] {
    [
        Figure::measured(format!("{name}, per second"), Better::More, rates),
        Figure::measured(format!("{name}, processor time, µs"), Better::Less, times),
    ]
}

/// What the work gave, and the microseconds of processor time that the server used meanwhile.
fn timed<T>(server: &Process, work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let before = server.processor_seconds()?;
    let result = work()?;
    let used = server.processor_seconds()? - before;
    Ok((result, used * 1e6))
}
