//! The stored sign-ins: one file, readable only by its owner, with one entry per origin.
//!
//! A refresh token works once. Two commands must not use it at the same time, so a command that
//! changes the file holds a lock from before it reads until after it writes.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::pause;
use crate::environment::ProcessEnvironment;
use crate::failure::Failure;
use crate::origin::PlatformOrigin;
use crate::secret::Secret;

const FILE_NAME: &str = "credentials.toml";
const LOCK_NAME: &str = "credentials.lock";
/// How often a lock of another command is tried again.
const LOCK_LOOK: Duration = Duration::from_millis(50);
/// A token is not used in its last seconds, or in the last fifth of its life if that is shorter: it
/// could expire on its way.
const MARGIN_SECONDS: i64 = 60;

/// The tokens of one platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Gives access to the project API.
    pub(crate) access_token: Secret,
    /// When it was received, in seconds since the epoch.
    pub(crate) received_at: i64,
    /// Its life from then on, in seconds.
    pub(crate) expires_in: i64,
    /// Works once, to get new tokens.
    pub(crate) refresh_token: Secret,
}

impl Entry {
    /// Whether the access token can still be sent. False if the clock was set back: its age is then
    /// unknown.
    pub(crate) fn is_fresh(&self, now: i64) -> bool {
        let age = now.saturating_sub(self.received_at);
        age >= 0 && age < self.expires_in - MARGIN_SECONDS.min(self.expires_in / 5)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    /// The origin of the last sign-in, used if no setting names another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_origin: Option<String>,
    #[serde(default)]
    origins: BTreeMap<String, Entry>,
}

/// The file of credentials.
#[derive(Debug)]
pub(crate) struct Credentials {
    folder: PathBuf,
}

impl Credentials {
    /// Finds the folder: `$XDG_CONFIG_HOME/platform`, else the system's own.
    ///
    /// # Errors
    /// There is no home folder.
    pub(crate) fn locate(environment: &ProcessEnvironment) -> Result<Self, Failure> {
        let folder = environment.config_folder().ok_or_else(|| {
            Failure::failed("No home folder is known: set HOME or XDG_CONFIG_HOME.")
        })?;
        Ok(Self { folder })
    }

    /// Returns the entry of a platform. Another command may change it at any time.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub(crate) fn look_up(&self, origin: &PlatformOrigin) -> Result<Option<Entry>, Failure> {
        Ok(self.read()?.origins.remove(&origin.to_string()))
    }

    /// The origin of the last sign-in, unless it was signed out since.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub(crate) fn last_origin(&self) -> Result<Option<String>, Failure> {
        Ok(self.read()?.last_origin)
    }

    /// Waits until no other command changes the file, for `patience` at most.
    ///
    /// # Errors
    /// The folder cannot be made, or another command holds the lock too long.
    pub(crate) async fn lock(&self, patience: Duration) -> Result<Locked<'_>, Failure> {
        make_private_folder(&self.folder).map_err(|error| self.cannot("be made", &error))?;
        let file = open_private(&self.folder.join(LOCK_NAME))
            .map_err(|error| self.cannot("be locked", &error))?;
        let take = async {
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => pause(LOCK_LOOK).await,
                    Err(TryLockError::Error(error)) => {
                        return Err(self.cannot("be locked", &error));
                    }
                }
            }
        };
        tokio::time::timeout(patience, take).await.map_err(|_| {
            Failure::failed("Another command is signing in or out: try again when it has finished.")
        })??;
        Ok(Locked {
            credentials: self,
            _file: file,
        })
    }

    fn read(&self) -> Result<Content, Failure> {
        let path = self.folder.join(FILE_NAME);
        match std::fs::read_to_string(&path) {
            // The parser's message quotes the line, which may contain a token.
            Ok(text) => toml::from_str(&text).map_err(|_| {
                Failure::failed(format!(
                    "{} is damaged: delete it and run `platform login`.",
                    path.display()
                ))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Content::default()),
            Err(error) => Err(Failure::failed(format!(
                "{} cannot be read: {error}.",
                path.display()
            ))),
        }
    }

    /// Writes a new file and replaces the old one by it: a reader sees one or the other.
    fn write(&self, content: &Content) -> Result<(), Failure> {
        let text = toml::to_string(content)
            .map_err(|error| Failure::failed(format!("The credentials are unusable: {error}.")))?;
        let written = (|| {
            // Temporary files are made readable by their owner alone.
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(self.folder.join(FILE_NAME))
                .map_err(|error| error.error)
        })();
        written
            .map(drop)
            .map_err(|error| self.cannot("be written to", &error))
    }

    fn cannot(&self, what: &str, error: &io::Error) -> Failure {
        Failure::failed(format!(
            "The folder {} cannot {what}: {error}.",
            self.folder.display()
        ))
    }
}

/// The locked file: no other command may change it. Dropping this unlocks it.
#[derive(Debug)]
#[must_use = "the file is locked only while this is kept"]
pub(crate) struct Locked<'a> {
    credentials: &'a Credentials,
    _file: File,
}

