//! A setting of an environment.

use crate::audit::AuditKind;
use crate::project::{BackendSettings, EnvironmentRecord, Frames};

/// A setting of an environment, with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentSetting {
    /// The game's own backend, or none.
    Backend(Option<BackendSettings>),
    /// Whether its pages are isolated from other origins.
    Isolated(bool),
    /// Which sites may show its pages in a frame.
    Frames(Frames),
    /// Whether the runtime puts a trace into the requests of its pages.
    Traced(bool),
}

impl EnvironmentSetting {
    /// Returns whether the setting already has this value.
    #[must_use]
    pub fn is_in(&self, record: &EnvironmentRecord) -> bool {
        match self {
            Self::Backend(backend) => record.backend == *backend,
            Self::Isolated(isolated) => record.isolated == *isolated,
            Self::Frames(frames) => record.frames == *frames,
            Self::Traced(traced) => record.traced == *traced,
        }
    }

    /// Returns the kind and the detail of the event that records the change; the environment's name
    /// comes before the detail.
    #[must_use]
    pub fn event(&self) -> (AuditKind, String) {
        let switched = |what: &str, is_on: bool| {
            let state = if is_on { "on" } else { "off" };
            (AuditKind::SettingChanged, format!("{what} {state}"))
        };
        match self {
            Self::Backend(backend) => {
                let url = backend.as_ref().map_or("none", |backend| &backend.url);
                (AuditKind::BackendChanged, url.to_owned())
            }
            Self::Isolated(isolated) => switched("isolation", *isolated),
            Self::Frames(frames) => (
                AuditKind::SettingChanged,
                format!("frames {}", frames.word()),
            ),
            Self::Traced(traced) => switched("tracing", *traced),
        }
    }
}
