//! The store: the rates of both back ends beside their bare databases, and how often a request has
//! to wait for PostgreSQL.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use platform_cluster::{Postgres, Relay};
use serde::Deserialize;
use serde_json::json;
use xtask::command::output;
use xtask::terminal;

use super::Both;
use super::servers::{self, Sides};
use super::subjects::Program;
use super::turns::{Side, in_turns};
use super::verdict::{Better, Figure, Pair};
use crate::contenders;
use crate::ingest;
use crate::process::Process;
use crate::statistics::median;
use crate::wrk::{self, Load, script};

/// How long the rates of one back end are measured at most.
const RATES_PERIOD: Duration = Duration::from_secs(110);
/// Rounds of the example in one turn, and the milliseconds of each part of a round.
const SHORT: [&str; 2] = ["1", "250"];
/// How often each request is sent to count its round trips.
const REQUESTS: usize = 25;
/// What the example measures.
const RATES: [&str; 3] = ["new guests", "look-ups of a session", "log records"];

/// What the example prints.
#[derive(Deserialize)]
struct Rates {
    guests: Rounds,
    lookups: Rounds,
    records: Rounds,
}

/// The rates of the rounds, of the store and of the bare database.
#[derive(Deserialize)]
struct Rounds {
    store: Vec<f64>,
    bare: Vec<f64>,
}

impl Rounds {
    /// The store divided by the bare database, in each round.
    fn ratios(&self) -> Vec<f64> {
        let rounds = self.store.iter().zip(&self.bare);
        rounds.map(|(store, bare)| store / bare).collect()
    }
}

/// Compares the stores.
pub(super) fn measure(both: &Both<'_>) -> Result<Vec<Figure>> {
    let folder = both.folder.join("store");
    std::fs::create_dir_all(&folder)?;
    // The user of PostgreSQL has to enter both.
    for folder in [both.folder, &folder] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    }
    let postgres = Postgres::alone(&folder)?;
    let mut figures = round_trips(both, &postgres)?;
    let mut number = 0;
    figures.extend(rates(both, "PostgreSQL", || {
        number += 1;
        let names = [format!("store_{number}"), format!("bare_{number}")];
        for name in &names {
            postgres.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        }
        Ok(names.map(|name| Postgres::url_at(postgres.port, &name)))
    })?);
    let mut number = 0;
    figures.extend(rates(both, "SQLite", || {
        number += 1;
        let path = folder.display();
        Ok(["store", "bare"].map(|name| format!("sqlite://{path}/{name}-{number}.db")))
    })?);
    Ok(figures)
}

/// Compares the rates of one back end, each divided by that of the bare database in the same round.
/// `places` makes two empty stores.
fn rates(
    both: &Both<'_>,
    back_end: &str,
    mut places: impl FnMut() -> Result<[String; 2]>,
) -> Result<Vec<Figure>> {
    let figure = |(name, pairs): (&str, Vec<Pair>)| {
        let name = format!("{back_end}, {name}, part of the bare database's rate");
        Figure::measured(name, Better::More, &pairs)
    };
    if knows_short_rounds(both, &places()?)? {
        let turns = in_turns(back_end, RATES_PERIOD, |side| {
            let rates = run(both, side, &places()?, &SHORT)?;
            Ok(rates.map(|rounds| median(&rounds).value))
        })?;
        return Ok(RATES.into_iter().zip(turns).map(figure).collect());
    }
    terminal::note(&format!(
        "compare: {back_end}: the old program has no short rounds, so one run follows the other, for a minute and a half each"
    ));
    let old = run(both, Side::Old, &places()?, &[])?;
    let new = run(both, Side::New, &places()?, &[])?;
    let turns = old.into_iter().zip(new).map(|(old, new)| {
        let rounds = old.into_iter().zip(new);
        rounds.map(|(old, new)| Pair { old, new }).collect()
    });
    Ok(RATES.into_iter().zip(turns).map(figure).collect())
}

/// Whether the old program takes the arguments for short rounds: its older versions refuse them.
fn knows_short_rounds(both: &Both<'_>, places: &[String; 2]) -> Result<bool> {
    let mut rates = Command::new(both.old.program(Program::StoreRates));
    rates.args(places).args(["1", "1"]).stdin(Stdio::null());
    let tried = rates.stdout(Stdio::null()).stderr(Stdio::null()).status();
    Ok(tried.context("store_rates cannot be started")?.success())
}

/// Runs the example of one side, and returns the rounds of each rate.
fn run(both: &Both<'_>, side: Side, places: &[String; 2], more: &[&str]) -> Result<[Vec<f64>; 3]> {
    let mut program = Command::new(both.side(side).program(Program::StoreRates));
    let printed = output(program.args(places).args(more))?;
    let rates: Rates =
        serde_json::from_str(printed.trim()).context("the rates of a store cannot be read")?;
    // A database that is not needed any more would only take room.
    for place in places {
        if let Some(file) = place.strip_prefix("sqlite://") {
            remove(Path::new(file));
        }
    }
    Ok([rates.guests, rates.lookups, rates.records].map(|rounds| rounds.ratios()))
}

