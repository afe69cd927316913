//! Certificates of an ACME server: the part of the store that keeps them, and what all servers must know
//! while one of them obtains one.

use async_trait::async_trait;
use platform_domain::certificate::{
    CertificateSummary, OrderBudget, OrderTurn, StoredAccount, StoredCertificate,
};
use platform_domain::clock::Millis;

use super::StoreError;

/// Operations on certificates. [`Store`](super::Store) documents what every method guarantees.
#[async_trait]
pub trait CertificateStore: Send + Sync {
    /// Returns the certificate of this name.
    async fn find_certificate(&self, name: &str) -> Result<Option<StoredCertificate>, StoreError>;

    /// Returns every certificate without its contents, by name.
    async fn list_certificates(&self) -> Result<Vec<CertificateSummary>, StoreError>;

    /// Keeps a certificate in place of the one of the same name, unless that was obtained later, and
    /// ends the order: failures before it count no longer.
    async fn put_certificate(&self, certificate: StoredCertificate) -> Result<(), StoreError>;

    /// Removes the certificate of this name.
    async fn remove_certificate(&self, name: &str) -> Result<(), StoreError>;

    /// Begins an order of a certificate, if none is going on, if every budget allows it, and if earlier
    /// failures do not hold it back; it then counts in each of these budgets. `known` is when the one that
    /// shall be replaced was obtained: if another server has obtained one since, no order begins.
    async fn begin_order(
        &self,
        name: &str,
        known: Option<Millis>,
        budgets: &[OrderBudget],
        now: Millis,
    ) -> Result<OrderTurn, StoreError>;

    /// Ends an order that failed at `now`. `budgets` are those with which it began: it counts no longer
    /// in those that count no failures. Returns from when the next one may begin.
    async fn fail_order(
        &self,
        name: &str,
        budgets: &[OrderBudget],
        now: Millis,
    ) -> Result<Millis, StoreError>;

    /// Keeps the digest with which any server answers the challenge for this name (RFC 8737 §3), until
    /// `until`.
    async fn put_challenge(
        &self,
        name: &str,
        digest: [u8; 32],
        until: Millis,
    ) -> Result<(), StoreError>;

    /// Returns that digest, if it is still valid at `now`.
    async fn find_challenge(&self, name: &str, now: Millis)
    -> Result<Option<[u8; 32]>, StoreError>;

    /// Returns the account at the server with this directory.
    async fn find_acme_account(&self, directory: &str)
    -> Result<Option<StoredAccount>, StoreError>;

    /// Returns every account, by directory.
    async fn list_acme_accounts(&self) -> Result<Vec<StoredAccount>, StoreError>;

    /// Keeps an account in place of the one of the same directory that has the credentials `before`;
    /// `None` if there is none. Returns whether it did, so that of several servers that create one at
    /// once only one is kept.
    async fn put_acme_account(
        &self,
        account: StoredAccount,
        before: Option<Vec<u8>>,
    ) -> Result<bool, StoreError>;
}
