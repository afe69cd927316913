//! The jobs of certificates: one node renews them, and all nodes follow what others have obtained.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use super::budgets::RENEWALS;
use super::{Acme, Attempt, lock};
use crate::clock::Millis;
use crate::domain::certificate::CertificateSummary;
use crate::platform::jobs::{Job, JobError, Schedule};
use crate::store::StoreError;

/// The time between two looks for certificates that should be renewed.
const RENEW: Duration = Duration::from_secs(10 * 60);
/// The time between two looks for certificates of other nodes.
const FOLLOW: Duration = Duration::from_secs(30);

const DAY: Millis = 24 * 60 * 60 * 1_000;
/// How long before its end an operator is warned of a certificate, and the time between two warnings.
const SOON: Millis = 7 * DAY;

impl Acme {
    /// Renews the certificates of which a third of the life is left, or that another ACME server issued,
    /// and obtains those that every platform needs. Those of names that are no longer served are removed
    /// instead.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn renew(&self) -> Result<(), StoreError> {
        let all = self.0.platform.store.list_certificates().await?;
        let is_there = |name: &String| all.iter().any(|one| one.name == *name);
        for name in self.own().into_iter().filter(|name| !is_there(name)) {
            self.order(self.renewal(&name, (None, None))).await?;
        }
        let directory = &self.settings().directory;
        let now = self.now();
        let mut due: Vec<_> = all
            .iter()
            .filter(|one| one.is_due(directory, now))
            .collect();
        // Those that end first come first, if not all can be renewed now.
        due.sort_by_key(|one| (!self.is_own(&one.name), one.valid_until));
        for one in due {
            if !self.needs(&one.name).await? {
                self.0.kept.remove(&one.name).await?;
                continue;
            }
            let (known, before) = self.0.kept.load(&one.name).await?;
            let order = self.renewal(&one.name, (known, before.as_ref()));
            if let Attempt::Full { counter, .. } = self.order(order).await?
                && counter == RENEWALS
            {
                break;
            }
        }
        Ok(())
    }

    /// Whether this is the name of a certificate that the platform needs: something is served at one of
    /// its names, or its visitors are told that it was taken down, and no other one is for it.
    async fn needs(&self, certificate: &str) -> Result<bool, StoreError> {
        if self.is_own(certificate) {
            return Ok(true);
        }
        let names = self.names_in(certificate);
        let mut served = names.iter().filter_map(|name| self.served(name));
        if !served.any(|served| served.has_content || served.taken_down) {
            return Ok(false);
        }
        let together = self.certificate_of(certificate);
        if together == certificate {
            return Ok(true);
        }
        // One of a single name, which an earlier version of the program obtained.
        let (_, found) = self.0.kept.load(&together).await?;
        Ok(!found.is_some_and(|found| self.is_good(&found, certificate)))
    }

    /// Reads certificates again that another node has replaced, and notes which ones are missing. Returns
    /// all of them, without their contents.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn follow(&self) -> Result<Vec<CertificateSummary>, StoreError> {
        let all = self.0.kept.follow().await?;
        let now = self.now();
        let valid = all.iter().filter(|one| now < one.valid_until);
        let valid: HashSet<&str> = valid.map(|one| one.name.as_str()).collect();
        {
            // Another node may have obtained what this one has failed to.
            let mut held_back = lock(&self.0.held_back);
            held_back.retain(|(_, certificate), _| !valid.contains(certificate.as_str()));
        }
        let missing = self.own().into_iter();
        let missing = missing.filter(|name| !valid.contains(name.as_str()));
        self.0.missing.set(missing.collect());
        let ends = all.iter().map(|one| one.valid_until).collect();
        self.0.platform.metrics.set_certificate_ends(ends);
        Ok(all)
    }
}

/// Renews certificates, on one node.
pub(in crate::app::tls) struct RenewCertificates(pub(in crate::app::tls) Acme);

#[async_trait]
impl Job for RenewCertificates {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("renew-certificates", RENEW).on_one_node()
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let renewed = self.0.renew().await;
        renewed.map_err(JobError::because("certificates could not be renewed"))
    }
}

/// Follows the certificates of other nodes, and warns before one ends.
pub(in crate::app::tls) struct FollowCertificates {
    acme: Acme,
    warned: Option<Millis>,
}

impl FollowCertificates {
    /// Follows these.
    pub(in crate::app::tls) const fn new(acme: Acme) -> Self {
        Self { acme, warned: None }
    }

    fn warn(&mut self, all: &[CertificateSummary]) {
        let now = self.acme.now();
        // Short ones end soon all the time: only those count whose renewal is late.
        let late = all.iter().filter(|one| {
            let left = one.valid_until - now;
            left < SOON && one.renewed_from() + DAY < now || left <= 0
        });
        let Some(first) = late.min_by_key(|one| one.valid_until) else {
            return;
        };
        if self.warned.is_none_or(|before| now - before >= DAY) {
            self.warned = Some(now);
            tracing::warn!(
                name = first.name,
                days = (first.valid_until - now).div_euclid(DAY),
                "a certificate ends soon, or has ended, and could not be renewed"
            );
        }
    }
}

#[async_trait]
impl Job for FollowCertificates {
    fn schedule(&self) -> Schedule {
        Schedule::from_start("follow-certificates", FOLLOW)
    }

    async fn run(&mut self) -> Result<(), JobError> {
        let all = self.acme.follow().await;
        let all = all.map_err(JobError::because("certificates could not be listed"))?;
        self.warn(&all);
        Ok(())
    }
}
