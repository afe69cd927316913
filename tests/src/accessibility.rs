//! What npm's `axe-core` finds wrong with a page for people who see, hear,
//! point or read otherwise (WCAG 2.2, level AA, and its own best practice), in
//! light and dark, on a desk and on a phone. It runs in Chromium: it reads
//! elements, roles and colours, which no engine makes up by itself, and it is
//! the dearest thing that a test can do.

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::browser::{Engine, Stage};
use crate::{npm, poll};

/// Runs axe where the driver runs scripts, which a page's own policy does not
/// forbid; its findings in a line each.
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

/// How a page is looked at.
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
    /// Those that `engine` can be told to show.
    #[must_use]
    pub const fn of(engine: Engine) -> &'static [Self] {
        match engine {
            Engine::Chromium => &[Self::Desk, Self::DarkDesk, Self::Phone, Self::DarkPhone],
            Engine::Firefox | Engine::WebKit => &[Self::Desk],
        }
    }
}

impl Stage {
    /// Shows pages like this from now on.
    ///
    /// # Panics
    /// When the browser cannot.
    pub async fn show_as(&self, look: Look) {
        if self.engine() != Engine::Chromium {
            return;
        }
        let tools = self.browser().session.cdp();
        let dark = matches!(look, Look::DarkDesk | Look::DarkPhone);
        let narrow = matches!(look, Look::Phone | Look::DarkPhone);
        let scheme = if dark { "dark" } else { "" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        let (metrics, size) = if narrow {
            let phone =
                json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
            ("Emulation.setDeviceMetricsOverride", phone)
        } else {
            ("Emulation.clearDeviceMetricsOverride", json!({}))
        };
        for (method, parameters) in [("Emulation.setEmulatedMedia", media), (metrics, size)] {
            let done = tools.send_raw(method, parameters).await;
            done.unwrap_or_else(|error| panic!("{method}: {error}"));
        }
        let shown = "return [matchMedia('(prefers-color-scheme: dark)').matches, innerWidth < 500]";
        // A page that is large takes a moment to be laid out anew.
        poll::until(&format!("the page is shown as {look:?}"), async || {
            (self.look(shown, vec![]).await == json!([dark, narrow])).then_some(())
        })
        .await;
    }

    /// Everything that is wrong with the page as it is shown, a line each.
    /// Nothing in another engine than Chromium.
    ///
    /// # Panics
    /// When axe cannot be run.
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
                format!("{};{RUN}", axe.expect("axe-core is installed"))
            })
            .await;
        let session = &self.browser().session;
        let answer = session.execute_async(script.as_str(), vec![]).await;
        let answer = answer.unwrap_or_else(|error| panic!("axe did not run: {error}"));
        let result: &Value = answer.json();
        assert!(
            result["found"] != json!([]) || result["passed"].as_u64() > Some(5),
            "axe has looked at nothing: {result}"
        );
        serde_json::from_value(result["found"].clone()).expect("a list of lines")
    }
}
