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