impl Locked<'_> {
    /// Returns the current entry of a platform.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn look_up(&self, origin: &PlatformOrigin) -> Result<Option<Entry>, Failure> {
        self.credentials.look_up(origin)
    }

    /// Sets the entry of a platform, or removes it.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn set(&self, origin: &PlatformOrigin, entry: Option<Entry>) -> Result<(), Failure> {
        let mut content = self.credentials.read()?;
        match entry {
            Some(entry) => content.origins.insert(origin.to_string(), entry),
            None => content.origins.remove(&origin.to_string()),
        };
        self.credentials.write(&content)
    }

    /// Sets the entry of a platform after a sign-in, and remembers its origin as the last one.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn sign_in(&self, origin: &PlatformOrigin, entry: Entry) -> Result<(), Failure> {
        let mut content = self.credentials.read()?;
        content.last_origin = Some(origin.to_string());
        content.origins.insert(origin.to_string(), entry);
        self.credentials.write(&content)
    }

    /// Removes the entry of a platform, and forgets that it was the last one. Returns the removed
    /// entry.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn sign_out(&self, origin: &PlatformOrigin) -> Result<Option<Entry>, Failure> {
        let mut content = self.credentials.read()?;
        let origin = origin.to_string();
        let entry = content.origins.remove(&origin);
        let was_last = content.last_origin.as_ref() == Some(&origin);
        if was_last {
            content.last_origin = None;
        }
        if was_last || entry.is_some() {
            self.credentials.write(&content)?;
        }
        Ok(entry)
    }
}

#[cfg(unix)]
fn make_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    // Another program may have made it, with more permissions.
    let permissions = std::fs::metadata(folder)?.permissions();
    if permissions.mode() & 0o777 != 0o700 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_private_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(token: &str) -> Entry {
        Entry {
            access_token: Secret::new(token),
            received_at: 1_000,
            expires_in: 900,
            refresh_token: Secret::new("refresh"),
        }
    }

    fn in_folder(folder: &Path) -> Credentials {
        Credentials {
            folder: folder.join("config/platform"),
        }
    }

    #[test]
    fn a_token_is_used_until_a_minute_before_its_end_by_a_clock_that_goes_on() {
        let entry = entry("a");
        assert!(entry.is_fresh(1_000) && entry.is_fresh(1_839));
        assert!(!entry.is_fresh(1_840) && !entry.is_fresh(999));
    }

    #[tokio::test]
    async fn origins_have_entries_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = in_folder(folder.path());
        let one: PlatformOrigin = "https://one.example".parse().unwrap();
        let two: PlatformOrigin = "https://two.example".parse().unwrap();
        assert!(credentials.look_up(&one).unwrap().is_none());
        let locked = credentials.lock(Duration::from_secs(1)).await.unwrap();
        locked.set(&one, Some(entry("a"))).unwrap();
        locked.set(&two, Some(entry("b"))).unwrap();
        locked.set(&one, None).unwrap();
        drop(locked);
        assert!(credentials.look_up(&one).unwrap().is_none());
        assert_eq!(credentials.look_up(&two).unwrap(), Some(entry("b")));
    }

    #[tokio::test]
    async fn the_origin_signed_in_to_last_is_remembered_until_it_is_signed_out_of() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = in_folder(folder.path());
        let one: PlatformOrigin = "https://one.example".parse().unwrap();
        let two: PlatformOrigin = "https://two.example".parse().unwrap();
        let last = || credentials.last_origin().unwrap();
        assert_eq!(last(), None);
        let locked = credentials.lock(Duration::from_secs(1)).await.unwrap();
        locked.sign_in(&one, entry("a")).unwrap();
        locked.sign_in(&two, entry("b")).unwrap();
        assert_eq!(last(), Some(two.to_string()));
        // A new sign-in repairs the same origin after it was ended elsewhere.
        locked.set(&two, None).unwrap();
        assert_eq!(locked.sign_out(&one).unwrap(), Some(entry("a")));
        assert_eq!(last(), Some(two.to_string()));
        assert_eq!(locked.sign_out(&two).unwrap(), None);
        assert_eq!(last(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_that_another_holds_is_waited_for_and_given_up_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = in_folder(folder.path());
        let held = credentials.lock(Duration::from_secs(1)).await.unwrap();
        assert!(credentials.lock(Duration::from_secs(5)).await.is_err());
        drop(held);
        assert!(credentials.lock(Duration::from_secs(5)).await.is_ok());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nobody_else_can_read_it_whatever_was_there_before() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let credentials = in_folder(folder.path());
        std::fs::create_dir_all(&credentials.folder).unwrap();
        let path = credentials.folder.join(FILE_NAME);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let origin = "https://one.example".parse().unwrap();
        let locked = credentials.lock(Duration::from_secs(1)).await.unwrap();
        locked.set(&origin, Some(entry("a"))).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&credentials.folder), 0o700);
    }

    #[test]
    fn a_damaged_file_is_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = in_folder(folder.path());
        std::fs::create_dir_all(&credentials.folder).unwrap();
        std::fs::write(
            credentials.folder.join(FILE_NAME),
            "access_token = \"hidden",
        )
        .unwrap();
        let origin = "https://one.example".parse().unwrap();
        let failure = credentials.look_up(&origin).unwrap_err();
        assert!(!format!("{failure:?}").contains("hidden"));
    }
}
