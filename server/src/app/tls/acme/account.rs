//! The account at the ACME server (RFC 8555 §7.3). It is in the store, so that all nodes have one.

use std::sync::Arc;

use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::authority::AuthorityError;
use super::http::Http;
use super::sealing::Sealing;
use crate::clock::Clock;
use crate::config::tls::AcmeSettings;
use crate::domain::certificate::StoredAccount;
use crate::store::{Store, StoreError};

/// Knows the account, or creates it.
pub(super) struct Accounts {
    settings: AcmeSettings,
    http: Http,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    sealing: Sealing,
    /// The account, once it is known.
    known: Mutex<Option<Account>>,
}

impl Accounts {
    /// Uses the server of the settings.
    pub(super) fn new(
        settings: &AcmeSettings,
        http: Http,
        (store, clock): (&Arc<dyn Store>, &Arc<dyn Clock>),
        sealing: Sealing,
    ) -> Self {
        Self {
            settings: settings.clone(),
            http,
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            sealing,
            known: Mutex::default(),
        }
    }

    /// Asks for the server's addresses and the account again, the next time.
    pub(super) async fn forget(&self) {
        *self.known.lock().await = None;
    }

    /// Returns the account. With `anew`, and if there is none or it cannot be opened, it is created.
    pub(super) async fn account(&self, anew: bool) -> Result<Account, AuthorityError> {
        let mut known = self.known.lock().await;
        if let Some(account) = known.as_ref().filter(|_| !anew) {
            return Ok(account.clone());
        }
        let stored = self.stored_account().await?;
        let found = match stored.as_ref().filter(|_| !anew) {
            Some(stored) => self.open(stored).await?,
            None => None,
        };
        let account = match found {
            Some(account) => account,
            None => self.create(stored).await?,
        };
        *known = Some(account.clone());
        Ok(account)
    }

    async fn stored_account(&self) -> Result<Option<StoredAccount>, StoreError> {
        self.store.find_acme_account(&self.settings.directory).await
    }

    /// Uses a stored account; `None` if it cannot be opened.
    async fn open(&self, stored: &StoredAccount) -> Result<Option<Account>, AuthorityError> {
        let name = account_name(&stored.directory);
        let opened = self.sealing.open(&stored.credentials, stored.sealed, &name);
        let credentials = opened.and_then(|text| serde_json::from_slice(&text).ok());
        let Some(credentials): Option<AccountCredentials> = credentials else {
            tracing::error!(
                "the account at the ACME server cannot be unsealed with this PLATFORM_KEY_SECRET; a \
                 new one is created"
            );
            return Ok(None);
        };
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        Ok(Some(builder.from_credentials(credentials).await?))
    }

    /// Creates an account in place of `before`.
    async fn create(&self, before: Option<StoredAccount>) -> Result<Account, AuthorityError> {
        let directory = self.settings.directory.clone();
        let contact = self.settings.email.as_ref();
        let contact = contact.map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = contact.as_deref().into_iter().collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        let bound = self.settings.external_account();
        let bound = bound.map(|(id, key)| ExternalAccountKey::new(id, &key));
        let created = builder.create(&new, directory.clone(), bound.as_ref());
        let (account, credentials) = created.await?;
        let text = Zeroizing::new(serde_json::to_vec(&credentials)?);
        let (credentials, sealed) = self.sealing.close(&text, &account_name(&directory));
        let stored = StoredAccount {
            directory,
            credentials,
            sealed,
            created_at: self.clock.now(),
        };
        let before = before.map(|before| before.credentials);
        if self.store.put_acme_account(stored, before).await? {
            tracing::info!("an account at the ACME server was created");
            return Ok(account);
        }
        // Another node was faster.
        match self.stored_account().await? {
            Some(stored) => Ok(self.open(&stored).await?.unwrap_or(account)),
            None => Ok(account),
        }
    }
}

/// What an account is sealed as.
pub(super) fn account_name(directory: &str) -> String {
    format!("account {directory}")
}
