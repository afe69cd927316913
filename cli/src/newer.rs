//! Says when the platform hands out a newer version of this program: its answers name the version, so
//! no request is needed for it. It is said once a day for each platform, on standard error.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use platform_protocol::command_line::VERSION_HEADER;
use platform_protocol::paths::CLI_PAGES;
use semver::Version;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::origin::PlatformOrigin;
use crate::terminal;

/// In the cache folder: when it was last said.
const FILE_NAME: &str = "newer.json";
/// How long it is not said again, in seconds.
const DAY: i64 = 24 * 60 * 60;

/// The version that a platform hands out, as soon as it has answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandedOut(Arc<OnceLock<(PlatformOrigin, Version)>>);

/// When it was last said, in seconds since the epoch, by the platform's origin.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Told(BTreeMap<String, i64>);

impl HandedOut {
    /// Reads the version in an answer of the platform.
    pub(crate) fn note(&self, origin: &PlatformOrigin, headers: &HeaderMap) {
        let version = headers.get(VERSION_HEADER);
        let version = version.and_then(|version| version.to_str().ok()?.parse().ok());
        if let Some(version) = version {
            // All answers of a command name the same one.
            let _ = self.0.set((origin.clone(), version));
        }
    }

    /// Says that there is a newer version, unless that was said less than a day before `now`. `folder`
    /// remembers it: if it cannot be written, nothing is said, or it would be said every time.
    pub(crate) fn tell(&self, folder: &Path, now: i64) {
        let Ok(own) = Version::parse(env!("CARGO_PKG_VERSION")) else {
            return;
        };
        let Some((origin, version)) = self.0.get() else {
            return;
        };
        if *version > own && remember(folder, origin, now).is_ok_and(|is_due| is_due) {
            terminal::note(format_args!(
                "note: {origin}{CLI_PAGES} has platform {version}. This is {own}."
            ));
        }
    }
}

/// Whether it is due to be said at `now`. Remembers it in this case.
fn remember(folder: &Path, origin: &PlatformOrigin, now: i64) -> std::io::Result<bool> {
    let path = folder.join(FILE_NAME);
    let Told(mut told) = std::fs::read(&path)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    // A time in the future is from a clock that was wrong.
    told.retain(|_, at| (*at..at.saturating_add(DAY)).contains(&now));
    if told.contains_key(&origin.to_string()) {
        return Ok(false);
    }
    told.insert(origin.to_string(), now);
    std::fs::create_dir_all(folder)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(&serde_json::to_vec(&Told(told))?)?;
    new.persist(path)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_a_day_for_each_platform() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("cache");
        let origin = |text: &str| text.parse::<PlatformOrigin>().unwrap();
        let (one, two) = (origin("https://one.example"), origin("https://two.example"));
        let due = |origin, now| remember(&folder, origin, now).unwrap();
        assert!(due(&one, 1_000));
        assert!(!due(&one, 1_000));
        assert!(!due(&one, 1_000 + DAY - 1));
        assert!(due(&two, 1_001));
        assert!(due(&one, 1_000 + DAY));
        assert!(!due(&two, 1_000 + DAY));
        // The clock was set back.
        assert!(due(&one, 900));
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "damaged").unwrap();
        let origin = "https://one.example".parse().unwrap();
        assert!(remember(folder.path(), &origin, 1).unwrap());
        assert!(!remember(folder.path(), &origin, 2).unwrap());
    }

    #[test]
    fn only_a_version_is_noted() {
        let origin: PlatformOrigin = "https://one.example".parse().unwrap();
        for (text, version) in [
            ("1.2.3", Some("1.2.3")),
            ("new", None),
            ("1.2.3\u{e9}", None),
        ] {
            let handed_out = HandedOut::default();
            let value = http::HeaderValue::from_bytes(text.as_bytes()).unwrap();
            let headers =
                HeaderMap::from_iter([(http::HeaderName::from_static(VERSION_HEADER), value)]);
            handed_out.note(&origin, &headers);
            let noted = handed_out.0.get().map(|(_, version)| version.to_string());
            assert_eq!(noted.as_deref(), version, "{text}");
        }
    }
}
