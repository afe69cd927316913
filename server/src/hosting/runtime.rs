//! `runtime.js` with this platform's settings in it, and its source map.

use std::sync::Arc;

use platform_protocol::paths::SETTINGS_PLACEHOLDER;
use tokio::sync::OnceCell;

use crate::origin::PlatformOrigin;
use crate::web::asset::{Asset, Packed, packed};

const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/runtime.js"));

/// Games get a new runtime within minutes, and never wait for it.
const CACHE_CONTROL: &str = "public, max-age=300, stale-while-revalidate=86400";

/// One more setting, for games whose requests are traced (W3C Trace Context §3.2): it begins a trace in
/// the headers of a request, unless the game has done that. Other games do not have its bytes.
const TRACE: &str = r#"h=>{const i=()=>crypto.randomUUID().replace(/-/g,"");crypto.randomUUID&&!h.has("traceparent")&&h.set("traceparent","00-"+i()+"-"+i().slice(16)+"-01")}"#;

/// The runtime, as every game's address serves it.
#[derive(Debug)]
pub struct RuntimeFiles {
    /// `/__platform/runtime.js`
    pub script: Asset,
    /// `/__platform/runtime.js.map`
    pub source_map: Asset,
    settings: String,
    /// The script for games whose requests are traced, once there is one.
    traced: Arc<OnceCell<Arc<Asset>>>,
}

/// Why the runtime cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The built file has no placeholder for the settings.
    #[error("runtime.js has no place for the settings; run `cargo xtask build`")]
    Placeholder,
    /// The settings could not be written as JSON.
    #[error("the runtime's settings could not be written")]
    Settings(#[from] serde_json::Error),
    /// A compressor failed.
    #[error("runtime.js could not be compressed")]
    Compress(#[from] std::io::Error),
}

impl RuntimeFiles {
    /// Inserts the settings and compresses the script, which takes a moment.
    ///
    /// # Errors
    /// [`RuntimeError`]
    pub fn new(origin: &PlatformOrigin, heartbeat_seconds: u64) -> Result<Self, RuntimeError> {
        let settings = settings(&origin.auth_url(), origin, heartbeat_seconds)?;
        let source_map = Asset::new(
            packed!("runtime.js.map"),
            "application/json; charset=utf-8",
            CACHE_CONTROL,
        );
        Ok(Self {
            script: script(&settings)?,
            source_map: source_map.for_any_origin(),
            settings,
            traced: Arc::default(),
        })
    }

    /// Returns the script for games whose requests are traced. The first one waits while it is made.
    ///
    /// # Errors
    /// [`RuntimeError`]
    pub async fn traced(&self) -> Result<Arc<Asset>, RuntimeError> {
        if let Some(made) = self.traced.get() {
            return Ok(Arc::clone(made));
        }
        let (cell, settings) = (Arc::clone(&self.traced), traced(&self.settings));
        let make = move || async move {
            let made = tokio::task::spawn_blocking(move || script(&settings)).await;
            let made = made.map_err(|error| RuntimeError::Compress(error.into()))?;
            made.map(Arc::new)
        };
        // A task goes on when its visitor goes away. Otherwise each of many who do so would have the
        // script made once more.
        let made = tokio::spawn(async move { cell.get_or_try_init(make).await.cloned() });
        let made = made.await;
        made.map_err(|error| RuntimeError::Compress(error.into()))?
    }
}

/// Returns the script with these settings, compressed.
fn script(settings: &str) -> Result<Asset, RuntimeError> {
    let script = Packed::new(with_settings(SCRIPT, settings)?.into())?;
    let kind = "text/javascript; charset=utf-8";
    Ok(Asset::new(script, kind, CACHE_CONTROL).for_any_origin())
}

/// Returns the settings for games whose requests are traced.
fn traced(settings: &str) -> String {
    let others = settings.strip_suffix(']').unwrap_or(settings);
    format!("{others},{TRACE}]")
}

/// Returns the runtime for a pane of the Build page, which asks `auth_url` in place of the auth
/// service.
///
/// # Errors
/// [`RuntimeError`]
pub fn script_for(
    auth_url: &str,
    origin: &PlatformOrigin,
    heartbeat_seconds: u64,
) -> Result<String, RuntimeError> {
    with_settings(SCRIPT, &settings(auth_url, origin, heartbeat_seconds)?)
}

fn settings(
    auth_url: &str,
    origin: &PlatformOrigin,
    heartbeat_seconds: u64,
) -> Result<String, RuntimeError> {
    let settings = (auth_url, origin.to_string(), heartbeat_seconds);
    Ok(serde_json::to_string(&settings)?)
}

fn with_settings(script: &str, settings: &str) -> Result<String, RuntimeError> {
    match script.split_once(SETTINGS_PLACEHOLDER) {
        Some((before, after)) if !after.contains(SETTINGS_PLACEHOLDER) => {
            Ok(format!("{before}{settings}{after}"))
        }
        _ => Err(RuntimeError::Placeholder),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tokio::time::{interval, timeout};

    use super::*;

    #[test]
    fn the_settings_take_the_placeholders_place() {
        let origin = PlatformOrigin::local(8787);
        let settings = settings(&origin.auth_url(), &origin, 30).unwrap();
        let script = with_settings("start(__PLATFORM_SETTINGS__)", &settings).unwrap();
        assert_eq!(
            script,
            r#"start(["http://auth.platform.localhost:8787","http://platform.localhost:8787",30])"#
        );
        for wrong in ["start()", "__PLATFORM_SETTINGS__ __PLATFORM_SETTINGS__"] {
            assert!(with_settings(wrong, "[]").is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_game_that_is_traced_has_one_more() {
        let settings = traced(r#"["a","b",30]"#);
        assert!(settings.starts_with(r#"["a","b",30,h=>{"#), "{settings}");
        assert!(settings.ends_with("}]"), "{settings}");
    }

    #[tokio::test]
    async fn the_traced_script_is_made_although_its_first_visitor_goes_away() {
        let files = RuntimeFiles::new(&PlatformOrigin::local(8787), 30).unwrap();
        assert!(files.traced().now_or_never().is_none());
        let made = async {
            let mut looks = interval(Duration::from_millis(10));
            while files.traced.get().is_none() {
                looks.tick().await;
            }
        };
        timeout(Duration::from_secs(30), made).await.unwrap();
        assert!(files.traced().now_or_never().unwrap().is_ok());
    }

    #[test]
    fn the_built_file_has_one_place_for_them() {
        assert_eq!(SCRIPT.matches(SETTINGS_PLACEHOLDER).count(), 1);
    }
}
