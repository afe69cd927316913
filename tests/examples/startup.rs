//! Measures for how long the runtime's start holds a page's main thread, and what each part of it
//! costs, in every engine, and in Chromium also on a processor that is made six times as slow.
//! Then does the same with scripts that games use in place of the platform, whose size in brotli it
//! measures as well. Prints one JSON object: milliseconds of every load, and bytes.
//!
//! The first argument is the folder of these scripts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use platform_compression::BEST;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::world::{PageBuilder, World};
use serde_json::{Value, json};

/// Loads of the page; the first one warms the engine and does not count.
const ROUNDS: usize = 21;

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

/// Runs after the script that is measured.
const AFTER: &str = r#"<script defer src="after.js"></script><script defer src="empty.js"></script><script defer src="last.js"></script>"#;

/// The same for the script of a peer, all of which runs at once.
const PEER: &str = "return { script: complete - begun - (emptied - complete) };";

#[tokio::main]
async fn main() {
    let mut engines = BTreeMap::new();
    if let Some(folder) = std::env::args().nth(1) {
        engines.insert("peers".to_owned(), measure_peers(Path::new(&folder)).await);
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

/// A page with scripts that say the time before and after one script, and before and after an empty
/// one.
fn page() -> PageBuilder {
    PageBuilder::new()
        .before(r#"<script defer src="before.js"></script>"#)
        .file("before.js", BEFORE)
        .file("after.js", "window.complete = performance.now();")
        .file("empty.js", "")
        .file("last.js", "window.emptied = performance.now();")
}

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
