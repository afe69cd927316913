//! Certificates from an ACME server (RFC 8555). The first handshake for a name of the platform obtains its
//! certificate; the store keeps it for all nodes, and a job renews it.
//!
//! | module | contents |
//! |---|---|
//! | `account` | the account at the ACME server |
//! | `authority` | orders at the ACME server |
//! | `budgets` | how many orders there may be |
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
mod budgets;
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
use self::budgets::{Purpose, budgets};
use self::http::Http;
use self::kept::{Kept, Ready};
use self::missing::Missing;
use self::names::CertificateNames;
use self::sealing::Sealing;
use crate::clock::Millis;
use crate::config::tls::AcmeSettings;
use crate::domain::certificate::OrderTurn;
use crate::domain::errors::chain;
use crate::games::GamesState;
use crate::games::certified::{NameKind, ServedName};
use crate::platform::Platform;
use crate::platform::metrics::OrderOutcome;
use crate::store::StoreError;
use crate::web::https::{ChoosesCertificates, OnDemand};

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
    /// It was not ordered, because a budget is used up.
    Full {
        /// What the budget counts.
        counter: String,
        /// Not before this time.
        until: Millis,
    },
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
    /// Certificates that this node is obtaining. The channel closes at the end.
    going_on: Mutex<HashMap<WantedKey, watch::Receiver<()>>>,
    /// Certificates that are not tried again before a time, so that their visitors do not ask the store.
    held_back: Mutex<HashMap<WantedKey, Millis>>,
}

/// A certificate, and what kind of name a visitor asks for: one without a budget left does not keep back
/// others that have the same certificate.
type WantedKey = (NameKind, String);

/// What a visitor asks for.
#[derive(Clone, Debug)]
struct Wanted {
    name: String,
    served: ServedName,
    /// The name of its certificate.
    certificate: String,
}

impl Wanted {
    fn key(&self) -> WantedKey {
        (self.served.kind, self.certificate.clone())
    }
}

