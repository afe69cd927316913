//! Measures for how long the runtime's start holds a page's main thread, and what each part of it
//! costs, in every engine, and in Chromium also on a processor that is made six times as slow.
//! Then does the same with scripts that games use in place of the platform, whose size in brotli it
//! measures as well. Prints one JSON object: milliseconds of every load, and bytes.
//!
//! The first argument is the folder of these scripts.
//!
//! With `--compare` and the origins of two servers, it loads the same page from both in turns, in Chromium alone,
//! and prints the pairs of each turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use platform_compression::BEST;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::owner::Owner;
use platform_tests::platform::Site;
use platform_tests::world::{PageBuilder, World};
use serde_json::{Value, json};

/// Loads of the page; the first one warms the engine and does not count.
const ROUNDS: usize = 21;

/// Turns of two servers that are compared, and loads of each in a turn: browsers tell the time in coarse steps, so a
/// turn counts several and takes the middle one. The first turn warms the engine and does not count.
const TURNS: usize = 20;
const LOADS: usize = 7;

/// The scripts of others, as `tests/peers` bundles them.
const PEERS: [&str; 2] = ["sentry", "auth0"];

/// How many times slower the slow processor is.
const SLOWER: u32 = 6;

/// The window of brotli, in powers of two: the largest that browsers must support (RFC 7932 §9.1).
const WINDOW: u8 = 24;

/// Runs before the runtime, and times its parts through the browser's functions that it calls: the
/// script ends where the next one begins, the module's bytes are there once the text was read as a
/// response, are ready when the compiler gets them, and the module starts in the task that makes the
/// instance.
const BEFORE: &str = "{
    const now = () => performance.now();
    const parts = window.parts = {};
    let began;
    const { arrayBuffer } = Response.prototype;
    Response.prototype.arrayBuffer = function () {
        return arrayBuffer.call(this).then((bytes) => {
            began = now();
            return bytes;
        });
    };
    const { compile, Instance } = WebAssembly;
    WebAssembly.compile = (bytes) => {
        const compiled = compile(bytes);
        parts['decode'] = now() - began;
        began = now();
        return compiled;
    };
    WebAssembly.Instance = function (...values) {
        const starts = now();
        parts['compile, in the background'] = starts - began;
        // A microtask runs after the task of the start.
        queueMicrotask(() => {
            parts['start'] = now() - starts;
            window.startedAt = now();
            window.isStarted = true;
        });
        return new Instance(...values);
    };
    window.longest = 0;
    try {
        new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
        }).observe({ type: 'longtask', buffered: true });
    } catch {
        // Only Chromium has it.
    }
}
// Meanwhile the scripts that follow arrive, so that none waits for the network.
const ready = performance.now() + 30;
while ((window.begun = performance.now()) < ready);";

/// Waits for the start and returns the parts, and their sum without what runs in the background.
/// Between two scripts a browser does something of its own, which an empty script shows.
const PARTS: &str = "
while (!window.isStarted) await new Promise((turn) => setTimeout(turn));
await new Promise((idle) => setTimeout(idle, 50));
const gap = emptied - complete;
const script = complete - begun - gap;
return {
    'an empty script': gap, script, ...parts, 'main thread held': script + parts.decode + parts.start,
    ...(PerformanceObserver.supportedEntryTypes.includes('longtask') && { 'longest task': longest }),
};";

/// The time from the runtime's script to its start, what runs in the background included.
const WHOLE: &str = "return startedAt - begun;";

/// Runs after the script that is measured.
const AFTER: &str = r#"<script defer src="after.js"></script><script defer src="empty.js"></script><script defer src="last.js"></script>"#;

/// The same for the script of a peer, all of which runs at once.
const PEER: &str = "return { script: complete - begun - (emptied - complete) };";

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [compare, old, new] = &arguments[..]
        && compare == "--compare"
    {
        let pairs = compare_servers([old, new]).await;
        return println_json(&serde_json::to_string(&pairs).unwrap_or_default());
    }
    let mut engines = BTreeMap::new();
    if let Some(folder) = arguments.first() {
        engines.insert("peers".to_owned(), measure_peers(Path::new(folder)).await);
    }
    for engine in Engine::ALL {
        engines.insert(engine.to_string(), measure(engine, 1).await);
    }
    let slow = format!("{}, {SLOWER} × slower", Engine::Chromium);
    engines.insert(slow, measure(Engine::Chromium, SLOWER).await);
    let json = serde_json::to_string(&engines).unwrap_or_default();
    println_json(&json);
}

