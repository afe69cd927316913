//! Deploying: a set of files becomes what an environment shows, all or nothing.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use platform_protocol::names::Environment;
use platform_protocol::paths;

use crate::clock::Millis;
use crate::domain::project::{Deployment, FileEntry};
use crate::entropy::Entropy;
use crate::files::{FileError, FileStore};
use crate::store::{Store, StoreError};

/// Files of one deployment, at most.
pub const MAX_FILES: usize = 20_000;
/// Bytes of one deployment's files together, at most.
pub const MAX_BYTES: u64 = 512 * 1024 * 1024;
/// Bytes of one file's path, at most.
pub const MAX_PATH_BYTES: usize = 1_024;
/// Files that are written at one time.
const WRITES_AT_ONCE: usize = 8;

/// Why nothing was deployed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// There is no file at all.
    #[error("A deployment needs at least one file.")]
    Empty,
    /// A path that no deployment may have.
    #[error("The file {path:?} cannot be deployed: {reason}.")]
    Path {
        /// The path, shortened if it is long.
        path: String,
        /// What is wrong with it, as a part of a sentence.
        reason: &'static str,
    },
    /// More than [`MAX_FILES`].
    #[error("A deployment has at most {MAX_FILES} files.")]
    TooManyFiles,
    /// More than [`MAX_BYTES`].
    #[error("A deployment has at most {} MiB.", MAX_BYTES / (1024 * 1024))]
    TooLarge,
    /// There is no such project.
    #[error("There is no project {0:?}.")]
    UnknownProject(String),
    /// A file could not be kept.
    #[error("a file could not be kept")]
    Files(#[from] FileError),
    /// The store failed.
    #[error("the deployment could not be recorded")]
    Store(#[source] StoreError),
}

/// Makes `files` what the environment of a project shows. Nobody sees a part
/// of it: every file is kept first, then one operation of the store switches.
///
/// # Errors
/// [`DeployError`]; what the environment showed before, it still shows.
pub async fn publish(
    store: &dyn Store,
    files: &FileStore,
    entropy: &dyn Entropy,
    now: Millis,
    slug: &str,
    environment: Environment,
    content: Vec<(String, Bytes)>,
) -> Result<Deployment, DeployError> {
    let content = check(content)?;
    if store
        .find_project(slug)
        .await
        .map_err(DeployError::Store)?
        .is_none()
    {
        return Err(DeployError::UnknownProject(slug.to_owned()));
    }
    let files: BTreeMap<String, FileEntry> = stream::iter(content)
        .map(|(path, bytes)| async move { Ok::<_, FileError>((path, files.put(bytes).await?)) })
        .buffer_unordered(WRITES_AT_ONCE)
        .try_collect()
        .await?;
    let id = entropy.uuid_v7(now);
    let deployment = Deployment {
        id,
        slug: slug.to_owned(),
        environment,
        files,
        created_at: now,
    };
    match store.add_deployment(deployment.clone()).await {
        Ok(()) => Ok(deployment),
        Err(StoreError::Missing { .. }) => Err(DeployError::UnknownProject(slug.to_owned())),
        Err(error) => Err(DeployError::Store(error)),
    }
}

/// Checks every limit and every path before anything is written.
fn check(content: Vec<(String, Bytes)>) -> Result<BTreeMap<String, Bytes>, DeployError> {
    if content.is_empty() {
        return Err(DeployError::Empty);
    }
    if content.len() > MAX_FILES {
        return Err(DeployError::TooManyFiles);
    }
    let total: u64 = content.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    if total > MAX_BYTES {
        return Err(DeployError::TooLarge);
    }
    let mut checked = BTreeMap::new();
    for (path, bytes) in content {
        let path = normalise(&path)?;
        if checked.insert(path.clone(), bytes).is_some() {
            return Err(refused(&path, "it is there twice"));
        }
    }
    Ok(checked)
}

/// A file's path as a deployment keeps it: segments joined by `/`, without
/// the `./` with which an archive's names may begin.
///
/// # Errors
/// [`DeployError::Path`] for every path that could mean a place outside the
/// deployment, or none, on any system, and for those of the platform itself.
pub fn normalise(path: &str) -> Result<String, DeployError> {
    let name = path.strip_prefix("./").unwrap_or(path);
    let reserved = paths::PREFIX.trim_matches('/');
    let reason = if name.is_empty() {
        "it has no name"
    } else if name.len() > MAX_PATH_BYTES {
        "its name is too long"
    } else if name.starts_with('/') {
        "its name is absolute"
    } else if name.contains('\\') {
        "its name has a backslash"
    } else if name.chars().any(char::is_control) {
        "its name has a control character"
    } else if name.split('/').any(|segment| matches!(segment, "." | "..")) {
        "its name has a segment . or .."
    } else if name.split('/').any(str::is_empty) {
        "its name has an empty segment"
    } else if name.split('/').next() == Some(reserved) {
        "paths under /__platform/ are kept for the platform"
    } else {
        return Ok(name.to_owned());
    };
    Err(refused(path, reason))
}

fn refused(path: &str, reason: &'static str) -> DeployError {
    DeployError::Path {
        path: path.chars().take(100).collect(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::project::Project;
    use crate::entropy::SystemEntropy;
    use crate::store::connect;

    struct World {
        directory: tempfile::TempDir,
        store: Arc<dyn Store>,
        files: FileStore,
    }

    impl World {
        async fn with_project(slug: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let url = format!("sqlite://{}/platform.db", directory.path().display());
            let store = connect(&url).await.unwrap();
            let project = Project {
                slug: slug.into(),
                owner: None,
                created_at: 1,
            };
            store.add_project(project).await.unwrap();
            let files = FileStore::local(&directory.path().join("files")).unwrap();
            Self {
                directory,
                store,
                files,
            }
        }

        async fn publish(
            &self,
            slug: &str,
            files: &[(&str, &str)],
        ) -> Result<Deployment, DeployError> {
            let content = files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), Bytes::copy_from_slice(text.as_bytes())))
                .collect();
            let (store, environment) = (&*self.store, Environment::Prod);
            publish(
                store,
                &self.files,
                &SystemEntropy,
                5,
                slug,
                environment,
                content,
            )
            .await
        }

        async fn shown(&self, slug: &str, environment: Environment) -> Option<Deployment> {
            self.store
                .find_current_deployment(slug, environment)
                .await
                .unwrap()
        }
    }

    #[tokio::test]
    async fn a_deployment_is_shown_in_its_environment_alone() {
        let world = World::with_project("demo").await;
        let first = world
            .publish("demo", &[("index.html", "1"), ("a/b.js", "2")])
            .await
            .unwrap();
        assert_eq!(
            world.shown("demo", Environment::Prod).await,
            Some(first.clone())
        );
        assert_eq!(world.shown("demo", Environment::Dev).await, None);
        let content = world
            .files
            .read(&first.files["a/b.js"].sha256)
            .await
            .unwrap();
        assert_eq!(content.as_ref(), b"2");
        let second = world.publish("demo", &[("index.html", "3")]).await.unwrap();
        assert_eq!(world.shown("demo", Environment::Prod).await, Some(second));
    }

    #[tokio::test]
    async fn one_bad_file_keeps_the_whole_deployment_out() {
        let world = World::with_project("demo").await;
        let first = world.publish("demo", &[("index.html", "1")]).await.unwrap();
        for path in ["../x", "__platform/runtime.js"] {
            let refused = world
                .publish("demo", &[("index.html", "2"), (path, "3")])
                .await;
            assert!(matches!(refused, Err(DeployError::Path { .. })), "{path}");
        }
        assert_eq!(world.shown("demo", Environment::Prod).await, Some(first));
        let kept = std::fs::read_dir(world.directory.path().join("files"))
            .unwrap()
            .count();
        assert_eq!(kept, 1, "nothing of a refused deployment was written");
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_kept_leaves_the_old_deployment() {
        let world = World::with_project("demo").await;
        let first = world.publish("demo", &[("index.html", "1")]).await.unwrap();
        let files = world.directory.path().join("files");
        std::fs::remove_dir_all(&files).unwrap();
        std::fs::write(&files, "not a directory").unwrap();
        let failed = world.publish("demo", &[("index.html", "2")]).await;
        assert!(matches!(failed, Err(DeployError::Files(_))), "{failed:?}");
        assert_eq!(world.shown("demo", Environment::Prod).await, Some(first));
    }

    #[tokio::test]
    async fn an_unknown_project_and_an_empty_deployment_are_refused() {
        let world = World::with_project("demo").await;
        let unknown = world.publish("other", &[("index.html", "1")]).await;
        assert!(matches!(unknown, Err(DeployError::UnknownProject(slug)) if slug == "other"));
        assert!(matches!(
            world.publish("demo", &[]).await,
            Err(DeployError::Empty)
        ));
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let long = "a".repeat(MAX_PATH_BYTES + 1);
        for path in [
            "",
            ".",
            "..",
            "./",
            "/",
            "/etc/passwd",
            "//x",
            "a//b",
            "a/",
            "a/./b",
            "a/../b",
            "../a",
            "a/..",
            "././a",
            ".//a",
            "a\\b",
            "..\\a",
            "C:\\a",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            "a\u{85}b",
            "__platform",
            "__platform/x",
            "./__platform/x",
            &long,
        ] {
            assert!(
                matches!(normalise(path), Err(DeployError::Path { .. })),
                "{path:?}"
            );
        }
        for (path, kept) in [
            ("index.html", "index.html"),
            ("./index.html", "index.html"),
            ("a/b/c.js", "a/b/c.js"),
            ("...", "..."),
            ("a b/é.png", "a b/é.png"),
            ("x__platform/a", "x__platform/a"),
            ("a/__platform/b", "a/__platform/b"),
            (".well-known/x", ".well-known/x"),
        ] {
            assert_eq!(normalise(path).unwrap(), kept);
        }
    }

    #[test]
    fn limits_and_doubles_are_checked_before_anything_is_written() {
        let file = |name: String| (name, Bytes::new());
        let many = (0..=MAX_FILES)
            .map(|index| file(index.to_string()))
            .collect();
        assert!(matches!(check(many), Err(DeployError::TooManyFiles)));
        let doubled = vec![file("a".into()), file("./a".into())];
        assert!(matches!(check(doubled), Err(DeployError::Path { .. })));
        let mebibyte = Bytes::from(vec![0; 1024 * 1024]);
        let large = (0..=512)
            .map(|index| (index.to_string(), mebibyte.clone()))
            .collect();
        assert!(matches!(check(large), Err(DeployError::TooLarge)));
    }
}