/// An order of a certificate.
#[derive(Debug)]
struct NewOrder {
    certificate: String,
    /// The names that it is for.
    names: Vec<String>,
    /// When the one that it replaces was obtained.
    known: Option<Millis>,
    purpose: Purpose,
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
        let catalogue = &self.0.games.catalogue;
        self.0.names.certificate_of(name, catalogue)
    }

    /// Returns the names that a new certificate of this name is for.
    fn names_in(&self, certificate: &str) -> Vec<String> {
        let catalogue = &self.0.games.catalogue;
        self.0.names.names_in(certificate, catalogue)
    }

    fn own(&self) -> Vec<String> {
        self.0.names.own()
    }

    fn is_own(&self, certificate: &str) -> bool {
        self.own().iter().any(|own| own == certificate)
    }

    /// Returns what the platform serves at this name, in lower case.
    fn served(&self, name: &str) -> Option<ServedName> {
        ServedName::find(name, &self.0.games.catalogue)
    }

    /// Returns the order that replaces a certificate by one for the same names, which authorities count
    /// as a renewal. `before` is `None` if it cannot be used, and its names are not known.
    fn renewal(
        &self,
        certificate: &str,
        (known, before): (Option<Millis>, Option<&Ready>),
    ) -> NewOrder {
        let mut names = self.names_in(certificate);
        let is_in = |name: &String| before.is_some_and(|ready| ready.certificate.covers(name));
        if names.iter().any(is_in) {
            names.retain(is_in);
        }
        let purpose = match self.is_own(certificate) {
            true => Purpose::Own,
            false => Purpose::Renewal,
        };
        NewOrder {
            certificate: certificate.to_owned(),
            names,
            known,
            purpose,
        }
    }

    /// Returns the order of a certificate for a name that it is not for yet. A name at which nothing is
    /// served has none.
    fn first_order(&self, wanted: &Wanted, known: Option<Millis>) -> Option<NewOrder> {
        let purpose = match self.is_own(&wanted.certificate) {
            true => Purpose::Own,
            false if wanted.served.has_content => Purpose::First(wanted.served.clone()),
            false => return None,
        };
        Some(NewOrder {
            certificate: wanted.certificate.clone(),
            names: self.names_in(&wanted.certificate),
            known,
            purpose,
        })
    }

    /// Orders a certificate, if that is allowed now, and uses it from then on.
    async fn order(&self, order: NewOrder) -> Result<Attempt, StoreError> {
        let (store, metrics) = (&self.0.platform.store, &self.0.platform.metrics);
        let certificate = order.certificate.as_str();
        let budgets = budgets(self.settings(), certificate, &order.purpose);
        let turn = store.begin_order(certificate, order.known, &budgets, self.now());
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
            OrderTurn::Full { counter, until } => {
                metrics.ordered_certificate(OrderOutcome::HeldBack);
                tracing::warn!(
                    name = certificate,
                    limit = counter,
                    again_in_seconds = (until - self.now()) / 1_000,
                    "no certificate is ordered, because of a limit that PLATFORM_ACME_ORDERS_PER_HOUR sets"
                );
                return Ok(Attempt::Full { counter, until });
            }
        }
        match self.0.authority.order(&order.names).await {
            Ok(issued) => {
                let of = (certificate, self.settings().directory.as_str());
                self.0.kept.keep(of, issued, self.now()).await?;
                self.0.missing.obtained(certificate);
                metrics.ordered_certificate(OrderOutcome::Obtained);
                tracing::info!(
                    name = certificate,
                    names = order.names.len(),
                    "a certificate was obtained"
                );
                Ok(Attempt::Obtained)
            }
            Err(error) => {
                let now = self.now();
                let again = store.fail_order(certificate, &budgets, now).await?;
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

    /// Whether a certificate is for this name, and valid now.
    fn is_good(&self, ready: &Ready, name: &str) -> bool {
        self.now() < ready.valid_until && ready.certificate.is_for(name)
    }

    /// Returns what is in memory for a name: the certificate that it has with other names, or one of its
    /// own, which an earlier version of the program obtained. One that is valid comes first.
    fn ready(&self, name: &str, certificate: &str) -> Option<Ready> {
        let own = (certificate != name).then_some(name);
        let found = [Some(certificate), own].into_iter().flatten();
        let found = found.filter_map(|one| self.0.kept.ready(one));
        let mut found = found.filter(|ready| ready.certificate.is_for(name));
        let first = found.next()?;
        if self.is_good(&first, name) {
            return Some(first);
        }
        found
            .find(|ready| self.is_good(ready, name))
            .or(Some(first))
    }

    /// Obtains a certificate, from the store or by an order, once for all who wait for it. It goes on if
    /// they no longer wait.
    async fn obtain_once(&self, wanted: Wanted) {
        let mut done = {
            let mut going_on = lock(&self.0.going_on);
            match going_on.get(&wanted.key()) {
                Some(done) => done.clone(),
                None => {
                    let (end, done) = watch::channel(());
                    going_on.insert(wanted.key(), done.clone());
                    let turn = Turn {
                        acme: self.clone(),
                        wanted,
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

    async fn obtain(&self, wanted: &Wanted) -> Result<(), StoreError> {
        let until = Instant::now() + OF_OTHERS;
        let mut looks = tokio::time::interval(LOOK);
        while Instant::now() < until {
            looks.tick().await;
            let (known, found) = self.0.kept.load(&wanted.certificate).await?;
            let found = found.as_ref();
            if found.is_some_and(|found| self.is_good(found, &wanted.name))
                || self.has_one_of_its_own(wanted).await?
            {
                return Ok(());
            }
            let is_known = match found {
                Some(found) => found.certificate.is_for(&wanted.name),
                None => known.is_some(),
            };
            let order = match is_known {
                true => Some(self.renewal(&wanted.certificate, (known, found))),
                false => self.first_order(wanted, known),
            };
            let Some(order) = order else { return Ok(()) };
            match self.order(order).await? {
                Attempt::Obtained => return Ok(()),
                Attempt::Busy => {}
                Attempt::Later(until) | Attempt::Full { until, .. } | Attempt::Failed(until) => {
                    self.hold_back(wanted.key(), until);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether the store has a valid certificate of a name that newly has one with others.
    async fn has_one_of_its_own(&self, wanted: &Wanted) -> Result<bool, StoreError> {
        if wanted.certificate == wanted.name {
            return Ok(false);
        }
        let (_, found) = self.0.kept.load(&wanted.name).await?;
        Ok(found.is_some_and(|found| self.is_good(&found, &wanted.name)))
    }

    fn hold_back(&self, key: WantedKey, until: Millis) {
        let now = self.now();
        let mut held_back = lock(&self.0.held_back);
        if held_back.len() >= HELD_BACK {
            held_back.retain(|_, until| *until > now);
        }
        held_back.insert(key, until);
    }

    fn is_held_back(&self, key: &WantedKey) -> bool {
        let held_back = lock(&self.0.held_back);
        held_back.get(key).is_some_and(|until| *until > self.now())
    }
}

/// Locks what no panic leaves half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Obtains one certificate; at its end, however it ends, the next one may.
struct Turn {
    acme: Acme,
    wanted: Wanted,
    _end: watch::Sender<()>,
}

impl Turn {
    async fn take(self) {
        if let Err(error) = self.acme.obtain(&self.wanted).await {
            let (name, error) = (&self.wanted.certificate, chain(&error));
            tracing::error!(name, error, "a certificate could not be looked for");
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock(&self.acme.0.going_on).remove(&self.wanted.key());
    }
}

#[async_trait]
impl OnDemand for Acme {
    async fn prepare(&self, name: &str) {
        let certificate = self.certificate_of(name);
        let ready = self.ready(name, &certificate);
        if ready.is_some_and(|ready| self.is_good(&ready, name)) {
            return;
        }
        let Some(served) = self.served(name) else {
            return;
        };
        let wanted = Wanted {
            name: name.to_owned(),
            served,
            certificate,
        };
        if !self.is_held_back(&wanted.key()) {
            self.obtain_once(wanted).await;
        }
    }

    async fn answer_challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.served(name)?;
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

impl ChoosesCertificates for Acme {
    fn is_misdirected(&self, shown: &str, host: &str) -> bool {
        let [of_shown, own] = [shown, host].map(|name| self.certificate_of(name));
        if of_shown == own {
            return false;
        }
        let shown = self.ready(shown, &of_shown);
        let is_for = shown.is_some_and(|ready| ready.certificate.is_for(host));
        !is_for && self.ready(host, &own).is_some()
    }
}

impl ResolvesServerCert for Acme {
    /// A certificate that has ended is shown as well: browsers say so, and what to do.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        // Who asks for no name gets that of the console.
        let name = name.unwrap_or_else(|| self.0.platform.origin.host().to_owned());
        let ready = self.ready(&name, &self.certificate_of(&name))?;
        Some(ready.certificate.key())
    }
}
