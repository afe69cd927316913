//! The engines in which browser tests run. To add an engine, add a variant with its driver and its
//! capabilities.

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use thirtyfour::common::capabilities::desiredcapabilities::Capabilities;
use thirtyfour::common::capabilities::firefox::FirefoxPreferences;
use thirtyfour::{BrowserCapabilitiesHelper, CapabilitiesHelper, DesiredCapabilities};

use crate::settings;

/// A browser engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Blink and V8, as in Chromium, Chrome, Edge.
    Chromium,
    /// Gecko and SpiderMonkey, as in Firefox.
    Firefox,
    /// WebKit and JavaScriptCore, as in Safari; here the port to GTK.
    WebKit,
}

/// How a browser is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// As a player's browser that is new.
    #[default]
    Usual,
    /// With private windows alone.
    Private,
    /// With cookies switched off: it keeps none and sends none.
    WithoutCookies,
}

/// Keeps Chromium from making background requests and from needing a display. The sandbox is off
/// because root may not use it.
const CHROMIUM_ARGUMENTS: [&str; 9] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];

impl Engine {
    /// Every engine.
    pub const ALL: [Self; 3] = [Self::Chromium, Self::Firefox, Self::WebKit];

    /// Returns the name as in a test's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
            Self::WebKit => "webkit",
        }
    }

    /// Returns the path of the driver program.
    #[must_use]
    pub fn driver(self) -> PathBuf {
        match self {
            Self::Chromium => settings::program("CHROMEDRIVER", &["chromedriver"]),
            Self::Firefox => settings::program("GECKODRIVER", &["geckodriver"]),
            Self::WebKit => settings::program("WEBKITDRIVER", &["WebKitWebDriver"]),
        }
    }

    /// Returns the driver's arguments for listening on `port` of the loopback address.
    #[must_use]
    pub fn driver_arguments(self, port: u16, profiles: &Path) -> Vec<String> {
        let profiles = profiles.display();
        match self {
            Self::Chromium => vec![format!("--port={port}"), "--log-level=SEVERE".into()],
            // Its own connection to Firefox needs another port.
            Self::Firefox => vec![
                format!("--port={port}"),
                "--websocket-port=0".into(),
                "--log=error".into(),
                format!("--profile-root={profiles}"),
            ],
            Self::WebKit => vec![format!("--port={port}")],
        }
    }

    /// Returns the environment variables for the driver and its browser.
    #[must_use]
    pub fn environment(
        self,
        profiles: &Path,
        display: Option<&str>,
    ) -> Vec<(&'static str, OsString)> {
        match self {
            Self::Chromium | Self::Firefox => vec![],
            Self::WebKit => [
                "HOME",
                "XDG_CACHE_HOME",
                "XDG_CONFIG_HOME",
                "XDG_DATA_HOME",
                "XDG_RUNTIME_DIR",
            ]
            .map(|name| (name, profiles.as_os_str().to_owned()))
            .into_iter()
            .chain([
                ("DISPLAY", display.unwrap_or_default().into()),
                ("GDK_BACKEND", "x11".into()),
                // Nothing from the desktop on which the tests may run.
                ("DBUS_SESSION_BUS_ADDRESS", "disabled:".into()),
                ("GIO_USE_VFS", "local".into()),
                ("GSETTINGS_BACKEND", "memory".into()),
                ("GTK_A11Y", "none".into()),
                ("NO_AT_BRIDGE", "1".into()),
            ])
            .collect(),
        }
    }

    /// Returns the requested capabilities of a session, with its profile in `profiles`, and with
    /// its requests sent through `proxy` if there is one.
    ///
    /// # Panics
    /// Never in practice: the capabilities are plain JSON.
    #[must_use]
    pub fn capabilities(
        self,
        manner: Manner,
        profiles: &Path,
        proxy: Option<SocketAddr>,
    ) -> Capabilities {
        let mut capabilities = match self {
            Self::Chromium => chromium(manner, profiles),
            Self::Firefox => firefox(manner),
            Self::WebKit => webkit(manner, proxy),
        };
        // Nobody has signed the certificate of a test.
        capabilities.accept_insecure_certs(true).expect("a flag");
        capabilities
    }
}

