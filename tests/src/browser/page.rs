//! Operations of a test on a page.

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Browser, Engine, LogEntry, Manner, SeenRequest};
use crate::poll;

/// A browser for one test, with an empty cookie jar.
///
/// The test fails if a page logged a warning or an error that was not announced with
/// [`Stage::expect_log`], or if an announced one was not logged.
#[derive(Clone, Debug)]
pub struct Stage {
    browser: Arc<Browser>,
    expected: Arc<Mutex<Vec<Expected>>>,
}

/// A part of a warning or error that pages may log.
#[derive(Clone, Debug)]
struct Expected {
    part: String,
    /// How often it must be logged; `None` if any number is allowed.
    times: Option<usize>,
}

/// What a script in the page threw.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PageError {
    /// The error's `name`, or the type of the thrown value.
    pub name: String,
    /// The error's message, or the thrown value as text.
    pub message: String,
    /// `status` of a `PlatformError`.
    pub status: Option<u16>,
    /// `type` of a `PlatformError`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// `requestId` of a `PlatformError`.
    #[serde(rename = "requestId")]
    pub request_id: Option<String>,
}

/// Runs a test's script in the page's own realm and returns its result. Drivers may use another
/// realm, where `TypeError` is not the page's `TypeError`.
const RUN: &str = r#"
const [body, done] = arguments;
const name = '__answer' + Math.random().toString(36).slice(2);
window[name] = answer => { delete window[name]; done(answer); };
const script = document.createElement('script');
script.textContent = `(async () => { ${body}
})().then(
  value => window.${name}(JSON.stringify({ value: value === undefined ? null : value })),
  error => window.${name}(JSON.stringify({ error: {
    name: String(error?.name ?? typeof error), message: String(error?.message ?? error),
    status: error?.status, type: error?.type, requestId: error?.requestId } })));`;
document.documentElement.append(script);
script.remove();
"#;

impl Stage {
    /// Creates a stage for one test.
    #[must_use]
    pub fn new(browser: Arc<Browser>) -> Self {
        Self {
            browser,
            expected: Arc::default(),
        }
    }

    /// Starts another browser of the same engine, with its own cookies. The logs of its pages are
    /// not checked.
    pub async fn beside(&self) -> Self {
        self.beside_in(Manner::Usual).await
    }

    /// Starts another browser of the same engine in a certain manner.
    pub async fn beside_in(&self, manner: Manner) -> Self {
        Self::new(Arc::new(Browser::start_in(self.engine(), manner).await))
    }