/// The start of each peer in each engine, and its size.
async fn measure_peers(folder: &Path) -> BTreeMap<String, Vec<f64>> {
    let mut figures = BTreeMap::new();
    for name in PEERS {
        let file = folder.join(format!("{name}.js"));
        let script = std::fs::read_to_string(&file);
        let Ok(script) = script.inspect_err(|error| eprintln!("{}: {error}", file.display()))
        else {
            continue;
        };
        let compressed = platform_compression::brotli(script.as_bytes(), BEST, WINDOW);
        let bytes = compressed.map_or(f64::NAN, |compressed| compressed.len() as f64);
        figures.insert(format!("{name}, bytes of brotli"), vec![bytes]);
        for engine in Engine::ALL {
            let start = measure_peer(engine, &script).await;
            figures.insert(format!("{name}, start in {engine}"), start);
        }
    }
    figures
}

#[expect(
    clippy::print_stdout,
    reason = "standard output is this program's result"
)]
fn println_json(json: &str) {
    println!("{json}");
}

/// Loads the same page from two servers in turns. Returns the milliseconds of both in each turn.
async fn compare_servers(origins: [&str; 2]) -> BTreeMap<String, Vec<[f64; 2]>> {
    let mut pages = Vec::new();
    for origin in origins {
        let site = Site::local(origin);
        let owner = Owner::sign_in(&site, "bench").await;
        owner.create("arena").await;
        let html = page().after(AFTER).html();
        let files = [&[("index.html", html.as_str())][..], &SCRIPTS].concat();
        owner.deploy("arena", "prod", &files).await;
        pages.push(site.url("arena", "/"));
    }
    let browser = Arc::new(Browser::start(Engine::Chromium).await);
    let stage = Stage::new(Arc::clone(&browser));
    let mut pairs: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
    for turn in 0..=TURNS {
        let mut figures = [[0.0; 2]; 2];
        for side in [turn % 2, 1 - turn % 2] {
            figures[side] = middle_of_loads(&stage, &pages[side]).await;
        }
        if turn > 0 {
            let [old, new] = figures;
            for (name, place) in [("main thread held, ms", 0), ("from script to start, ms", 1)] {
                let of_name = pairs.entry(name.to_owned()).or_default();
                of_name.push([old[place], new[place]]);
            }
        }
    }
    drop(stage);
    if let Some(browser) = Arc::into_inner(browser) {
        browser.close().await;
    }
    pairs
}

/// Milliseconds for which the main thread is held, and until the runtime has started.
async fn middle_of_loads(stage: &Stage, address: &str) -> [f64; 2] {
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..LOADS {
        stage.open(address).await;
        let held = stage.run(PARTS).await["main thread held"].as_f64();
        let whole = stage.run(WHOLE).await.as_f64();
        times[0].push(held.unwrap_or(f64::NAN));
        times[1].push(whole.unwrap_or(f64::NAN));
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[LOADS / 2]
    })
}

/// A page with scripts that say the time before and after one script, and before and after an empty
/// one.
fn page() -> PageBuilder {
    let page = PageBuilder::new().before(r#"<script defer src="before.js"></script>"#);
    let scripts = SCRIPTS.into_iter();
    scripts.fold(page, |page, (name, script)| page.file(name, script))
}

/// The scripts of this page.
const SCRIPTS: [(&str, &str); 4] = [
    ("before.js", BEFORE),
    ("after.js", "window.complete = performance.now();"),
    ("empty.js", ""),
    ("last.js", "window.emptied = performance.now();"),
];

/// Loads a page with the script of a peer again and again. The runtime's comes after the measurement.
async fn measure_peer(engine: Engine, script: &str) -> Vec<f64> {
    let page = page()
        .before(r#"<script defer src="peer.js"></script>"#)
        .before(AFTER)
        .file("peer.js", script);
    let mut samples = load(engine, 1, page, PEER).await;
    samples.remove("script").unwrap_or_default()
}

/// Loads the runtime again and again, with a processor that is so many times slower.
async fn measure(engine: Engine, slower: u32) -> BTreeMap<String, Vec<f64>> {
    // Between the two scripts nothing runs but the runtime.
    load(engine, slower, page().after(AFTER), PARTS).await
}

/// Loads a page again and again, and returns what `read` returns there.
async fn load(
    engine: Engine,
    slower: u32,
    page: PageBuilder,
    read: &str,
) -> BTreeMap<String, Vec<f64>> {
    let world = World::start().await;
    let address = world.publish(page).await;
    let browser = Arc::new(Browser::start(engine).await);
    let stage = Stage::new(Arc::clone(&browser));
    if slower > 1 {
        let rate = json!({ "rate": slower });
        let tools = browser.session.cdp();
        let slowed = tools.send_raw("Emulation.setCPUThrottlingRate", rate).await;
        assert!(slowed.is_ok(), "{engine} cannot be made slower: {slowed:?}");
    }
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        stage.open(&address).await;
        let Value::Object(parts) = stage.run(read).await else {
            continue;
        };
        for (part, milliseconds) in parts {
            if round > 0 {
                samples
                    .entry(part)
                    .or_default()
                    .extend(milliseconds.as_f64());
            }
        }
    }
    drop(stage);
    if let Some(browser) = Arc::into_inner(browser) {
        browser.close().await;
    }
    samples
}
