//! Certificates from an ACME server (RFC 8555). The first handshake for a name of the platform obtains its
//! certificate; the store keeps it for all nodes, and a job renews it.
//!
//! | module | contents |
//! |---|---|
//! | `account` | the account at the ACME server |
//! | `authority` | orders at the ACME server |
//! | `challenge` | what answers a challenge |
//! | [`dns`] | the program that publishes TXT records |
//! | [`http`] | requests to the ACME server, and what verifies it |
//! | [`jobs`] | renewing, and following other nodes |
//! | [`kept`] | certificates in the store, and those in memory |
//! | `missing` | the certificates that every platform needs and this one does not have |
//! | [`names`] | which certificates a platform has |
//! | `problems` | what the log says of an order that failed |
//! | `sealing` | private keys in the store |

mod account;
mod authority;
mod challenge;
pub mod dns;
pub mod http;
pub mod jobs;
pub mod kept;
mod missing;
pub mod names;
mod problems;
mod sealing;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rustls::ClientConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tokio::time::Instant;

use self::authority::Authority;
use self::http::Http;
use self::kept::{Kept, Ready};
use self::missing::Missing;
use self::names::CertificateNames;
use self::sealing::Sealing;
use crate::clock::Millis;
use crate::config::tls::AcmeSettings;
use crate::domain::certificate::{OrderLimits, OrderTurn};
use crate::domain::errors::chain;
use crate::games::GamesState;
use crate::games::certified::may_have_certificate;
use crate::platform::Platform;
use crate::platform::metrics::OrderOutcome;
use crate::store::StoreError;
use crate::web::https::OnDemand;

/// The most orders of one name in an hour: certificate authorities allow about as many failures.
const OF_NAME: u32 = 5;
/// How long this node waits for a certificate that another one obtains.
const OF_OTHERS: Duration = Duration::from_secs(60);
/// How often it looks for it.
const LOOK: Duration = Duration::from_millis(250);

/// What came of an attempt to obtain a certificate.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// It is there, from this order or from that of another node.
    Obtained,
    /// Another node obtains it now.
    Busy,
    /// It was not ordered: not before this time.
    Later(Millis),
    /// It was not ordered, because the limit of all names is reached: not before this time.
    Full(Millis),
    /// The order failed. The next one begins at this time at the earliest.
    Failed(Millis),
}

/// The certificates of an ACME server.
#[derive(Clone, Debug)]
pub struct Acme(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    platform: Arc<Platform>,
    games: Arc<GamesState>,
    authority: Authority,
    kept: Kept,
    names: CertificateNames,
    missing: Missing,
    /// Names whose certificate this node is obtaining. The channel closes at the end.
    going_on: Mutex<HashMap<String, watch::Receiver<()>>>,
    /// Names that are not tried again before a time, so that their visitors do not ask the store.
    held_back: Mutex<HashMap<String, Millis>>,
}

/// The most names of [`Inner::held_back`]; then those are removed whose time has come.
const HELD_BACK: usize = 10_000;

impl Acme {
    /// Uses the server of the settings, which `trusted` verifies.
    pub(super) fn new(
        platform: &Arc<Platform>,
        games: &Arc<GamesState>,
        trusted: ClientConfig,
    ) -> Self {
        let (store, clock) = (&platform.store, &platform.clock);
        let sealing = Sealing::new(&platform.config, &platform.entropy);
        let settings = &platform.config.tls.acme;
        let http = Http::new(trusted);
        Self(Arc::new(Inner {
            authority: Authority::new(settings, http, (store, clock), sealing.clone()),
            kept: Kept::new(store, sealing),
            names: CertificateNames::new(
                &platform.config,
                &platform.origin,
                &platform.games_origin,
            ),
            missing: Missing::new(platform),
            platform: Arc::clone(platform),
            games: Arc::clone(games),
            going_on: Mutex::default(),
            held_back: Mutex::default(),
        }))
    }

    fn settings(&self) -> &AcmeSettings {
        &self.0.platform.config.tls.acme
    }

    fn now(&self) -> Millis {
        self.0.platform.clock.now()
    }

    fn certificate_of(&self, name: &str) -> String {
        self.0.names.certificate_of(name)
    }

    fn own(&self) -> Vec<String> {
        self.0.names.own()
    }

    /// Whether the platform serves this name, in lower case.
    fn serves(&self, name: &str) -> bool {
        may_have_certificate(name, &self.0.games.catalogue)
    }

    /// Whether this is the name of a certificate that the platform needs.
    fn needs(&self, certificate: &str) -> bool {
        self.own().iter().any(|own| own == certificate)
            || (self.serves(certificate) && self.certificate_of(certificate) == certificate)
    }

    /// Returns the limits on orders of a certificate. Those that every platform needs do not wait for
    /// others.
    fn limits(&self, certificate: &str) -> OrderLimits {
        let is_own = self.own().iter().any(|own| own == certificate);
        let in_total = if is_own {
            u32::MAX
        } else {
            self.settings().orders_per_hour
        };
        OrderLimits {
            in_total,
            of_name: OF_NAME,
        }
    }

