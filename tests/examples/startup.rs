//! Measures for how long the runtime's start holds a page's main thread, and what each part of it
//! costs, in every engine, and in Chromium also on a processor that is made six times as slow.
//! Prints one JSON object: milliseconds of every load.

use std::collections::BTreeMap;
use std::sync::Arc;

use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::world::{PageBuilder, World};
use serde_json::{Value, json};

/// Loads of the page; the first one warms the engine and does not count.
const ROUNDS: usize = 21;

/// How many times slower the slow processor is.
const SLOWER: u32 = 6;

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

#[tokio::main]
async fn main() {
    let mut engines = BTreeMap::new();
    for engine in Engine::ALL {
        engines.insert(engine.to_string(), measure(engine, 1).await);
    }
    let slow = format!("{}, {SLOWER} × slower", Engine::Chromium);
    engines.insert(slow, measure(Engine::Chromium, SLOWER).await);
    let json = serde_json::to_string(&engines).unwrap_or_default();
    println_json(&json);
}

#[expect(
    clippy::print_stdout,
    reason = "standard output is this program's result"
)]
fn println_json(json: &str) {
    println!("{json}");
}

/// Loads the page again and again, with a processor that is so many times slower.
async fn measure(engine: Engine, slower: u32) -> BTreeMap<String, Vec<f64>> {
    let world = World::start().await;
    // Between the two scripts nothing runs but the runtime.
    let page = PageBuilder::new()
        .before(r#"<script defer src="before.js"></script>"#)
        .after(
            r#"<script defer src="after.js"></script><script defer src="empty.js"></script><script defer src="last.js"></script>"#,
        )
        .file("before.js", BEFORE)
        .file("after.js", "window.complete = performance.now();")
        .file("empty.js", "")
        .file("last.js", "window.emptied = performance.now();");
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
        let Value::Object(parts) = stage.run(PARTS).await else {
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
