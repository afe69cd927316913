//! Certificates from files. They are read again when they change; new ones that cannot be used
//! change nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use crate::config::tls::TlsSettings;
use crate::domain::errors::chain;
use crate::origin::PlatformOrigin;
use crate::platform::Platform;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::web::certificates::{Certificate, CertificateError, Certificates};

/// The time between two looks at the files.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long before its end an operator is warned of a certificate, and the time between two warnings.
const SOON: i64 = 7 * DAY;
const DAY: i64 = 86_400;
/// The largest file that is read: a chain has a few KiB.
const LARGEST: u64 = 1024 * 1024;

/// Why certificates from files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileCertificateError {
    /// A file cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The content of a pair of files cannot be used.
    #[error("{certificate} with {key}")]
    Content {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of its key.
        key: PathBuf,
        /// The cause.
        source: CertificateError,
    },
}

/// The content of the files: each certificate with its key.
type Contents = Vec<(Vec<u8>, Vec<u8>)>;

/// The certificates of files.
#[derive(Debug)]
pub struct CertificateFiles {
    paths: Vec<(PathBuf, PathBuf)>,
    certificates: Arc<Certificates>,
    /// A hash of what was last read, or of why it could not be read.
    seen: Mutex<[u8; 32]>,
}

impl CertificateFiles {
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// [`FileCertificateError`]
    pub async fn open(settings: &TlsSettings) -> Result<Self, FileCertificateError> {
        let paths = settings
            .pairs()
            .map(|(certificate, key)| (certificate.to_owned(), key.to_owned()));
        let paths: Vec<_> = paths.collect();
        let contents = read(&paths).await?;
        let certificates = parse(&paths, &contents)?;
        Ok(Self {
            certificates: Arc::new(Certificates::new(certificates)),
            seen: Mutex::new(fingerprint(&contents)),
            paths,
        })
    }

    /// Returns the certificates in use.
    #[must_use]
    pub fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.certificates)
    }

    /// Reads the files again. Returns whether there are new certificates, which are used from now on.
    ///
    /// # Errors
    /// Why new files cannot be used, once for each change. The certificates stay.
    pub async fn look_again(&self) -> Result<bool, FileCertificateError> {
        // One look at a time: a slower one has read older files.
        let mut seen = self.seen.lock().await;
        let contents = read(&self.paths).await;
        let now = match &contents {
            Ok(contents) => fingerprint(contents),
            Err(error) => Sha256::digest(chain(error)).into(),
        };
        if *seen == now {
            return Ok(false);
        }
        *seen = now;
        self.certificates.replace(parse(&self.paths, &contents?)?);
        Ok(true)
    }

    /// Returns the names of the platform for which there is no certificate. `any-game` stands for the label of
    /// each game.
    #[must_use]
    pub fn missing(&self, origin: &PlatformOrigin, games: &PlatformOrigin) -> Vec<String> {
        let all = self.certificates.all();
        let mut names = vec![
            origin.host().to_owned(),
            format!("auth.{}", origin.host()),
            format!("any-game.{}", games.host()),
        ];
        names.retain(|name| !all.iter().any(|one| one.is_for(name)));
        names
    }

    /// Returns when the certificates end, in seconds since 1970.
    #[must_use]
    pub fn ends(&self) -> Vec<i64> {
        let all = self.certificates.all();
        all.iter().map(|one| one.valid().1).collect()
    }
}

async fn read(paths: &[(PathBuf, PathBuf)]) -> Result<Contents, FileCertificateError> {
    let paths = paths.to_vec();
    let reading = tokio::task::spawn_blocking(move || {
        let pairs = paths.iter();
        pairs
            .map(|(certificate, key)| Ok((read_file(certificate)?, read_file(key)?)))
            .collect()
    });
    match reading.await {
        Ok(contents) => contents,
        // The task neither panics nor is cancelled, but when the runtime ends.
        Err(error) => Err(FileCertificateError::Read {
            path: PathBuf::new(),
            source: error.into(),
        }),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, FileCertificateError> {
    use std::io::Read as _;
    let read = || {
        let mut content = Vec::new();
        let file = std::fs::File::open(path)?;
        file.take(LARGEST).read_to_end(&mut content)?;
        Ok(content)
    };
    read().map_err(|source| FileCertificateError::Read {
        path: path.to_owned(),
        source,
    })
}

fn parse(
    paths: &[(PathBuf, PathBuf)],
    contents: &Contents,
) -> Result<Vec<Certificate>, FileCertificateError> {
    let both = paths.iter().zip(contents);
    both.map(|((certificate, key), (chain, secret))| {
        Certificate::from_pem(chain, secret).map_err(|source| FileCertificateError::Content {
            certificate: certificate.clone(),
            key: key.clone(),
            source,
        })
    })
    .collect()
}

fn fingerprint(contents: &Contents) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (chain, key) in contents {
        for part in [chain, key] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
    }
    hash.finalize().into()
}

/// Reads the certificates again, and warns before one ends.
pub(super) struct ReadCertificates {
    files: Arc<CertificateFiles>,
    platform: Arc<Platform>,
    warned: Option<i64>,
    /// The names without a certificate that the last warning named.
    missing: Vec<String>,
}

impl ReadCertificates {
    /// Reads these.
    pub(super) fn new(files: Arc<CertificateFiles>, platform: &Arc<Platform>) -> Self {
        Self {
            files,
            platform: Arc::clone(platform),
            warned: None,
            missing: Vec::new(),
        }
    }

    fn warn_of_missing(&mut self) {
        let platform = &self.platform;
        let missing = self.files.missing(&platform.origin, &platform.games_origin);
        if missing != self.missing && !missing.is_empty() {
            tracing::warn!(
                names = missing.join(", "),
                "no certificate of TLS is for these names, so browsers refuse them; put one that is into \
                 its files, which are read again by themselves"
            );
        }
        self.missing = missing;
    }

    fn warn(&mut self) {
        let now = self.platform.clock.now() / 1_000;
        let Some(end) = self.files.ends().into_iter().min() else {
            return;
        };
        let again = self.warned.is_none_or(|before| now - before >= DAY);
        if end - now < SOON && again {
            self.warned = Some(now);
            let days = (end - now).div_euclid(DAY);
            tracing::warn!(
                days,
                "a certificate of TLS ends soon, or has ended; put a new one into its files, which \
                 are read again by themselves"
            );
        }
    }
}

#[async_trait]
impl Job for ReadCertificates {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("read-certificates", LOOK_AGAIN)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        match self.files.look_again().await {
            Ok(true) => tracing::info!("new certificates of TLS are used"),
            Ok(false) => {}
            Err(error) => tracing::warn!(
                error = chain(&error),
                "the new files of TLS cannot be used; the certificates before them stay in use"
            ),
        }
        let ends = self.files.ends().into_iter();
        let ends = ends.map(|end| end.saturating_mul(1_000)).collect();
        self.platform.metrics.set_certificate_ends(ends);
        self.warn();
        self.warn_of_missing();
        Ok(())
    }
}
