//! A simulation of many players on a real platform: an open-loop crowd of virtual browsers, which
//! send requests when they are due, however long responses take.
//!
//! | module | contents |
//! |---|---|
//! | `place` | the platform: the server program alone, or several nodes |
//! | `crowd` | who does what when |
//! | `browser` | what a virtual browser does |
//! | `requests` | its requests, as the runtime sends them |
//! | `client` | the connections that all of them share |
//! | `measure` | rates and times, from the moment at which each request was due |
//! | `truth` | what the crowd knows to be true |
//! | `counts` | what the platform shows, compared with that |
//! | `processes` | memory and processor time |
//! | `soak` | what a server must not gather while nothing else grows |
//! | `costs` | the processor time of one request of each kind, and what a million players need |

mod browser;
mod client;
mod costs;
mod counts;
mod crowd;
mod measure;
mod place;
mod processes;
mod requests;
mod soak;
mod truth;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

pub use self::place::Place;
use self::place::Used;

use self::browser::Browser;
use self::client::Client;
use self::costs::{Costs, Played, Sender};
use self::counts::Counts;
use self::crowd::Crowd;
use self::measure::{Kind, Measure};
use self::requests::Requests;
use self::soak::Soak;
use crate::deployer;

/// How many deploys there are in a run.
const DEPLOYS: u32 = 10;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many players there are at the same time, once all have arrived.
    pub players: usize,
    /// How many games they play.
    pub games: usize,
    /// How many nodes the platform has; 1 for the server program on SQLite.
    pub nodes: usize,
    /// How long the simulation takes.
    pub time: Duration,
    /// In which first part of it players arrive.
    pub arriving: Duration,
    /// Seconds between two heartbeats of a page. All other times follow from it.
    pub beat: u32,
    /// How long requests of one kind alone are sent afterwards, to learn what each costs.
    pub alone: Duration,
    /// From which all random decisions follow.
    pub seed: u64,
}

impl Plan {
    fn beats(&self) -> Duration {
        Duration::from_secs(self.beat.into())
    }

    /// A page counts its player first after some seconds.
    fn first_beat(&self) -> Duration {
        self.beats() / 6
    }

    /// After which a page exchanges its token for the next one: nine tenths of 15 minutes.
    fn token_age(&self) -> Duration {
        self.beats() * 27
    }

    /// One to three records every two minutes.
    fn between_logs(&self) -> Duration {
        self.beats() * 4
    }