/// A public suffix of the browsers' own list, whose names lead to this machine here.
pub const LISTED_SUFFIX: &str = "dyndns.org";

fn chromium(manner: Manner, profiles: &Path) -> Capabilities {
    let mut chromium = DesiredCapabilities::chrome();
    chromium.enable_bidi().expect("a flag");
    let profile = format!("--user-data-dir={}", profiles.join("profile").display());
    let mut arguments = CHROMIUM_ARGUMENTS.map(String::from).to_vec();
    arguments.push(profile);
    arguments.push(format!(
        "--host-resolver-rules=MAP *.{LISTED_SUFFIX} 127.0.0.1"
    ));
    match manner {
        Manner::Usual => {}
        Manner::Private => arguments.push("--incognito".into()),
        Manner::WithoutCookies => {
            let block = json!({ "profile.default_content_setting_values.cookies": 2 });
            chromium
                .set_browser_option("prefs", block)
                .expect("preferences");
        }
    }
    chromium
        .set_browser_option("args", json!(arguments))
        .expect("a list");
    let binary = settings::program(
        "CHROMIUM",
        &["chromium", "chromium-browser", "google-chrome"],
    );
    chromium
        .set_browser_option("binary", json!(binary))
        .expect("a path");
    chromium.into()
}

fn firefox(manner: Manner) -> Capabilities {
    let mut firefox = DesiredCapabilities::firefox();
    firefox.enable_bidi().expect("a flag");
    firefox.add_arg("-headless").expect("an argument");
    let binary = settings::program("FIREFOX", &["firefox-esr", "firefox"]);
    firefox
        .set_firefox_binary(&binary.to_string_lossy())
        .expect("a path");
    let mut preferences = FirefoxPreferences::new();
    // Keep a test's pages in the back/forward cache, as in a player's browser.
    preferences
        .set("fission.bfcacheInParent", true)
        .expect("a preference");
    // Otherwise the page's clock has only whole milliseconds.
    preferences
        .set("privacy.reduceTimerPrecision", false)
        .expect("a preference");
    let local = ["demo", "dev-demo"].map(|label| format!("{label}.{LISTED_SUFFIX}"));
    preferences
        .set("network.dns.localDomains", local.join(","))
        .expect("a preference");
    match manner {
        Manner::Usual => {}
        Manner::Private => preferences
            .set("browser.privatebrowsing.autostart", true)
            .expect("a preference"),
        Manner::WithoutCookies => preferences
            .set("network.cookie.cookieBehavior", 2)
            .expect("a preference"),
    }
    firefox.set_preferences(preferences).expect("preferences");
    firefox.into()
}

fn webkit(manner: Manner, proxy: Option<SocketAddr>) -> Capabilities {
    let mut webkit = Capabilities::new();
    let binary = settings::library_program(
        "WEBKIT",
        "MiniBrowser",
        &["webkit2gtk-4.1", "webkit2gtk-4.0", "webkitgtk-6.0"],
    );
    let mut arguments = vec!["--automation".to_owned()];
    let policy = match manner {
        Manner::Usual | Manner::Private => "always",
        Manner::WithoutCookies => "never",
    };
    arguments.push(format!("--cookies-policy={policy}"));
    if manner == Manner::Private {
        arguments.push("--private".to_owned());
    }
    // With the capability `proxy`, WebKitGTK would speak TLS with the proxy itself for https.
    arguments.extend(proxy.map(|proxy| format!("--proxy=http://{proxy}")));
    let options = json!({ "binary": binary, "args": arguments });
    webkit
        .set("webkitgtk:browserOptions", options)
        .expect("options");
    webkit
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
