//! Measures what the runtime costs a page after it has started, in every
//! engine: `platform.fetch` beside `fetch` to the same handler, a console call
//! with and without the runtime's wrapper, what it does each second, and the
//! work per frame of real games with and without its tag. Prints one JSON
//! object: the figures of all rounds, in the unit that the name ends with.
//!
//! With `--compare` and the origins of two servers, it does the same with the
//! runtimes of both in turns, in Chromium alone, and prints the pairs of each turn.

#![expect(clippy::expect_used, reason = "a bench reports by failing")]

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::owner::Owner;
use platform_tests::platform::Site;
use platform_tests::world::{PageBuilder, World};
use platform_tests::{npm, poll};
use serde_json::Value;

/// Rounds of everything; each holds both sides, one after the other, so that
/// what else the machine does meets both alike.
const ROUNDS: usize = 9;

/// Turns of two servers that are compared; the first one warms the engine and
/// does not count.
const TURNS: usize = 14;

/// The game in which they are: the one that works least on a frame, so that the
/// runtime's part is largest.
const COMPARED: &str = "pixi";

/// Frames of a game in a round: the first ones warm the engine.
const FRAMES: usize = 240;
const WARM: usize = 60;

/// The tag, as it stands in each game's page.
const TAG: &str = r#"<script defer src="/__platform/runtime.js"></script>"#;

/// Keeps the browser's console quiet, which costs more than any wrapper, and
/// takes down what the runtime does each second.
const BEFORE: &str = "<script>
    console.log = window.nativeLog = () => {};
    const native = setInterval;
    window.setInterval = (callback, period) => {
        window.eachSecond = callback;
        return native(callback, period);
    };
</script>";

/// One round of everything but games.
const ROUND: &str = r#"
const CALLS = 10_000, REQUESTS = 40, LOOKS = 2_000;
const each = (count, call) => {
    const began = performance.now();
    for (let i = 0; i < count; i++) call(i);
    return (performance.now() - began) * 1_000 / count;
};
const figures = {
    "console, native, equal, µs": each(CALLS, () => nativeLog("frame", 1, { late: true })),
    "console, wrapped, equal, µs": each(CALLS, () => console.log("frame", 1, { late: true })),
    "console, native, different, µs": each(CALLS, (i) => nativeLog("frame", i, { late: true })),
    "console, wrapped, different, µs": each(CALLS, (i) => console.log("frame", i, { late: true })),
    "each second, µs": each(LOOKS, () => eachSecond()),
};
const line = figures["console, wrapped, different, µs"] - figures["console, native, different, µs"];
figures["a second with ten lines, µs"] = figures["each second, µs"] + 10 * line;
await platform.getAccessToken();
const times = { "fetch, plain, ms": [], "fetch, platform, ms": [] };
for (let i = 0; i < REQUESTS; i++) {
    for (const [name, call] of [["fetch, plain, ms", fetch], ["fetch, platform, ms", platform.fetch]]) {
        const began = performance.now();
        await (await call("/api/any")).text();
        times[name].push(performance.now() - began);
    }
}
for (const name in times) figures[name] = times[name].sort((a, b) => a - b)[REQUESTS >> 1];
return figures;
"#;

/// What the runtime works in a second of a game that logs ten lines, as [`ROUND`] names it.
const SECOND: &str = "a second with ten lines, µs";

/// The figures of all rounds in one engine, by name.
type Figures = BTreeMap<String, Vec<f64>>;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [compare, old, new] = &arguments[..]
        && compare == "--compare"
    {
        let pairs = compare_servers([old, new]).await;
        return print_json(&serde_json::to_string(&pairs).unwrap_or_default());
    }
    let mut engines: BTreeMap<String, Figures> = BTreeMap::new();
    for engine in [Engine::Chromium, Engine::Firefox] {
        let browser = Arc::new(Browser::start(engine).await);
        let stage = Stage::new(Arc::clone(&browser));
        let mut figures = calls(&stage).await;
        figures.extend(games(&stage).await);
        engines.insert(engine.to_string(), figures);
        drop(stage);
        if let Some(browser) = Arc::into_inner(browser) {
            browser.close().await;
        }
    }
    print_json(&serde_json::to_string(&engines).unwrap_or_default());
}

#[expect(
    clippy::print_stdout,
    reason = "standard output is this program's result"
)]
fn print_json(json: &str) {
    println!("{json}");
}

