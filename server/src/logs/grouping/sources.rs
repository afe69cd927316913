//! The sources of deployed scripts, for places in stacks: through a script's source map, or the
//! script itself if it has none.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use moka::sync::Cache;
use percent_encoding::percent_decode_str;
use platform_checks::maps::{COMMENT, HAND_WRITTEN};
use platform_frontend_logs::source_map::{SourceMap, Text};
use platform_protocol::names::Environment;
use platform_protocol::paths::PREFIX;
use url::Url;
use uuid::Uuid;

use crate::domain::project::FileEntry;
use crate::domain::stack::{Engine, Frame};
use crate::games::files::FileStore;
use crate::store::Store;

/// The maximum number of bytes of a script or a map that is read.
const LARGEST: u64 = 16 * 1024 * 1024;
/// The maximum number of bytes of what is decoded and kept in memory.
const KEPT_BYTES: u64 = 88 * 1024 * 1024;
/// The maximum number of bytes of what is known about scripts by their paths.
const PATH_BYTES: u64 = 8 * 1024 * 1024;
/// The maximum number of scripts that are read for one environment in one run.
const READ_PER_RUN: usize = 16;
/// After so many bytes of scripts and maps, no other script is read for one environment in one run:
/// reading and decoding take time in proportion, for which all other environments wait. The last one
/// is read as a whole with its map, so it can be twice [`LARGEST`] more.
const BYTES_PER_RUN: u64 = 2 * LARGEST;
/// The maximum number of scripts that are looked for for one record: a page may name any number of
/// them, which must not keep other records from being mapped.
const SOUGHT_PER_RECORD: usize = 4;
/// The weight of an entry beside its contents.
const ENTRY_BYTES: usize = 256;

/// A script of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    deployment: Uuid,
    path: String,
}

/// What is known about a script.
#[derive(Clone, Debug)]
pub(super) enum Script {
    /// It has a map.
    Mapped(Arc<SourceMap>),
    /// It has none.
    Plain(Arc<Text>),
    /// It cannot be read, is too large, or does not exist.
    Unknown,
}

/// A script of a page, and whether it is of the deployment that was current.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) script: Script,
    /// Whether the deployment has it. If not, the page was of an earlier one.
    pub(super) is_current: bool,
}

/// What a script is decoded from. Many deployments share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Content {
    script: FileEntry,
    /// The map that it names; `None` if it has none, or holds it itself.
    map: Option<FileEntry>,
}

/// What is known about a script by its path.
#[derive(Clone, Debug)]
struct Known {
    /// `None` if it is too large, or does not exist.
    content: Option<Content>,
    is_current: bool,
}

/// The sources of scripts, decoded, within a limit of bytes.
#[derive(Debug)]
pub struct Sources {
    by_path: Cache<Key, Known>,
    decoded: Cache<Content, Script>,
}

impl Default for Sources {
    fn default() -> Self {
        let of_path = |key: &Key, _: &Known| {
            u32::try_from(2 * ENTRY_BYTES + key.path.len()).unwrap_or(u32::MAX)
        };
        let of_script = |_: &Content, script: &Script| {
            let content = match script {
                Script::Mapped(map) => map.weight(),
                Script::Plain(text) => text.weight(),
                Script::Unknown => 0,
            };
            u32::try_from(2 * ENTRY_BYTES + content).unwrap_or(u32::MAX)
        };
        Self {
            by_path: Cache::builder()
                .max_capacity(PATH_BYTES)
                .weigher(of_path)
                .build(),
            decoded: Cache::builder()
                .max_capacity(KEPT_BYTES)
                .weigher(of_script)
                .build(),
        }
    }
}

impl Sources {
    /// Returns how many scripts are kept decoded: those with the same content are one.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.decoded.run_pending_tasks();
        self.decoded.entry_count()
    }
}

/// How much may still be read for one environment in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    scripts: usize,
    bytes: u64,
}

