//! The runtime script: fetched once per run, and kept in a file, so that a game can be developed
//! without a network.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::NamedTempFile;
use tokio::sync::OnceCell;

use crate::client::Http;
use crate::commands::runtime;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::terminal;

/// The script of a game's dev address.
pub(super) struct Runtime {
    slug: String,
    /// The copy. None if this machine has no folder for it.
    file: Option<PathBuf>,
    script: OnceCell<Bytes>,
}

impl Runtime {
    /// The script of the game `slug` on the platform of `http`.
    pub(super) fn new(environment: &ProcessEnvironment, http: &Http, slug: &str) -> Self {
        let name = http.origin().to_string().replace(['/', ':'], "_");
        let folder = environment.cache_folder();
        Self {
            slug: slug.to_owned(),
            file: folder.map(|folder| folder.join("runtime").join(format!("{name}-{slug}.js"))),
            script: OnceCell::new(),
        }
    }

    /// Returns the script. It is fetched at the first call; a failure is tried again at the next.
    ///
    /// # Errors
    /// The platform does not give it, and there is no copy.
    pub(super) async fn get(&self, http: &Http) -> Result<Bytes, Failure> {
        let script = self.script.get_or_try_init(|| self.load(http)).await;
        script.cloned()
    }

    async fn load(&self, http: &Http) -> Result<Bytes, Failure> {
        let failure = match runtime::fetch(http, &self.slug).await {
            Ok(script) => {
                // Without a copy, only work without a network is impossible.
                let _ = self.file.as_deref().map(|file| write(file, &script));
                return Ok(script);
            }
            Err(failure) => failure,
        };
        let copy = self.file.as_ref().and_then(|file| std::fs::read(file).ok());
        let Some(copy) = copy else {
            return Err(failure);
        };
        if let Failure::Told(told) = failure {
            terminal::warn(format_args!(
                "{} The page goes on with the runtime of an earlier run; start again for a new one.",
                told.sentence
            ));
        }
        Ok(copy.into())
    }
}

/// Writes the whole file or nothing, so that an interrupted run leaves no partial script.
fn write(file: &Path, script: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(script)?;
    new.persist(file)?;
    Ok(())
}