    /// Closes a browser that [`Stage::beside`] started.
    pub async fn close(self) {
        let Self { browser, .. } = self;
        if let Some(browser) = Arc::into_inner(browser) {
            browser.close().await;
        }
    }

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.browser.engine
    }

    /// Ends the stage and returns its browser.
    #[must_use]
    pub fn into_browser(self) -> Arc<Browser> {
        self.browser
    }

    /// Returns the browser, for anything that this type has no method for.
    #[must_use]
    pub fn browser(&self) -> &Browser {
        &self.browser
    }

    /// Opens `url` and waits until it has loaded.
    pub async fn open(&self, url: &str) {
        if let Err(error) = self.browser.session.goto(url).await {
            panic!("{url} did not open: {error}");
        }
    }

    /// Reloads the page.
    pub async fn reload(&self) {
        self.browser
            .session
            .refresh()
            .await
            .expect("the page loads again");
    }

    /// Runs the body of an async function in the page and returns its result.
    ///
    /// # Panics
    /// Panics if it throws.
    pub async fn run(&self, body: &str) -> Value {
        match self.attempt(body).await {
            Ok(value) => value,
            Err(error) => panic!("the script threw {error:?}:\n{body}"),
        }
    }

    /// Runs the body of an async function that must throw, and returns the error.
    ///
    /// # Panics
    /// Panics if it does not throw.
    pub async fn refused(&self, body: &str) -> PageError {
        match self.attempt(body).await {
            Ok(value) => panic!("the script gave {value}, and should have thrown:\n{body}"),
            Err(error) => error,
        }
    }

    /// Runs the body of an async function in the page and returns its result or the thrown error.
    ///
    /// # Errors
    /// The error that the script threw.
    ///
    /// # Panics
    /// Panics if the script does not end.
    pub async fn attempt(&self, body: &str) -> Result<Value, PageError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            value: Value,
            error: Option<PageError>,
        }
        let answer = match self
            .browser
            .session
            .execute_async(RUN, vec![json!(body)])
            .await
        {
            Ok(answer) => answer,
            Err(error) => panic!("the script did not end: {error}:\n{body}"),
        };
        let answer: Answer = serde_json::from_str(answer.json().as_str().unwrap_or_default())
            .expect("the script's answer is JSON");
        answer.error.map_or(Ok(answer.value), Err)
    }

    /// Announces that pages will log a warning or error that contains `part`, `times` times in the
    /// whole test.
    pub fn expect_log(&self, part: &str, times: usize) {
        self.announce(part, Some(times));
    }

    /// Announces that a page may log a warning or error that contains `part`: an engine's own
    /// message about something that the test does on purpose.
    pub fn tolerate_log(&self, part: &str) {
        self.announce(part, None);
    }

    fn announce(&self, part: &str, times: Option<usize>) {
        let expected = Expected {
            part: part.to_owned(),
            times,
        };
        self.expected
            .lock()
            .expect("no holder panics")
            .push(expected);
    }

    /// Runs a script after which the page reloads its own address, and waits until it has reloaded:
    /// the address alone does not distinguish the two pages.
    ///
    /// # Panics
    /// Panics if it does not.
    pub async fn loads_again_by(&self, script: &str) {
        self.run(&format!("window.isToGo = true; {script}")).await;
        let state = "return window.isToGo === undefined && document.readyState === 'complete'";
        poll::until("the page has loaded again", async || {
            let state = self.browser.session.execute(state, vec![]).await.ok()?;
            (state.json() == true).then_some(())
        })
        .await;
    }

    /// Waits until the browser shows `url` and the page has loaded.
    ///
    /// # Panics
    /// Panics with the current address, and with the focused element there.
    pub async fn arrives_at(&self, url: &str) {
        let mut last = Value::Null;
        let arriving = poll::comes(async || {
            let session = &self.browser.session;
            // One script asks for all of it: the page may be replaced between two.
            let script = "let at = document.activeElement;
                while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
                return [location.href, document.readyState, at?.outerHTML.slice(0, 200),
                    document.referrer, history.length]";
            let state = session.execute(script, vec![]).await.ok()?;
            last = state.json().clone();
            (last[0] == url && last[1] == "complete").then_some(())
        });
        if arriving.await.is_none() {
            let bound = poll::BOUND.as_secs();
            panic!("waited {bound} s in vain until the browser is at {url}; it is at {last}");
        }
    }

    /// Returns the number of cookies of all hosts.
    pub async fn cookies(&self) -> usize {
        self.browser.cookies().await
    }

    /// Returns everything that pages have logged so far.
    #[must_use]
    pub fn log(&self) -> Vec<LogEntry> {
        self.browser.events.log()
    }

    /// Returns every request that pages have made so far.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.browser.events.requests()
    }

    /// Waits until a page has logged `part`. Chromium's driver asks the page for the text of an
    /// uncaught error, so a test must wait for it before it leaves the page.
    ///
    /// # Panics
    /// Panics if no page logs it.
    pub async fn hears(&self, part: &str) {
        poll::until(&format!("a page says {part:?}"), async || {
            self.settle().await;
            let log = self.log();
            log.iter()
                .any(|entry| entry.text.contains(part))
                .then_some(())
        })
        .await;
    }

    /// Waits until everything that pages logged has arrived here.
    pub async fn settle(&self) {
        self.browser.settle().await;
    }

    /// Returns the unexpected log entries, and the expected ones that are missing.
    pub async fn complaints(&self) -> Vec<String> {
        self.settle().await;
        let expected = self.expected.lock().expect("no holder panics").clone();
        let grave: Vec<LogEntry> = self
            .log()
            .into_iter()
            .filter(|entry| entry.level == "warn" || entry.level == "error")
            .filter(|entry| !is_of_a_page_that_left(&entry.text))
            .collect();
        let surprises = grave
            .iter()
            .filter(|entry| {
                !expected
                    .iter()
                    .any(|expected| entry.text.contains(&expected.part))
            })
            .map(|entry| {
                format!(
                    "unexpected {} ({}): {}",
                    entry.level, entry.kind, entry.text
                )
            });
        let misses = expected.iter().filter_map(|Expected { part, times }| {
            let said = grave
                .iter()
                .filter(|entry| entry.text.contains(part.as_str()))
                .count();
            let times = (*times)?;
            (said != times).then(|| format!("said {said} times instead of {times}: {part:?}"))
        });
        surprises.chain(misses).collect()
    }
}

/// Whether this is what Firefox says of a request to another origin that was under way when its page went
/// away. The runtime asks for a token a second time after five seconds, so a page may leave at that moment.
fn is_of_a_page_that_left(text: &str) -> bool {
    text.contains("/token. (Reason: CORS request did not succeed)")
}