    /// Orders a certificate, if that is allowed now, and uses it from then on. `known` is when the one
    /// that it replaces was obtained.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn order(
        &self,
        certificate: &str,
        known: Option<Millis>,
    ) -> Result<Attempt, StoreError> {
        let (store, metrics) = (&self.0.platform.store, &self.0.platform.metrics);
        let limits = self.limits(certificate);
        let turn = store.begin_order(certificate, known, limits, self.now());
        match turn.await? {
            OrderTurn::Begun => {}
            OrderTurn::Replaced => {
                self.0.kept.load(certificate).await?;
                return Ok(Attempt::Obtained);
            }
            OrderTurn::Busy => return Ok(Attempt::Busy),
            OrderTurn::Later(until) => {
                metrics.ordered_certificate(OrderOutcome::HeldBack);
                return Ok(Attempt::Later(until));
            }
            OrderTurn::Full(until) => {
                metrics.ordered_certificate(OrderOutcome::HeldBack);
                tracing::warn!(
                    name = certificate,
                    "no certificate is ordered, because of PLATFORM_ACME_ORDERS_PER_HOUR"
                );
                return Ok(Attempt::Full(until));
            }
        }
        match self.0.authority.order(certificate).await {
            Ok(issued) => {
                let of = (certificate, self.settings().directory.as_str());
                self.0.kept.keep(of, issued, self.now()).await?;
                self.0.missing.obtained(certificate);
                metrics.ordered_certificate(OrderOutcome::Obtained);
                tracing::info!(name = certificate, "a certificate was obtained");
                Ok(Attempt::Obtained)
            }
            Err(error) => {
                let now = self.now();
                let again = store.fail_order(certificate, now).await?;
                metrics.ordered_certificate(OrderOutcome::Failed);
                tracing::warn!(
                    name = certificate,
                    challenge = authority::challenge_of(certificate),
                    error = problems::explain(&error),
                    again_in_seconds = (again - now) / 1_000,
                    "a certificate could not be obtained"
                );
                Ok(Attempt::Failed(again))
            }
        }
    }

    /// Returns a certificate that is valid now, if it is in memory.
    fn valid(&self, certificate: &str) -> Option<Ready> {
        let ready = self.0.kept.ready(certificate);
        ready.filter(|ready| self.now() < ready.valid_until)
    }

    /// Obtains a certificate, from the store or by an order, once for all who wait for it. It goes on if
    /// they no longer wait.
    async fn obtain_once(&self, certificate: String) {
        let mut done = {
            let mut going_on = lock(&self.0.going_on);
            match going_on.get(&certificate) {
                Some(done) => done.clone(),
                None => {
                    let (end, done) = watch::channel(());
                    going_on.insert(certificate.clone(), done.clone());
                    let turn = Turn {
                        acme: self.clone(),
                        certificate,
                        _end: end,
                    };
                    tokio::spawn(turn.take());
                    done
                }
            }
        };
        // It never changes, and closes at the end.
        let _ = done.changed().await;
    }

    async fn obtain(&self, certificate: &str) -> Result<(), StoreError> {
        let until = Instant::now() + OF_OTHERS;
        let mut looks = tokio::time::interval(LOOK);
        while Instant::now() < until {
            looks.tick().await;
            let (known, found) = self.0.kept.load(certificate).await?;
            if found.is_some_and(|found| self.now() < found.valid_until) {
                return Ok(());
            }
            match self.order(certificate, known).await? {
                Attempt::Obtained => return Ok(()),
                Attempt::Busy => {}
                Attempt::Later(until) | Attempt::Full(until) | Attempt::Failed(until) => {
                    self.hold_back(certificate, until);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn hold_back(&self, certificate: &str, until: Millis) {
        let now = self.now();
        let mut held_back = lock(&self.0.held_back);
        if held_back.len() >= HELD_BACK {
            held_back.retain(|_, until| *until > now);
        }
        held_back.insert(certificate.to_owned(), until);
    }

    fn is_held_back(&self, certificate: &str) -> bool {
        let held_back = lock(&self.0.held_back);
        held_back
            .get(certificate)
            .is_some_and(|until| *until > self.now())
    }
}

/// Locks what no panic leaves half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Obtains one certificate; at its end, however it ends, the next one may.
struct Turn {
    acme: Acme,
    certificate: String,
    _end: watch::Sender<()>,
}

impl Turn {
    async fn take(self) {
        if let Err(error) = self.acme.obtain(&self.certificate).await {
            let (name, error) = (&self.certificate, chain(&error));
            tracing::error!(name, error, "a certificate could not be looked for");
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock(&self.acme.0.going_on).remove(&self.certificate);
    }
}

#[async_trait]
impl OnDemand for Acme {
    async fn prepare(&self, name: &str) {
        let certificate = self.certificate_of(name);
        if self.valid(&certificate).is_some() || !self.serves(name) {
            return;
        }
        if !self.is_held_back(&certificate) {
            self.obtain_once(certificate).await;
        }
    }

    async fn answer_challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        if !self.serves(name) {
            return None;
        }
        let store = &self.0.platform.store;
        let digest = match store.find_challenge(name, self.now()).await {
            Ok(digest) => digest?,
            Err(error) => {
                let error = chain(&error);
                tracing::error!(name, error, "a challenge could not be looked for");
                return None;
            }
        };
        challenge::answer(name, &digest)
    }
}

impl ResolvesServerCert for Acme {
    /// A certificate that has ended is shown as well: browsers say so, and what to do.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        // Who asks for no name gets that of the console.
        let name = name.unwrap_or_else(|| self.0.platform.origin.host().to_owned());
        let ready = self.0.kept.ready(&self.certificate_of(&name))?;
        Some(ready.certificate.key())
    }
}
