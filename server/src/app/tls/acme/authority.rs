//! The ACME server (RFC 8555): orders of certificates.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use zeroize::Zeroizing;

use super::account::Accounts;
use super::dns::{DnsCommand, DnsError};
use super::http::Http;
use super::problems::{self, challenge_name};
use super::sealing::Sealing;
use crate::clock::{Clock, Millis};
use crate::config::tls::AcmeSettings;
use crate::domain::certificate::ORDER_HOLDS;
use crate::domain::errors::chain;
use crate::store::{Store, StoreError};
use crate::web::certificates::{Certificate, CertificateError};

/// How long an order may take, from the first request to the certificate. It is shorter than the time for
/// which the order holds back others, also with what a program for DNS takes.
const ORDER: Duration = Duration::from_secs(150);
/// How the server is asked whether it has proved the name, or made the certificate.
const ASK_AGAIN: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(60));
/// The name of the TXT record of a challenge by DNS begins with this (RFC 8555 §8.4).
const RECORD: &str = "_acme-challenge";

/// Why there is no certificate; for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthorityError {
    /// The server refused, or did not answer.
    #[error(transparent)]
    Acme(#[from] Error),
    /// The server could not prove that the name is ours.
    #[error("the ACME server could not prove the name: {0}")]
    NotProved(String),
    /// The server does not offer the challenge.
    #[error("the server offers no challenge that the platform can answer")]
    NoChallenge,
    /// It took too long.
    #[error("the order took longer than {} s", ORDER.as_secs())]
    Slow,
    /// The key or the request could not be made.
    #[error("a request for a certificate could not be made")]
    Request(#[from] rcgen::Error),
    /// What the server issued cannot be used.
    #[error("what the server issued cannot be used")]
    Unusable(#[from] CertificateError),
    /// It is not for the name that was ordered.
    #[error("what the server issued is for another name")]
    OtherName,
    /// The record was not published.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// The account could not be written.
    #[error("the account could not be written")]
    Credentials(#[from] serde_json::Error),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// A certificate that the server has issued.
pub(super) struct Issued {
    /// The certificate with its chain, PEM.
    pub(super) chain: String,
    /// Its private key, PKCS#8.
    pub(super) private: Zeroizing<Vec<u8>>,
    /// The same, as it is used.
    pub(super) certificate: Certificate,
}

/// Records that were published for an order.
type Published = Vec<(String, String)>;

/// The ACME server that the settings name.
pub(super) struct Authority {
    accounts: Accounts,
    dns: Option<DnsCommand>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// Uses the server of the settings.
    pub(super) fn new(
        settings: &AcmeSettings,
        http: Http,
        (store, clock): (&Arc<dyn Store>, &Arc<dyn Clock>),
        sealing: Sealing,
    ) -> Self {
        Self {
            accounts: Accounts::new(settings, http, (store, clock), sealing),
            dns: settings.dns_command.as_deref().map(DnsCommand::new),
            store: Arc::clone(store),
            clock: Arc::clone(clock),
        }
    }

    /// Orders a certificate for these names, and waits for it. If one is `*.<host>`, they are proved by
    /// DNS.
    pub(super) async fn order(&self, names: &[String]) -> Result<Issued, AuthorityError> {
        let mut published = Published::new();
        let ordered = self.order_as(names, &mut published);
        let ordered = tokio::time::timeout(ORDER, ordered).await;
        self.clean_up(published).await;
        let ordered = ordered.unwrap_or(Err(AuthorityError::Slow));
        if let Err(AuthorityError::Acme(_)) = &ordered {
            // Its addresses or the account may have changed: both are asked for again.
            self.accounts.forget().await;
        }
        ordered
    }

    /// Orders with the account; with a new one if the server does not know it any more.
    async fn order_as(
        &self,
        names: &[String],
        published: &mut Published,
    ) -> Result<Issued, AuthorityError> {
        let account = self.accounts.account(false).await?;
        match self.complete(&account, names, published).await {
            Err(AuthorityError::Acme(Error::Api(problem)))
                if problems::is(&problem, "accountDoesNotExist") =>
            {
                tracing::warn!(
                    "the ACME server does not know the account any more; a new one is used"
                );
                let account = self.accounts.account(true).await?;
                self.complete(&account, names, published).await
            }
            ordered => ordered,
        }
    }

    async fn complete(
        &self,
        account: &Account,
        names: &[String],
        published: &mut Published,
    ) -> Result<Issued, AuthorityError> {
        let identifiers: Vec<_> = names.iter().cloned().map(Identifier::Dns).collect();
        let mut order = account.new_order(&NewOrder::new(&identifiers)).await?;
        match self.prove(&mut order, published).await {
            Ok(()) => {}
            // The server may have failed to prove a name before it answers that it begins to.
            Err(AuthorityError::Acme(error @ Error::Api(_))) => {
                return Err(why_not_proved(order, Some(error)).await);
            }
            Err(error) => return Err(error),
        }
        let status = order.poll_ready(&ASK_AGAIN).await;
        match status {
            Ok(OrderStatus::Ready) => {}
            Ok(_) | Err(Error::Api(_)) => return Err(why_not_proved(order, status.err()).await),
            Err(error) => return Err(error.into()),
        }
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        let key = KeyPair::generate()?;
        let request = params.serialize_request(&key)?;
        order.finalize_csr(request.der()).await?;
        let chain = order.poll_certificate(&ASK_AGAIN).await?;
        let private = Zeroizing::new(key.serialize_der());
        let certificate = Certificate::from_chain(chain.as_bytes(), &private)?;
        if !names.iter().all(|name| certificate.covers(name)) {
            return Err(AuthorityError::OtherName);
        }
        Ok(Issued {
            chain,
            private,
            certificate,
        })
    }

    /// Prepares the answers to the challenges of an order, and says that they are ready.
    async fn prove(
        &self,
        order: &mut Order,
        published: &mut Published,
    ) -> Result<(), AuthorityError> {
        let by_dns = order_is_for_wildcard(order).await?;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let Identifier::Dns(name) = authorization.identifier().identifier.clone() else {
                return Err(AuthorityError::NoChallenge);
            };
            let challenge = authorization.challenge(challenge_kind(by_dns));
            let mut challenge = challenge.ok_or(AuthorityError::NoChallenge)?;
            let answer = challenge.key_authorization();
            if by_dns {
                let dns = self.dns.as_ref().ok_or(AuthorityError::NoChallenge)?;
                let record = (format!("{RECORD}.{name}"), answer.dns_value());
                published.push(record.clone());
                dns.present(&record.0, &record.1).await?;
            } else {
                let digest: Result<[u8; 32], _> = answer.digest().as_ref().try_into();
                let digest = digest.map_err(|_| AuthorityError::NoChallenge)?;
                let until: Millis = self.clock.now() + ORDER_HOLDS;
                self.store.put_challenge(&name, digest, until).await?;
            }
            challenge.set_ready().await?;
        }
        Ok(())
    }

    /// Removes the records of an order.
    async fn clean_up(&self, published: Published) {
        let Some(dns) = &self.dns else { return };
        for (name, value) in published {
            if let Err(error) = dns.cleanup(&name, &value).await {
                let error = chain(&error);
                tracing::warn!(name, error, "a TXT record could not be removed");
            }
        }
    }
}

/// How the names of a certificate are proved: a wildcard by DNS alone (RFC 8555 §7.1.3).
const fn challenge_kind(is_wildcard: bool) -> ChallengeType {
    if is_wildcard {
        ChallengeType::Dns01
    } else {
        ChallengeType::TlsAlpn01
    }
}

/// Returns the name of the challenge that proves the names of a certificate.
pub(super) fn challenge_of(certificate: &str) -> &'static str {
    challenge_name(&challenge_kind(certificate.starts_with("*.")))
}

/// Whether one of the names of an order is a wildcard, which only the DNS can prove.
async fn order_is_for_wildcard(order: &mut Order) -> Result<bool, Error> {
    let mut identifiers = order.identifiers();
    while let Some(identifier) = identifiers.next().await {
        if identifier?.wildcard {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns what the server says of each name that it could not prove.
async fn why_not_proved(mut order: Order, error: Option<Error>) -> AuthorityError {
    let mut reasons = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let name = authorization.identifier().to_string();
        if let Ok(state) = authorization.refresh().await {
            let failed = state.challenges.iter().filter_map(|challenge| {
                let problem = problems::said(challenge.error.as_ref()?);
                let by = challenge_name(&challenge.r#type);
                Some(format!("{name} by {by}: {problem}"))
            });
            reasons.extend(failed);
        }
    }
    match (reasons.is_empty(), error) {
        (true, Some(error)) => error.into(),
        (true, None) => AuthorityError::NotProved("the server does not say why".to_owned()),
        (false, _) => AuthorityError::NotProved(reasons.join("; ")),
    }
}