    /// Somebody leaves so often that half of the players change in a run; as many load their page
    /// again.
    fn between_changes(&self) -> Duration {
        let changes = u32::try_from(self.players / 2).unwrap_or(u32::MAX).max(1);
        self.time / changes
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    /// The counts compared, for people. What was measured was printed before.
    pub text: String,
    /// What the platform counted differently.
    pub mismatches: Vec<String>,
    /// How many requests failed.
    pub failed: u64,
    /// What the servers gathered although the players stayed as many; empty after less than ten minutes.
    pub gathered: Vec<String>,
}

/// Simulates it on a platform that nobody else uses.
///
/// # Panics
/// Panics if the owner of the games cannot create them.
pub async fn run(plan: &Plan, place: &Place) -> Report {
    let owner = place.owner().await;
    let games = crate::crowd::deploy(&owner, plan.games).await;
    let site = place.site();
    let began = Instant::now();
    let browser = Arc::new(Browser {
        client: Client::new(site.address),
        requests: Requests::new(&site.origin),
        measure: Measure::new(began + plan.arriving),
        games,
        etag: Mutex::default(),
    });
    let mut crowd = Crowd::new(plan, Arc::clone(&browser), began);
    let end = began + plan.time;
    let (before, all_there, soak, ()) = tokio::join!(
        async { place.processors() },
        async {
            tokio::time::sleep_until(began + plan.arriving).await;
            place.processors()
        },
        Soak::watch(place, began + plan.arriving, end),
        async {
            let deploying = deploy_now_and_then(&browser, place, plan, began);
            tokio::join!(crowd.play(end), deploying);
        }
    );
    let (after, memories) = (place.processors(), place.memories());
    let now = counts::players_now(place, &browser.games).await;
    let now = (now, crowd.truth.players_now());
    let played = Played {
        passed: browser.measure.passed(),
        used: costs::between(&all_there, &after),
        players: plan.players,
        time: plan.time - plan.arriving,
    };
    let costs = costs_of_requests(&mut crowd, place, &browser, plan, &played).await;
    let mut tables = browser.measure.tables(plan.arriving, played.time);
    tables.push_str(&programs(plan, [&before, &all_there, &after], &memories));
    tables.push_str(&soak.table());
    tables.push_str(&costs.table());
    tables.push_str(&costs.million(plan.beat));
    eprintln!("{tables}\neverything is measured; now the counts of the platform are compared");
    // The token of the beginning may have expired.
    let owner = place.owner().await;
    let counts = Counts {
        owner: &owner,
        games: &browser.games,
        began,
    };
    let (lines, mismatches) = counts.compare(&mut crowd.truth, now, plan).await;
    let header = "counts                                what the crowd knows   the platform";
    let text = format!("{header}\n{lines}");
    Report {
        text,
        mismatches,
        failed: browser.measure.failed() + costs.failed,
        gathered: soak.gathered(),
    }
}

async fn costs_of_requests(
    crowd: &mut Crowd,
    place: &Place,
    browser: &Browser,
    plan: &Plan,
    played: &Played,
) -> Costs {
    let (pages, news) = (crowd.pages(), crowd.news());
    let sender = Sender {
        place,
        browser,
        pages: &pages,
        news: &news,
    };
    crowd.listen(sender.measure(plan, played)).await
}

/// The memory of each program at the end, and its processor time while players arrived and while
/// they played, as a table.
fn programs(plan: &Plan, processors: [&Used; 3], memories: &Used) -> String {
    let mut text =
        "\nprograms                  memory MiB   of one core, arriving    playing\n".to_owned();
    let [before, all_there, after] = processors;
    let played = plan.time - plan.arriving;
    let programs = before.iter().zip(all_there).zip(after).zip(memories);
    for ((((name, before), (_, all_there)), (_, after)), (_, memory)) in programs {
        let arriving = (all_there - before) / plan.arriving.as_secs_f64();
        let playing = (after - all_there) / played.as_secs_f64();
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "  {name:22} {memory:11.0}   {:19.0} % {:8.0} %",
            arriving * 100.0,
            playing * 100.0
        );
    }
    text
}

/// Deploys a new version of a game now and then. Whoever opens its page after the response must see
/// this version, on whatever node.
async fn deploy_now_and_then(browser: &Browser, place: &Place, plan: &Plan, began: Instant) {
    for number in 1..DEPLOYS {
        let at = began + plan.time * number / DEPLOYS;
        tokio::time::sleep_until(at).await;
        let game = &browser.games[number as usize % browser.games.len()];
        let page = format!(
            "<!doctype html><title>version {number}</title>\
             <script defer src=\"/__platform/runtime.js\"></script>"
        );
        let files = [("index.html".to_owned(), page.into_bytes())];
        let archive = deployer::archive(&files);
        // A token of the beginning would have expired.
        let token = place.owner().await.token;
        let deploy = browser.requests.deploy(game, &token, archive);
        let outcome = match browser.client.send(deploy).await {
            Ok(answer) if answer.status == 201 => shows(browser, game, number).await,
            Ok(answer) => Err(format!("status {}", answer.status)),
            Err(what) => Err(what.to_owned()),
        };
        browser.measure.record(Kind::Deploy, at, outcome);
    }
}

/// Whether the page of a game is this version.
async fn shows(browser: &Browser, game: &str, number: u32) -> Result<(), String> {
    let mut page = browser.requests.page(game);
    // So that the answer is not compressed.
    page.headers_mut().remove(hyper::header::ACCEPT_ENCODING);
    let answer = browser.client.send(page).await?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    if text.contains(&format!("<title>version {number}<")) {
        Ok(())
    } else {
        Err("a page was older than the response to its deploy".to_owned())
    }
}

/// Returns a member of a JSON object as a number.
fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or(f64::NAN)
}