/// Plays a game with the runtimes of two servers in turns. Returns what both cost in each turn.
async fn compare_servers(origins: [&str; 2]) -> BTreeMap<String, Vec<[f64; 2]>> {
    let games = npm::games().await.join(COMPARED);
    let read = |file: &str| std::fs::read_to_string(games.join(file)).expect("a built game");
    let (page, script) = (read("index.html"), read("game.js"));
    let calls = PageBuilder::new().before(BEFORE).html();
    let mut sites = Vec::new();
    for origin in origins {
        let site = Site::local(origin);
        let owner = Owner::sign_in(&site, "bench").await;
        for slug in ["calls", COMPARED] {
            owner.create(slug).await;
        }
        let files = [("index.html", page.as_str()), ("game.js", script.as_str())];
        owner.deploy(COMPARED, "prod", &files).await;
        let files = [("index.html", calls.as_str())];
        owner.deploy("calls", "prod", &files).await;
        sites.push(site);
    }
    let browser = Arc::new(Browser::start(Engine::Chromium).await);
    let stage = Stage::new(Arc::clone(&browser));
    let mut pairs: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
    for turn in 0..=TURNS {
        let mut figures = [const { Vec::new() }; 2];
        for side in [turn % 2, 1 - turn % 2] {
            figures[side] = costs(&stage, &sites[side]).await;
        }
        let [old, new] = figures;
        for ((name, old), (_, new)) in old.into_iter().zip(new).filter(|_| turn > 0) {
            pairs.entry(name).or_default().push([old, new]);
        }
    }
    drop(stage);
    if let Some(browser) = Arc::into_inner(browser) {
        browser.close().await;
    }
    pairs
}

/// What a frame of the game costs, and a second of the runtime.
async fn costs(stage: &Stage, site: &Site) -> Vec<(String, f64)> {
    let frame = work(stage, &site.url(COMPARED, "/")).await;
    stage.open(&site.url("calls", "/")).await;
    let second = stage.run(&without_requests()).await[SECOND].as_f64();
    vec![
        (format!("{COMPARED}, frame, ms"), frame),
        (SECOND.to_owned(), second.unwrap_or(f64::NAN)),
    ]
}

/// The part of [`ROUND`] that needs no backend.
fn without_requests() -> String {
    let (calls, _requests) = ROUND.split_once("await platform").unwrap_or((ROUND, ""));
    format!("{calls}\nreturn figures;")
}

/// What calls cost.
async fn calls(stage: &Stage) -> Figures {
    let world = World::start().await;
    let address = world.publish(PageBuilder::new().before(BEFORE)).await;
    let mut samples = Figures::new();
    for _ in 0..ROUNDS {
        stage.open(&address).await;
        if let Value::Object(figures) = stage.run(ROUND).await {
            for (name, figure) in figures {
                samples.entry(name).or_default().extend(figure.as_f64());
            }
        }
    }
    samples
}

/// What frames of games cost, with the tag and without it.
async fn games(stage: &Stage) -> Figures {
    let world = World::start().await;
    let games = npm::games().await;
    let mut figures = Figures::new();
    for game in ["phaser", "pixi", "excalibur"] {
        let read = |file: &str| std::fs::read(games.join(game).join(file)).expect("a built game");
        let page = String::from_utf8(read("index.html")).expect("a page is text");
        let bare = format!("{game}-bare");
        for (slug, page) in [(game, page.clone()), (&bare, page.replace(TAG, ""))] {
            let files = vec![
                ("index.html".to_owned(), Bytes::from(page)),
                ("game.js".to_owned(), Bytes::from(read("game.js"))),
            ];
            world.deploy(slug, files).await;
        }
        let (mut with, mut without, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let plain = work(stage, &world.url(&bare, "/")).await;
            let full = work(stage, &world.url(game, "/")).await;
            ratios.push(full / plain);
            without.push(plain);
            with.push(full);
        }
        figures.insert(format!("{game}, frame, plain, ms"), without);
        figures.insert(format!("{game}, frame, platform, ms"), with);
        figures.insert(format!("{game}, frame, ratio"), ratios);
    }
    figures
}

/// Milliseconds that the game at `address` works on a frame. It is a mean,
/// since browsers tell the time in coarse steps, of the frames but the slowest
/// tenth, in which something else happened.
async fn work(stage: &Stage, address: &str) -> f64 {
    stage.open(address).await;
    let mut frames = poll::until("the game has run", async || {
        let work = stage.run("return game.work").await;
        let frames: Vec<f64> = serde_json::from_value(work).ok()?;
        (frames.len() >= FRAMES).then_some(frames)
    })
    .await
    .split_off(WARM);
    frames.sort_by(f64::total_cmp);
    frames.truncate(frames.len() * 9 / 10);
    frames.iter().sum::<f64>() / frames.len() as f64
}
