//! Projects, their two environments, and their deployments.

use std::collections::BTreeMap;

use platform_protocol::names::Environment;
use uuid::Uuid;

use crate::clock::Millis;
use crate::listing::PageWords;
use crate::player::parse_reason;
use crate::takedown::Standing;

/// A game: a slug with a dev and a prod environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Host label and audience.
    pub slug: String,
    /// The owner; `None` for the platform itself, which has the demo and what the operator created.
    pub owner: Option<Uuid>,
    /// When it was made.
    pub created_at: Millis,
}

/// Characters of a deployment's message, at most.
pub const MESSAGE_CHARS: usize = 200;
/// Characters of a deployment's revision, at most.
const REVISION_CHARS: usize = 64;
/// The minimum length of a deployment's short id.
const SHORT_ID: usize = 8;

/// Who made a deployment, from where and why, if known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// The player who deployed it; `None` for the platform itself, or a deploy token of the operator.
    pub by: Option<Uuid>,
    /// The program that sent it, such as `platform-cli/0.1.0`.
    pub client: Option<String>,
    /// The address (IPv4, or IPv6 /64) of the request.
    pub network: Option<String>,
    /// The deployer's message, one line.
    pub message: Option<String>,
    /// The revision of its sources, such as a commit of git.
    pub revision: Option<String>,
    /// The name of the deploy token that it was sent with; `by` created that token, if a player did.
    pub deploy_token: Option<String>,
}

/// Parses a deployment's message: one line of visible text.
#[must_use]
pub fn parse_message(text: &str) -> Option<&str> {
    parse_reason(text).filter(|text| text.chars().count() <= MESSAGE_CHARS)
}

/// Parses a revision of a deployment's sources, as version control systems write them.
#[must_use]
pub fn parse_revision(text: &str) -> Option<&str> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-".contains(&byte);
    let sound = (1..=REVISION_CHARS).contains(&text.len()) && text.bytes().all(known);
    sound.then_some(text)
}

/// The shortest unique beginning of an id among others, at least eight characters.
#[must_use]
pub fn short_id(id: Uuid, others: &[Uuid]) -> String {
    let id = id.to_string();
    let others: Vec<String> = others.iter().map(Uuid::to_string).collect();
    let is_alone = |length: &usize| {
        let short = id.get(..*length).unwrap_or(&id);
        others
            .iter()
            .filter(|other| **other != id)
            .all(|other| !other.starts_with(short))
    };
    let length = (SHORT_ID..id.len()).find(is_alone).unwrap_or(id.len());
    id.get(..length).unwrap_or(&id).to_owned()
}

/// One deployment in one environment: the files of the game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Its id; the first characters are the short id.
    pub id: Uuid,
    /// Which project.
    pub slug: String,
    /// Which environment.
    pub environment: Environment,
    /// The files by their path, which has no leading slash.
    pub files: BTreeMap<String, FileEntry>,
    /// When it was deployed.
    pub created_at: Millis,
    /// Who made it, from where and why.
    pub made: Made,
    /// What the deploy found in its files. `None` if an older version of the program made
    /// it and its files were not inspected since.
    pub inspection: Option<Inspection>,
}

/// What the files of a deployment say, worked out once, when it is deployed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Inspection {
    /// The title of its page, if it is plain text.
    pub title: Option<String>,
    /// The pictures that its page names and that are its own files: path and query of
    /// each, the best first.
    pub pictures: Vec<String>,
    /// Whether an image is small enough for lists, by the path of its file, for those that could be the
    /// game's cover. Older deployments were stored without.
    #[serde(default)]
    pub measured: BTreeMap<String, bool>,
    /// What else its page says of the game.
    pub words: PageWords,
    /// What is wrong with how its page loads the runtime, and which files should hardly
    /// be public.
    pub warnings: Vec<DeploymentWarning>,
}

/// One thing that is wrong with a deployment.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeploymentWarning {
    /// The code, such as `runtime-not-loaded`.
    pub code: String,
    /// A sentence that says what to do.
    pub message: String,
}

/// A file of a deployment, addressed by its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileEntry {
    /// SHA-256 of the content, lower-case hex: its name in the file store, and
    /// its `ETag`.
    pub sha256: String,
    /// Length in bytes.
    pub size: u64,
}

/// A deployment in a project's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentSummary {
    /// Its id.
    pub id: Uuid,
    /// When it was deployed.
    pub created_at: Millis,
    /// How many files it has.
    pub files: u64,
    /// Bytes of its files together.
    pub bytes: u64,
    /// Whether it is the environment's current one.
    pub current: bool,
    /// Who made it, from where and why.
    pub made: Made,
}

/// The game's own backend in one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendSettings {
    /// `http://<host>[:<port>]`
    pub url: String,
    /// It serves the paths that begin with one of these.
    pub paths: Vec<String>,
}

/// The settings of one environment of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentRecord {
    /// The project.
    pub slug: String,
    /// Which of its environments.
    pub environment: Environment,
    /// The current deployment.
    pub deployment: Option<Uuid>,
    /// The game's own backend.
    pub backend: Option<BackendSettings>,
    /// Whether its pages are isolated from other origins, which engines with threads need.
    pub isolated: bool,
    /// Which sites may show its pages in a frame.
    pub frames: Frames,
    /// Whether the runtime puts a trace into the requests of its pages.
    pub traced: bool,
}

/// What the catalogue of games has of one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedEnvironment {
    /// What is set for it, and what it shows.
    pub record: EnvironmentRecord,
    /// Whether its project is shown.
    pub standing: Standing,
}

/// Which sites may show a game's pages in a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// All sites.
    #[default]
    Any,
    /// The platform's own pages.
    Platform,
    /// The platform's own pages, and pages of these origins.
    Origins(Vec<String>),
}

impl Frames {
    /// The setting in one word, for the log of events.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Platform => "platform",
            Self::Origins(_) => "a list",
        }
    }

    /// The value of a `frame-ancestors` directive (CSP 3 §6.4.2), with the platform's pages at
    /// `console` and the game's own; `None` if all sites may.
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

    #[test]
    fn an_id_is_short_as_long_as_no_other_begins_so() {
        let id = |text: &str| text.parse::<Uuid>().unwrap();
        let one = id("0198c2d4-1111-7000-8000-000000000001");
        let near = id("0198c2d4-1112-7000-8000-000000000002");
        let far = id("3f2a9c1b-1111-4000-8000-000000000003");
        assert_eq!(short_id(one, &[one, far]), "0198c2d4");
        assert_eq!(short_id(one, &[]), "0198c2d4");
        assert_eq!(short_id(one, &[one, near, far]), "0198c2d4-1111");
        assert_eq!(short_id(near, &[one, near, far]), "0198c2d4-1112");
    }

    #[test]
    fn revisions_are_as_version_control_writes_them() {
        for text in ["3f2a9c1", "3f2a9c1b8d-dirty", "v1.2.0+4", "feature/x"] {
            assert_eq!(parse_revision(text), Some(text));
        }
        let long = "a".repeat(65);
        for text in ["", "a b", "a\n", "\u{e9}", &long] {
            assert_eq!(parse_revision(text), None, "{text:?}");
        }
        assert_eq!(parse_message(" Fix the rings "), Some("Fix the rings"));
        assert_eq!(parse_message("a\nb"), None);
        assert_eq!(parse_message(&"a".repeat(201)), None);
    }
}
