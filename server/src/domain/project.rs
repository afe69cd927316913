//! Projects, their two environments, and what is deployed there.

use std::collections::BTreeMap;

use platform_protocol::names::Environment;
use uuid::Uuid;

use crate::clock::Millis;

/// A game: a slug with a dev and a prod environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Host label and audience.
    pub slug: String,
    /// The player who owns it; none for the demo.
    pub owner: Option<Uuid>,
    /// When it was made.
    pub created_at: Millis,
}

/// One deploy of one environment: which files a game has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Time-ordered id.
    pub id: Uuid,
    /// Which project.
    pub slug: String,
    /// Which environment.
    pub environment: Environment,
    /// The files by their path, which has no leading slash.
    pub files: BTreeMap<String, FileEntry>,
    /// When it was deployed.
    pub created_at: Millis,
}

/// A file of a deployment, addressed by its content.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileEntry {
    /// SHA-256 of the content, lower-case hex: its name in the file store, and
    /// its `ETag`.
    pub sha256: String,
    /// Length in bytes.
    pub size: u64,
}

/// What a project's list says of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeploymentSummary {
    /// Time-ordered id.
    pub id: Uuid,
    /// When it was deployed.
    pub created_at: Millis,
    /// How many files it has.
    pub files: u64,
    /// Bytes of its files together.
    pub bytes: u64,
    /// Whether the environment shows it.
    pub current: bool,
}

/// The game's own backend in one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendSettings {
    /// `http://<host>[:<port>]`
    pub url: String,
    /// Paths that begin with one of these are answered by it.
    pub paths: Vec<String>,
}

/// What is set for one environment of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentRecord {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// What it shows.
    pub deployment: Option<Uuid>,
    /// Its own backend.
    pub backend: Option<BackendSettings>,
    /// Whether its pages are isolated from those of other origins, which
    /// engines with threads need.
    pub isolated: bool,
    /// Who may show its pages in a frame.
    pub frames: Frames,
}

/// Who may show a game's pages in a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// Anyone.
    #[default]
    Any,
    /// The platform's own pages.
    Platform,
    /// Those, and pages of these origins.
    Origins(Vec<String>),
}

impl Frames {
    /// The setting in a word, for the log of events.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Platform => "platform",
            Self::Origins(_) => "a list",
        }
    }

    /// The value of a `frame-ancestors` directive (CSP 3 §6.4.2), with the
    /// platform's pages at `console` and the game's own; none where anyone may.
    #[must_use]
    pub fn directive(&self, console: &str) -> Option<String> {
        let others = match self {
            Self::Any => return None,
            Self::Platform => &[][..],
            Self::Origins(origins) => origins,
        };
        let mut directive = format!("frame-ancestors 'self' {console}");
        for origin in others {
            directive.push(' ');
            directive.push_str(origin);
        }
        Some(directive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platforms_own_pages_may_always_show_a_game() {
        let directive = |frames: Frames| frames.directive("https://play.example");
        assert_eq!(directive(Frames::Any), None);
        assert_eq!(
            directive(Frames::Platform).as_deref(),
            Some("frame-ancestors 'self' https://play.example")
        );
        let some = Frames::Origins(vec![
            "https://a.example".into(),
            "https://b.example:1".into(),
        ]);
        assert_eq!(
            directive(some).as_deref(),
            Some(
                "frame-ancestors 'self' https://play.example https://a.example https://b.example:1"
            )
        );
    }
}