impl Budget {
    /// What a run begins with.
    pub(super) const WHOLE: Self = Self {
        scripts: READ_PER_RUN,
        bytes: BYTES_PER_RUN,
    };

    /// Whether no other script may be read.
    pub(super) const fn is_spent(self) -> bool {
        self.scripts == 0 || self.bytes == 0
    }
}

/// The environment of a batch of records, and how much may still be read for it.
pub(super) struct Batch<'a> {
    sources: &'a Sources,
    files: &'a FileStore,
    store: &'a dyn Store,
    slug: &'a str,
    environment: Environment,
    /// The addresses of the game, and what follows the label of any address of it.
    origins: (Vec<String>, String),
    budget: Budget,
    to_seek: usize,
    was_refused: bool,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        sources: &'a Sources,
        (files, store): (&'a FileStore, &'a dyn Store),
        (slug, environment): (&'a str, Environment),
        origins: (Vec<String>, String),
        budget: Budget,
    ) -> Self {
        Self {
            sources,
            files,
            store,
            slug,
            environment,
            origins,
            budget,
            to_seek: 0,
            was_refused: false,
        }
    }

    /// Begins with the next record.
    pub(super) fn next_record(&mut self) {
        self.to_seek = SOUGHT_PER_RECORD;
        self.was_refused = false;
    }

    /// What is left of the budget.
    pub(super) const fn budget(&self) -> Budget {
        self.budget
    }

    /// Whether a script of this record was not read, because the budget was spent.
    pub(super) const fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// Returns the path of a script of the game from its address in a stack; `None` for other
    /// scripts, such as the platform's own.
    pub(super) fn path_of(&self, file: &str) -> Option<String> {
        let mut addresses = self.origins.0.iter();
        let path = match addresses.find_map(|origin| file.strip_prefix(&**origin)) {
            Some(path) => path,
            // A preview has an address of its own, which ends with the game's.
            None => {
                let rest = file.strip_prefix("https://");
                let rest = rest.or_else(|| file.strip_prefix("http://"))?;
                let (host, path) = rest.split_at(rest.find('/')?);
                host.strip_suffix(&*self.origins.1)?;
                path
            }
        };
        let path = path.split(['?', '#']).next()?.strip_prefix('/')?;
        let path = percent_decode_str(path).decode_utf8().ok()?.into_owned();
        if path.starts_with(PREFIX.trim_start_matches('/')) || path.contains('\0') {
            return None;
        }
        Some(if path.is_empty() || path.ends_with('/') {
            path + "index.html"
        } else {
            path
        })
    }

    /// Returns a script of a page that was received while `deployment` was current.
    pub(super) async fn script(&mut self, deployment: Uuid, path: &str) -> Option<Found> {
        let key = Key {
            deployment,
            path: path.to_owned(),
        };
        let (known, script) = match self.sources.by_path.get(&key) {
            Some(known) => (known, None),
            None => {
                self.to_seek = self.to_seek.checked_sub(1)?;
                // What cannot be read now may be readable later, so it is not kept.
                let (known, script) = self.look_up(deployment, path).await?;
                self.sources.by_path.insert(key, known.clone());
                (known, script)
            }
        };
        let is_current = known.is_current;
        let script = match known.content {
            Some(content) => self.decoded(content, script).await?,
            None => Script::Unknown,
        };
        Some(Found { script, is_current })
    }

    /// Looks for a script by its path, and reads it for the name of its map.
    async fn look_up(&mut self, deployment: Uuid, path: &str) -> Option<(Known, Option<Bytes>)> {
        let (entry, is_current) = self.entry(deployment, path).await?;
        let (content, script) = match entry.filter(|entry| entry.size <= LARGEST) {
            None => (None, None),
            Some(entry) => {
                let script = self.begin(&entry).await?;
                let map = self.map_of(deployment, path, &script).await?;
                (Some(Content { script: entry, map }), Some(script))
            }
        };
        let known = Known {
            content,
            is_current,
        };
        Some((known, script))
    }

    /// Reads a script, if one more may be read.
    async fn begin(&mut self, entry: &FileEntry) -> Option<Bytes> {
        if self.budget.is_spent() {
            self.was_refused = true;
            return None;
        }
        self.budget.scripts -= 1;
        self.read(entry).await
    }

    /// Reads a file. A script that was begun gets its map, whatever it costs.
    async fn read(&mut self, entry: &FileEntry) -> Option<Bytes> {
        self.budget.bytes = self.budget.bytes.saturating_sub(entry.size);
        self.files.read(entry, self.slug).await.ok()
    }

    /// Returns the file of a deployment; if it has none with this path, that of an earlier one. The
    /// names of bundled files contain a hash, so it is the one that the page has. Returns `None` if
    /// the store failed.
    async fn entry(&self, deployment: Uuid, path: &str) -> Option<(Option<FileEntry>, bool)> {
        let (slug, environment) = (self.slug, self.environment);
        let found = self
            .store
            .find_file_of(slug, environment, deployment, path)
            .await;
        if let Some(entry) = found.ok()? {
            return Some((Some(entry), true));
        }
        let kept = self.store.find_kept_file(slug, environment, path).await;
        Some((kept.ok()?, false))
    }

    /// Returns the map that a script names, if it is a file of a size that is read.
    async fn map_of(
        &self,
        deployment: Uuid,
        path: &str,
        script: &[u8],
    ) -> Option<Option<FileEntry>> {
        let Some(name) = named_by(script).filter(|name| !name.starts_with("data:")) else {
            return Some(None);
        };
        let map = self.map_file(deployment, path, name).await?;
        Some(map.filter(|map| map.size <= LARGEST))
    }

    /// Decodes a script's map, or the script itself if it has none. The script may have been read.
    async fn decoded(&mut self, content: Content, script: Option<Bytes>) -> Option<Script> {
        if let Some(known) = self.sources.decoded.get(&content) {
            return Some(known);
        }
        let script = match script {
            Some(script) => script,
            None => self.begin(&content.script).await?,
        };
        let map = match &content.map {
            Some(map) => Some(self.read(map).await?),
            None => None,
        };
        let decode = move || {
            let inlined = || named_by(&script).and_then(inlined).map(Bytes::from);
            let map = map.or_else(inlined);
            if let Some(map) = map.and_then(|map| SourceMap::parse(&map)) {
                return Script::Mapped(Arc::new(map));
            }
            let mut lines = 100_000;
            let text = std::str::from_utf8(&script).ok();
            let text = text.and_then(|text| Text::new(text.into(), &mut lines));
            text.map_or(Script::Unknown, |text| Script::Plain(Arc::new(text)))
        };
        let script = tokio::task::spawn_blocking(decode).await.ok()?;
        self.sources.decoded.insert(content, script.clone());
        Some(script)
    }

    async fn map_file(
        &self,
        deployment: Uuid,
        path: &str,
        name: &str,
    ) -> Option<Option<FileEntry>> {
        let map = || {
            let script = Url::parse(&format!("http://game/{path}")).ok()?;
            let url = script.join(name).ok()?;
            let path = url.path().strip_prefix('/')?.to_owned();
            let path = percent_decode_str(&path).decode_utf8().ok()?.into_owned();
            (url.host_str() == Some("game") || name.contains("://")).then_some(path)
        };
        match map() {
            Some(path) => Some(self.entry(deployment, &path).await?.0),
            None => Some(None),
        }
    }
}

