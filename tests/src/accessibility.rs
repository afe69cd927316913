//! Checks a page for accessibility with npm's `axe-core` (WCAG 2.2, level AA, and axe's own best
//! practices), in light and dark colours, on a desktop and on a phone. The checks run only in
//! Chromium: they read elements, roles and colours, which do not depend on the engine, and they are
//! the most expensive operation of these tests.

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::browser::{Engine, Stage};
use crate::{npm, poll};

/// Runs axe with the driver's scripts, which the page's own policy does not forbid. Returns one
/// line per finding.
const RUN: &str = "
    const done = arguments[0];
    axe.run(document, {
        // It would ask for stylesheets by itself.
        preload: false,
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
        resultTypes: ['violations', 'incomplete'],
    }).then(
        ({ violations, passes }) => done({
            passed: passes.length,
            found: violations.flatMap(({ id, help, nodes }) =>
                nodes.map(node => `${id}: ${help}: ${node.html} ${node.failureSummary}`)),
        }),
        error => done({ passed: 0, found: [`axe failed: ${error}`] }));";

/// How the page is displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Light colours, a wide window.
    Desk,
    /// Dark colours, a wide window.
    DarkDesk,
    /// Light colours, a phone's window.
    Phone,
    /// Dark colours, a phone's window.
    DarkPhone,
}

impl Look {
    /// Returns the variants that `engine` supports.
    #[must_use]
    pub const fn of(engine: Engine) -> &'static [Self] {
        match engine {
            Engine::Chromium => &[Self::Desk, Self::DarkDesk, Self::Phone, Self::DarkPhone],
            Engine::Firefox | Engine::WebKit => &[Self::Desk],
        }
    }
}

impl Stage {
    /// Displays pages as the window is, in light colours.
    pub async fn show_plainly(&self) {
        self.browser().show_plainly().await;
    }

    /// Displays pages in this way until [`Self::show_plainly`], or until the browser's next test.
    ///
    /// # Panics
    /// Panics if the browser does not support it.
    pub async fn show_as(&self, look: Look) {
        if self.engine() != Engine::Chromium {
            return;
        }
        let tools = self.browser().session.cdp();
        let dark = matches!(look, Look::DarkDesk | Look::DarkPhone);
        let narrow = matches!(look, Look::Phone | Look::DarkPhone);
        let scheme = if dark { "dark" } else { "" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        // The window itself may be as narrow as a phone.
        let size = if narrow {
            json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true })
        } else {
            json!({ "width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false })
        };
        for (method, parameters) in [
            ("Emulation.setEmulatedMedia", media),
            ("Emulation.setDeviceMetricsOverride", size),
        ] {
            let done = tools.send_raw(method, parameters).await;
            done.unwrap_or_else(|error| panic!("{method}: {error}"));
        }
        let shown = "return [matchMedia('(prefers-color-scheme: dark)').matches, innerWidth < 500]";
        let mut seen = Value::Null;
        // Laying out a large page again takes a moment.
        let come = poll::comes(async || {
            seen = self.look(shown, vec![]).await;
            (seen == json!([dark, narrow])).then_some(())
        })
        .await;
        assert!(come.is_some(), "{look:?}: dark and narrow are {seen}");
    }

    /// Returns all findings for the displayed page, one per line; an empty list in other engines
    /// than Chromium.
    ///
    /// # Panics
    /// Panics if axe cannot be run.
    pub async fn barriers(&self) -> Vec<String> {
        static SCRIPT: OnceCell<String> = OnceCell::const_new();
        if self.engine() != Engine::Chromium {
            return Vec::new();
        }
        let script = SCRIPT
            .get_or_init(async || {
                let packages = npm::packages("npm").await;
                let axe =
                    std::fs::read_to_string(packages.join("node_modules/axe-core/axe.min.js"));
                axe.expect("axe-core is installed")
            })
            .await;
        let session = &self.browser().session;
        // A page that is shown in several ways gets it once: it is half a megabyte.
        if self.look("return typeof axe", vec![]).await == json!("undefined") {
            let added = session.execute(script.as_str(), vec![]).await;
            added.unwrap_or_else(|error| panic!("axe cannot be added: {error}"));
        }
        let answer = session.execute_async(RUN, vec![]).await;
        let answer = answer.unwrap_or_else(|error| panic!("axe did not run: {error}"));
        let result: &Value = answer.json();
        assert!(
            result["found"] != json!([]) || result["passed"].as_u64() > Some(5),
            "axe has looked at nothing: {result}"
        );
        serde_json::from_value(result["found"].clone()).expect("a list of lines")
    }
}
