//! A browser under test: its engine, its driver, its session, and what its pages logged and
//! requested.

mod display;
mod driver;
mod engine;
mod events;
mod page;
mod player;
mod proxy;
mod source;

pub use driver::Driver;
pub use engine::{Engine, LISTED_SUFFIX, Manner};
pub use events::{Events, LogEntry, SeenRequest};
pub use page::{PageError, Stage};

use std::sync::Arc;

use self::source::{Connected, Source};
use serde_json::json;
use thirtyfour::{TimeoutConfiguration, WebDriver};

use crate::poll::{BOUND, within};

/// One browser process with one session. Only one test uses it at a time.
#[derive(Debug)]
pub struct Browser {
    /// The engine.
    pub engine: Engine,
    /// The session.
    pub session: WebDriver,
    /// What its pages logged and requested.
    pub events: Arc<Events>,
    source: Connected,
    /// The window's width and height at the start.
    size: [u32; 2],
    // The last field, so that the session ends before its driver does.
    _driver: Driver,
}

impl Browser {
    /// Starts a driver and a browser of `engine`.
    ///
    /// # Panics
    /// Panics if either does not start.
    pub async fn start(engine: Engine) -> Self {
        Self::start_in(engine, Manner::Usual).await
    }

    /// Starts a driver and a browser of `engine` in a certain manner.
    ///
    /// # Panics
    /// Panics if either does not start.
    pub async fn start_in(engine: Engine, manner: Manner) -> Self {
        let driver = Driver::start(engine).await;
        let events = Arc::default();
        let source = Source::prepare(engine, &events).await;
        let capabilities = engine.capabilities(manner, driver.profile(), source.proxy());
        let session = within(
            "the browser to start",
            WebDriver::builder(driver.address(), capabilities)
                .request_timeout(BOUND * 3)
                .connect(),
        )
        .await
        .unwrap_or_else(|error| panic!("{engine} did not start a session: {error}"));
        let timeouts = TimeoutConfiguration::new(Some(BOUND), Some(BOUND), None);
        session
            .update_timeouts(timeouts)
            .await
            .expect("the driver takes timeouts");
        let source = source.connect(&session, &events).await;
        let size = size(&session).await;
        Self {
            engine,
            session,
            events,
            source,
            size,
            _driver: driver,
        }
    }

    /// Whether [`Browser::renew`] can remove everything. If not, no other test may use the browser.
    #[must_use]
    pub fn can_be_renewed(&self) -> bool {
        self.source.saw_everything()
    }

    /// Removes everything that the previous test left: its pages, its cookies, its events, the size of
    /// its window.
    ///
    /// # Panics
    /// Panics if the browser keeps a cookie.
    pub async fn renew(&self) {
        let windows = self
            .session
            .windows()
            .await
            .expect("the session lists its windows");
        for window in windows.iter().skip(1) {
            self.session
                .switch_to_window(window.clone())
                .await
                .expect("the window is there");
            self.session
                .close_window()
                .await
                .expect("the window closes");
        }
        self.session
            .switch_to_window(windows[0].clone())
            .await
            .expect("the window is there");
        self.session
            .goto("about:blank")
            .await
            .expect("an empty page opens");
        self.resize().await;
        self.source.delete_cookies(&self.session).await;
        self.events.clear();
    }

    /// Displays pages as the window is, without any override.
    pub(crate) async fn show_plainly(&self) {
        if self.engine == Engine::Chromium {
            let tools = self.session.cdp();
            for (method, parameters) in [
                ("Emulation.clearDeviceMetricsOverride", json!({})),
                ("Emulation.setEmulatedMedia", json!({ "features": [] })),
            ] {
                let done = tools.send_raw(method, parameters).await;
                done.unwrap_or_else(|error| panic!("{method}: {error}"));
            }
        }
    }

    /// Gives the window its first size back.
    async fn resize(&self) {
        self.show_plainly().await;
        let [width, height] = self.size;
        if size(&self.session).await != self.size {
            let resized = self.session.set_window_rect(0, 0, width, height).await;
            resized.expect("the window takes its first size");
        }
    }

    /// Returns the number of cookies of all hosts.
    ///
    /// # Panics
    /// Panics if the driver cannot count them.
    pub async fn cookies(&self) -> usize {
        self.source.cookies(&self.session).await
    }

    /// Waits until everything that pages logged has been collected.
    ///
    /// # Panics
    /// Panics if the page is stuck.
    pub async fn settle(&self) {
        self.source.settle(&self.session, &self.events).await;
    }

    /// Ends the session and the driver.
    pub async fn close(self) {
        let Self { session, .. } = self;
        // The driver is killed next, whether or not it could end the session.
        let _ = tokio::time::timeout(BOUND, session.quit()).await;
    }
}

/// The width and the height of the session's window.
async fn size(session: &WebDriver) -> [u32; 2] {
    let rect = session.get_window_rect().await;
    let rect = rect.expect("the window has a size");
    [rect.width, rect.height].map(|side| u32::try_from(side).expect("a side is not negative"))
}