/// Removes a database of SQLite with the files beside it.
fn remove(file: &Path) {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return;
    };
    let name = name.to_string_lossy().into_owned();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&name) {
            // It lies in a temporary folder, which is removed anyway.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A request, as its method, host, path, headers and body.
struct Request {
    name: &'static str,
    method: &'static str,
    host: String,
    path: &'static str,
    headers: String,
    body: String,
}

/// A server on PostgreSQL, and the relay between them.
struct Relayed {
    server: Process,
    relay: Relay,
}

/// Counts the round trips to PostgreSQL of one request of each kind.
fn round_trips(both: &Both<'_>, postgres: &Postgres) -> Result<Vec<Figure>> {
    terminal::note("compare: round trips to PostgreSQL");
    let counted = Sides::make(|side| {
        let database = format!("trips_{}", side.name());
        postgres.sql("postgres", &format!("CREATE DATABASE {database}"))?;
        let relay = Relay::start(postgres.port)?;
        let url = Postgres::url_at(relay.port, &database);
        let server = servers::start(both, side, "trips", &[("PLATFORM_DATABASE_URL", url)])?;
        let relayed = Relayed { server, relay };
        let requests = relayed.requests()?;
        let counts = requests.iter().map(|request| {
            relayed.warm_up(both.folder, request)?;
            Ok((request.name, relayed.count(request)?))
        });
        counts.collect::<Result<Vec<_>>>()
    })?;
    let pairs = counted.of(Side::Old).iter().zip(counted.of(Side::New));
    Ok(pairs
        .map(|((name, old), (_, new))| {
            let pair = Pair {
                old: *old,
                new: *new,
            };
            Figure::counted(
                format!("PostgreSQL, round trips of {name}"),
                Better::Less,
                pair,
            )
        })
        .collect())
}

impl Relayed {
    /// One request of each kind.
    fn requests(&self) -> Result<[Request; 6]> {
        let server = &self.server;
        let cookie = contenders::visit(server)?;
        let token = contenders::token(server, &cookie)?;
        let (auth, demo) = (server.host("auth"), server.host("demo"));
        let platform = server.origin.trim_start_matches("http://").to_owned();
        let origin = format!("Origin: http://{demo}\r\n");
        let bearer = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        let page = "AAAAAAAAAAAAAAAAAAAAAA";
        let request = |name, method, host: &str, path, headers: String, body: String| Request {
            name,
            method,
            host: host.to_owned(),
            path,
            headers,
            body,
        };
        let none = String::new;
        let returning = format!("{origin}Cookie: {cookie}\r\n");
        let beat = json!({ "page": page }).to_string();
        let records = ingest::records(page);
        Ok([
            request(
                "a new guest's token",
                "POST",
                &auth,
                "/token",
                origin,
                none(),
            ),
            request(
                "a returning guest's token",
                "POST",
                &auth,
                "/token",
                returning,
                none(),
            ),
            request(
                "a heartbeat",
                "POST",
                &demo,
                "/__platform/heartbeat",
                bearer.clone(),
                beat,
            ),
            request(
                "50 log records",
                "POST",
                &demo,
                "/__platform/logs",
                bearer,
                records,
            ),
            request("the home page", "GET", &platform, "/", none(), none()),
            request(
                "the ranking",
                "GET",
                &platform,
                "/api/ranking",
                none(),
                none(),
            ),
        ])
    }

    /// Sends requests on all connections at once, so that each connection to PostgreSQL has prepared
    /// its statements.
    fn warm_up(&self, folder: &Path, request: &Request) -> Result<()> {
        let lines = request
            .headers
            .lines()
            .filter_map(|line| line.split_once(": "));
        let headers: Vec<_> = [("Host", request.host.as_str())]
            .into_iter()
            .chain(lines)
            .collect();
        let text = match request.method {
            "GET" => wrk::get_script(&headers),
            _ => script(
                &headers,
                (!request.body.is_empty()).then_some(&request.body),
            ),
        };
        let lua = folder.join("warm-up.lua");
        std::fs::write(&lua, text).with_context(|| format!("cannot write {}", lua.display()))?;
        wrk::run_for(
            &Load {
                name: request.name,
                url: format!("http://{}{}", self.server.address, request.path),
                script: lua,
            },
            24,
            1,
        )?;
        Ok(())
    }

    /// The round trips of one request: the median of several, because a periodic job may come between.
    fn count(&self, request: &Request) -> Result<f64> {
        let mut counts = Vec::new();
        for _ in 0..REQUESTS {
            let before = self.when_quiet();
            let Request {
                method,
                host,
                path,
                headers,
                body,
                ..
            } = request;
            self.server.send(method, host, path, headers, body)?;
            counts.push((self.when_quiet() - before) as f64);
        }
        Ok(median(&counts).value)
    }

    /// The round trips so far, once there were no others for a moment: then a request is over.
    fn when_quiet(&self) -> u64 {
        loop {
            let before = self.relay.round_trips();
            servers::pause();
            let now = self.relay.round_trips();
            if now == before {
                return now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_part_of_the_bare_one_of_its_round() {
        let printed = r#"{"guests":{"store":[8.0,3.0],"bare":[16.0,4.0]},
            "lookups":{"store":[1.0],"bare":[1.0]},"records":{"store":[],"bare":[]}}"#;
        let rates: Rates = serde_json::from_str(printed).unwrap();
        assert_eq!(rates.guests.ratios(), [0.5, 0.75]);
        assert!(rates.records.ratios().is_empty());
    }
}
