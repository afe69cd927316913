//! The certificates in the store, and those of them that this node has in memory.

use std::sync::Arc;

use moka::sync::Cache;

use super::account::account_name;
use super::authority::Issued;
use super::sealing::Sealing;
use crate::clock::Millis;
use crate::config::Config;
use crate::domain::certificate::{CertificateSummary, StoredCertificate};
use crate::entropy::Entropy;
use crate::store::{Store, StoreError};
use crate::web::certificates::Certificate;

/// The maximum number of certificates in memory, a few KiB each. Others are read when a visitor asks for
/// them.
const IN_MEMORY: u64 = 10_000;

/// A certificate in memory.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    /// The certificate.
    pub(super) certificate: Certificate,
    /// Until when it is valid.
    pub(super) valid_until: Millis,
    /// When it was obtained.
    pub(super) obtained_at: Millis,
}

/// The certificates of this platform.
#[derive(Debug)]
pub(super) struct Kept {
    store: Arc<dyn Store>,
    sealing: Sealing,
    ready: Cache<String, Ready>,
}

impl Kept {
    /// Reads those in the store when they are needed.
    pub(super) fn new(store: &Arc<dyn Store>, sealing: Sealing) -> Self {
        Self {
            store: Arc::clone(store),
            sealing,
            ready: Cache::new(IN_MEMORY),
        }
    }

    /// Returns the certificate of this name, if it is in memory.
    pub(super) fn ready(&self, name: &str) -> Option<Ready> {
        self.ready.get(name)
    }

    /// Reads the certificate of this name from the store into the memory. Returns when it was obtained,
    /// and the certificate if it can be used.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) async fn load(
        &self,
        name: &str,
    ) -> Result<(Option<Millis>, Option<Ready>), StoreError> {
        let stored = self.store.find_certificate(name).await?;
        let obtained_at = stored.as_ref().map(|stored| stored.obtained_at);
        let ready = stored.as_ref().and_then(|stored| self.open(stored));
        match &ready {
            Some(ready) => self.ready.insert(name.to_owned(), ready.clone()),
            None => self.ready.invalidate(name),
        }
        Ok((obtained_at, ready))
    }

    /// Opens a stored certificate; `None` if it cannot be used, so that it is obtained again.
    fn open(&self, stored: &StoredCertificate) -> Option<Ready> {
        let name = &stored.name;
        let key = key_name(name);
        let Some(private) = self.sealing.open(&stored.private, stored.sealed, &key) else {
            tracing::error!(
                name,
                "the key of a certificate cannot be unsealed with this PLATFORM_KEY_SECRET; another \
                 certificate is obtained"
            );
            return None;
        };
        match Certificate::from_chain(stored.chain.as_bytes(), &private) {
            Ok(certificate) => Some(Ready {
                certificate,
                valid_until: stored.valid_until,
                obtained_at: stored.obtained_at,
            }),
            Err(error) => {
                tracing::error!(name, %error, "a stored certificate cannot be used");
                None
            }
        }
    }

    /// Keeps what the server has issued, and uses it from now on.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) async fn keep(
        &self,
        (name, directory): (&str, &str),
        issued: Issued,
        now: Millis,
    ) -> Result<Ready, StoreError> {
        let Issued {
            chain,
            private,
            certificate,
        } = issued;
        let (private, sealed) = self.sealing.close(&private, &key_name(name));
        let (from, until) = certificate.valid();
        let stored = StoredCertificate {
            name: name.to_owned(),
            directory: directory.to_owned(),
            chain,
            private,
            sealed,
            valid_from: from.saturating_mul(1_000),
            valid_until: until.saturating_mul(1_000),
            obtained_at: now,
        };
        let ready = Ready {
            certificate,
            valid_until: stored.valid_until,
            obtained_at: now,
        };
        self.store.put_certificate(stored).await?;
        self.ready.insert(name.to_owned(), ready.clone());
        Ok(ready)
    }

    /// Lists all certificates, and reads those again that another node has replaced.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) async fn follow(&self) -> Result<Vec<CertificateSummary>, StoreError> {
        let all = self.store.list_certificates().await?;
        for one in &all {
            let known = self.ready.get(&one.name);
            if known.is_some_and(|known| known.obtained_at < one.obtained_at) {
                self.load(&one.name).await?;
            }
        }
        let is_there = |name: &str| {
            all.binary_search_by(|one| one.name.as_str().cmp(name))
                .is_ok()
        };
        // A removed one belongs to a name that is no longer served.
        for (name, _) in &self.ready {
            if !is_there(&name) {
                self.ready.invalidate(&*name);
            }
        }
        Ok(all)
    }

    /// Removes the certificate of a name that is no longer served.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) async fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.store.remove_certificate(name).await?;
        self.ready.invalidate(name);
        Ok(())
    }
}

/// What the key of a certificate is sealed as.
fn key_name(name: &str) -> String {
    format!("certificate {name}")
}

/// Seals the keys of certificates and accounts in the store with the current secret of the operator, where
/// they are not yet. Returns how many.
///
/// # Errors
/// Errors of the store.
pub async fn reseal(
    config: &Config,
    store: &dyn Store,
    entropy: &Arc<dyn Entropy>,
) -> Result<usize, StoreError> {
    let sealing = Sealing::new(config, entropy);
    let mut count = 0;
    for CertificateSummary { name, .. } in store.list_certificates().await? {
        let Some(stored) = store.find_certificate(&name).await? else {
            continue;
        };
        let sealed = sealing.reseal(&stored.private, stored.sealed, &key_name(&name));
        if let Some(private) = sealed {
            let resealed = StoredCertificate {
                private,
                sealed: true,
                ..stored
            };
            store.put_certificate(resealed).await?;
            count += 1;
        }
    }
    for mut account in store.list_acme_accounts().await? {
        let name = account_name(&account.directory);
        let sealed = sealing.reseal(&account.credentials, account.sealed, &name);
        if let Some(sealed) = sealed {
            let before = std::mem::replace(&mut account.credentials, sealed);
            account.sealed = true;
            count += usize::from(store.put_acme_account(account, Some(before)).await?);
        }
    }
    Ok(count)
}
