//! Measures how long the runtime takes to start on a page, and what each part
//! of it costs, in every engine. Prints one JSON object: milliseconds of every load.

use std::collections::BTreeMap;
use std::sync::Arc;

use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::world::{PageBuilder, World};
use serde_json::Value;

/// Loads of the page; the first one warms the engine and does not count.
const ROUNDS: usize = 21;

/// Takes the module out of the script and times each step that the loader
/// takes with it. The steps are those of `loader.js`, on the same bytes.
const PARTS: &str = r#"
const text = await (await fetch("/__platform/runtime.js")).text();
const start = text.lastIndexOf('("') + 1;
const [payload, mask] = (0, eval)("[" + text.slice(start, text.lastIndexOf(")")) + "]");
const marks = [performance.now()];
let bytes = new Uint8Array(payload.length);
let length = 0;
for (let at = 0; at < payload.length; at++) {
  let code = payload.charCodeAt(at);
  if (code > 125) code = (code - 126) * 65 + payload.charCodeAt(++at) + 91;
  bytes[length++] = code ^ mask;
}
bytes = bytes.subarray(0, length);
marks.push(performance.now());
const module = new WebAssembly.Module(bytes);
marks.push(performance.now());
const imports = {};
for (const { module: from, name } of WebAssembly.Module.imports(module)) {
  (imports[from] ??= {})[name] = () => {};
}
const before = performance.now();
new WebAssembly.Instance(module, imports);
const instantiated = performance.now() - before;
const whole = window.complete - window.begun;
const known = marks[1] - marks[0] + (marks[2] - marks[1]) + instantiated;
return {
  decode: marks[1] - marks[0],
  compile: marks[2] - marks[1],
  instantiate: instantiated,
  "script and start": Math.max(0, whole - known),
  whole,
};
"#;

#[tokio::main]
async fn main() {
    let mut engines = BTreeMap::new();
    for engine in [Engine::Chromium, Engine::Firefox] {
        engines.insert(engine.to_string(), measure(engine).await);
    }
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

async fn measure(engine: Engine) -> BTreeMap<String, Vec<f64>> {
    let world = World::start().await;
    // The first script is outside the page's own time; between the two marks
    // nothing runs but the runtime.
    let page = PageBuilder::new()
        .before(r#"<script defer src="before.js"></script>"#)
        .after(r#"<script defer src="after.js"></script>"#)
        .file("before.js", "window.begun = performance.now();")
        .file("after.js", "window.complete = performance.now();");
    let address = world.publish(page).await;
    let browser = Arc::new(Browser::start(engine).await);
    let stage = Stage::new(Arc::clone(&browser));
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
