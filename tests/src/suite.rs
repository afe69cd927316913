//! Runs one test body in every engine, or only in Chromium if engines cannot differ. Browsers are
//! started when first needed, used by one test at a time, and closed at the end.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use crate::browser::{Browser, Engine, Stage};

/// A test's body.
pub type Body = fn(Stage) -> Pin<Box<dyn Future<Output = ()>>>;

/// A test's name and body, and the engines in which it runs.
#[derive(Clone, Copy, Debug)]
pub struct BrowserTest {
    /// A sentence, without the engine.
    pub name: &'static str,
    /// The engines in which it runs.
    pub engines: &'static [Engine],
    /// The body.
    pub body: Body,
}

/// Lists async functions as [`BrowserTest`]s under their own names.
///
/// A test runs in every engine if engines can differ: start, focus, the keyboard, cookies, storage,
/// the back/forward cache, streams, WebSockets, WebAssembly, stacks, layout. Tests after `in
/// Chromium, because "…":` run only in Chromium; the text says why the engines cannot differ.
#[macro_export]
macro_rules! browser_tests {
    (in $($rest:tt)*) => {
        $crate::browser_tests![; in $($rest)*];
    };
    (
        $($test:ident),* $(,)?
        $(; in Chromium, because $why:literal: $($one:ident),* $(,)?)*
    ) => {
        /// The tests of this file.
        pub(crate) const TESTS: &[$crate::suite::BrowserTest] = &[
            $($crate::suite::BrowserTest {
                name: stringify!($test),
                engines: &$crate::browser::Engine::ALL,
                body: |stage| ::std::boxed::Box::pin($test(stage)),
            },)*
            $($({
                const _: &str = $why;
                $crate::suite::BrowserTest {
                    name: stringify!($one),
                    engines: &[$crate::browser::Engine::Chromium],
                    body: |stage| ::std::boxed::Box::pin($one(stage)),
                }
            },)*)*
        ];
    };
}

/// Browsers that no test is using.
type Idle = Mutex<HashMap<Engine, Vec<Browser>>>;

/// Runs `tests`, each in its engines, according to the command line, closes the browsers, and
/// prints how long each test took.
///
/// # Panics
/// Panics if no runtime can be created.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "how long a test took is printed, and nothing depends on it"
)]
pub fn run(tests: &[BrowserTest]) -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Arc::new(Runtime::new().expect("a runtime can be made"));
    let idle: Arc<Idle> = Arc::default();
    let times: Arc<Mutex<Vec<(Duration, String)>>> = Arc::default();
    let trial = |test: &BrowserTest, engine: Engine| {
        let (runtime, idle, body) = (Arc::clone(&runtime), Arc::clone(&idle), test.body);
        let (times, name) = (Arc::clone(&times), format!("{}_in_{engine}", test.name));
        Trial::test(name.clone(), move || {
            let begun = Instant::now();
            let played = runtime.block_on(play(&idle, engine, body));
            let mut times = times.lock().expect("no holder panics");
            times.push((begun.elapsed(), name));
            played
        })
    };
    let trials = Engine::ALL.iter().flat_map(|engine| {
        let tests = tests.iter().filter(|test| test.engines.contains(engine));
        tests.map(|test| trial(test, *engine))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let browsers: Vec<Browser> = idle
        .lock()
        .expect("no holder panics")
        .drain()
        .flat_map(|(_, browsers)| browsers)
        .collect();
    for browser in browsers {
        runtime.block_on(browser.close());
    }
    for (time, name) in times.lock().expect("no holder panics").iter() {
        println!("time {:.3} {name}", time.as_secs_f64());
    }
    conclusion.exit_code()
}

/// Runs one test. A browser whose test failed, or that keeps something of it, is not used again.
async fn play(idle: &Idle, engine: Engine, body: Body) -> Result<(), Failed> {
    let waiting = idle
        .lock()
        .expect("no holder panics")
        .entry(engine)
        .or_default()
        .pop();
    let browser = match waiting {
        Some(browser) => browser,
        None => Browser::start(engine).await,
    };
    browser.renew().await;
    let browser = Arc::new(browser);
    let stage = Stage::new(Arc::clone(&browser));
    let played = AssertUnwindSafe(body(stage.clone())).catch_unwind().await;
    let failure = match played {
        Ok(()) => stage.complaints().await.join("\n"),
        Err(panic) => reason(panic.as_ref()),
    };
    let log = stage.log();
    drop(stage);
    let browser = Arc::into_inner(browser);
    if failure.is_empty() {
        match browser {
            Some(browser) if browser.can_be_renewed() => {
                browser.renew().await;
                idle.lock()
                    .expect("no holder panics")
                    .entry(engine)
                    .or_default()
                    .push(browser);
            }
            Some(browser) => browser.close().await,
            None => {}
        }
        return Ok(());
    }
    if let Some(browser) = browser {
        browser.close().await;
    }
    let said: Vec<String> = log
        .iter()
        .map(|entry| format!("  {:5} {:10} {}", entry.level, entry.kind, entry.text))
        .collect();
    Err(format!("{failure}\nThe browser's log:\n{}", said.join("\n")).into())
}

/// Returns the message of a panic.
fn reason(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("the test panicked")
        .to_owned()
}