/// Returns what the last comment of a script names: an address, or the map itself.
fn named_by(script: &[u8]) -> Option<&str> {
    let script = std::str::from_utf8(script).ok()?;
    let at = script.rfind(COMMENT)?;
    let before = script.get(..at)?;
    let is_comment = before.ends_with("//# ") || before.ends_with("//@ ");
    let name = script.get(at + COMMENT.len()..)?.trim();
    (is_comment && !name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

/// Returns the content of a `data:` address with JSON (RFC 2397).
fn inlined(name: &str) -> Option<Vec<u8>> {
    let (head, data) = name
        .strip_prefix("data:application/json")?
        .split_once(',')?;
    let data = percent_decode_str(data).collect::<Vec<u8>>();
    if head.ends_with(";base64") {
        STANDARD.decode(data).ok()
    } else {
        Some(data)
    }
}

/// A frame's place in the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The source, or the script if there is no map.
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
    /// The name in the source at this place.
    pub(super) name: String,
    /// The line of code.
    pub(super) code: Option<String>,
    pub(super) is_mapped: bool,
}

impl Script {
    /// Returns the place of a frame in the sources.
    pub(super) fn place(&self, frame: &Frame<'_>, path: &str, engine: Option<Engine>) -> Place {
        // Safari names the column after the failed expression.
        let behind = u32::from(engine == Some(Engine::Safari) && frame.column > 1);
        let column = frame.column - behind;
        let here = |code| Place {
            file: path.to_owned(),
            line: frame.line,
            column: frame.column,
            name: String::new(),
            code,
            is_mapped: false,
        };
        match self {
            Self::Mapped(map) => match map.find(frame.line, column) {
                None => here(None),
                Some(found) => Place {
                    file: cut(found.file, FILE),
                    line: found.line,
                    column: found.column,
                    name: cut(found.name, NAME),
                    code: found
                        .text
                        .and_then(|text| text.line(found.line))
                        .map(|line| cut(line.trim(), HAND_WRITTEN)),
                    is_mapped: true,
                },
            },
            Self::Plain(text) => {
                let line = text.line(frame.line);
                let line = line.filter(|line| line.len() <= HAND_WRITTEN);
                here(line.map(|line| line.trim().to_owned()))
            }
            Self::Unknown => here(None),
        }
    }

    /// Returns the source of a frame.
    pub(super) fn text(&self, frame: &Frame<'_>, engine: Option<Engine>) -> Option<&Text> {
        let behind = u32::from(engine == Some(Engine::Safari) && frame.column > 1);
        match self {
            Self::Mapped(map) => map.find(frame.line, frame.column - behind)?.text,
            Self::Plain(text) => Some(text),
            Self::Unknown => None,
        }
    }
}

/// The maximum number of bytes of a file's name.
pub(super) const FILE: usize = 200;
/// The maximum number of bytes of a function's name.
pub(super) const NAME: usize = 100;

/// Returns at most so many bytes of a text, with a visible sign in place of U+0000, which a map may
/// have, and which PostgreSQL refuses.
pub(super) fn cut(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].replace('\0', "\u{2400}")
}

/// Returns whether a frame is one of the game's own code, and not of a library.
pub(super) fn is_own(place: &Place) -> bool {
    !place.file.contains("node_modules/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_comment_of_a_script_names_its_map() {
        for (script, name) in [
            ("a();\n//# sourceMappingURL=a.js.map\n", Some("a.js.map")),
            ("//# sourceMappingURL=b\n//@ sourceMappingURL=a", Some("a")),
            ("a('sourceMappingURL=b')", None),
            ("//# sourceMappingURL=", None),
            ("//# sourceMappingURL=a\nb()", None),
            ("", None),
        ] {
            assert_eq!(named_by(script.as_bytes()), name, "{script}");
        }
    }

    #[test]
    fn a_map_in_the_script_is_read() {
        for (name, map) in [
            ("data:application/json;base64,e30=", Some("{}")),
            (
                "data:application/json;charset=utf-8;base64,e30=",
                Some("{}"),
            ),
            ("data:application/json,%7B%7D", Some("{}")),
            ("data:application/json;base64,!", None),
            ("data:text/plain,a", None),
        ] {
            let map = map.map(|map| map.as_bytes().to_vec());
            assert_eq!(inlined(name), map, "{name}");
        }
    }
}
