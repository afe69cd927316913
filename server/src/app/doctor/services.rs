//! What the platform uses: the database and the signing keys in it, Redis, the bucket, and the identity
//! providers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, interval, timeout};

use super::{Finding, Patient, certificates};
use crate::app::data_folder::{FolderError, require_platform};
use crate::app::start::{open_store, unread_keys};
use crate::auth::keys::KeyError;
use crate::config::Config;
use crate::config::tls::TlsMode;
use crate::domain::errors::chain;
use crate::domain::key::{KeySchedule, ROTATE_AFTER_MILLIS, StoredKey};
use crate::games::live;
use crate::store::{SchemaPolicy, Store};
use platform_openid::Providers;

/// How long a service may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long Redis may take until it is known to answer.
const REDIS: Duration = Duration::from_secs(5);
/// An answer of the database that took longer is slow.
const SLOW: Duration = Duration::from_millis(250);
const DAY: i64 = 24 * 60 * 60 * 1_000;

pub(super) async fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let config = patient.config;
    let (database, redis, bucket, providers) = tokio::join!(
        database(patient),
        redis(config),
        bucket(config),
        providers(patient),
    );
    let mut findings = database;
    findings.extend([redis, bucket]);
    findings.extend(providers);
    findings
}

async fn database(patient: &Patient<'_>) -> Vec<Finding> {
    const CHECK: &str = "database";
    let config = patient.config;
    match require_platform(config) {
        Ok(()) => {}
        Err(error @ FolderError::NoPlatform(_)) => {
            let advice = "`platform-server serve` creates it, if this is a new platform";
            return vec![Finding::warning(CHECK, error.to_string(), advice)];
        }
        Err(error) => {
            let advice = "run this as the user of the server";
            return vec![Finding::wrong(CHECK, error.to_string(), advice)];
        }
    }
    let opened = timeout(PATIENCE, open_store(config, SchemaPolicy::Refuse)).await;
    let store = match opened {
        Ok(Ok(store)) => store,
        Ok(Err(error)) => {
            let advice = if config.postgres.is_some() {
                "look whether it runs, and whether PLATFORM_DATABASE_URL is its address"
            } else {
                "if it is damaged, stop the server and restore a backup with `platform-server restore`; if its version is another one, use the program of that version"
            };
            return vec![Finding::wrong(CHECK, chain(&error), advice)];
        }
        Err(_) => {
            let found = format!("it does not answer within {} s", PATIENCE.as_secs());
            let advice = "look at its load, and at the network in between";
            return vec![Finding::wrong(CHECK, found, advice)];
        }
    };
    let findings = contents(patient, &store).await;
    // Nothing was written.
    let _ = store.close().await;
    findings
}

/// Looks at what is in an open store.
async fn contents(patient: &Patient<'_>, store: &Arc<dyn Store>) -> Vec<Finding> {
    const CHECK: &str = "database";
    let asked = Instant::now();
    let keys = match store.list_keys().await {
        Ok(keys) => keys,
        Err(error) => {
            let advice = "its log says more; a restart of the server does not help";
            return vec![Finding::wrong(CHECK, chain(&error), advice)];
        }
    };
    let took = asked.elapsed();
    let kind = if store.is_shared() {
        "PostgreSQL"
    } else {
        "SQLite"
    };
    let found = format!("{kind} answers in {} ms", took.as_millis());
    let mut findings = vec![if took > SLOW {
        let advice = "every sign-in waits for it: look at its disk, and at the network in between";
        Finding::warning(CHECK, found, advice)
    } else {
        Finding::fine(CHECK, found)
    }];
    findings.push(match open_all(patient, store, keys.clone()) {
        Ok(()) => signing_keys(patient, &keys),
        Err(error) => {
            let advice = "the server cannot start with these settings; docs/hosting.md, “Signing keys”, says more";
            Finding::wrong("signing keys", chain(&error), advice)
        }
    });
    if patient.config.tls.mode == TlsMode::Acme {
        findings.push(certificates::of_acme(patient, &**store).await);
    }
    if store.is_shared() {
        findings.push(nodes(&**store).await);
    }
    findings
}

/// Whether the secrets of the settings open every key.
fn open_all(
    patient: &Patient<'_>,
    store: &Arc<dyn Store>,
    keys: Vec<StoredKey>,
) -> Result<(), KeyError> {
    let (clock, entropy) = (&patient.clock, &patient.entropy);
    unread_keys(patient.config, store, clock, entropy)?.check(keys)
}

/// The keys must be sealed on a public platform, and replaced in time.
fn signing_keys(patient: &Patient<'_>, keys: &[StoredKey]) -> Finding {
    const CHECK: &str = "signing keys";
    let now = patient.clock.now();
    let schedule = KeySchedule::new(keys.iter().map(|key| key.times()).collect());
    let signing = schedule.signing_at(now);
    let Some(key) = signing.and_then(|index| keys.get(index)) else {
        let advice = "start the server, which creates one; look at this machine's clock";
        return Finding::wrong(CHECK, "no key signs now", advice);
    };
    let age = now.saturating_sub(key.created_at);
    if age > ROTATE_AFTER_MILLIS + 2 * DAY {
        let found = format!("the key that signs is {} days old", age / DAY);
        let advice = "a running server replaces it after 90 days; its log says why it does not";
        return Finding::warning(CHECK, found, advice);
    }
    let unsealed = keys.iter().filter(|key| !key.sealed).count();
    if unsealed > 0 && patient.origin().is_secure() {
        return Finding::warning(
            CHECK,
            format!(
                "{unsealed} of {} are not sealed: whoever reads a copy of the store can sign as the platform",
                keys.len()
            ),
            "set PLATFORM_KEY_SECRET, and run `platform-server keys reseal`",
        );
    }
    Finding::fine(
        CHECK,
        format!("the key that signs is {} days old", age / DAY),
    )
}

/// The servers that share the database.
async fn nodes(store: &dyn Store) -> Finding {
    const CHECK: &str = "servers";
    let nodes = match store.list_nodes().await {
        Ok(nodes) => nodes,
        Err(error) => {
            return Finding::wrong(CHECK, chain(&error), "look at the database's log");
        }
    };
    let live: Vec<_> = nodes.iter().filter(|node| node.is_live()).collect();
    let degraded = live.iter().filter(|node| !node.report.degraded.is_empty());
    let degraded: Vec<String> = degraded
        .map(|node| {
            format!(
                "{}: {}",
                node.report.address,
                node.report.degraded.join(", ")
            )
        })
        .collect();
    match (live.len(), degraded.is_empty()) {
        (0, _) => Finding::skipped(CHECK, "none runs"),
        (count, true) => Finding::fine(CHECK, format!("{count} run")),
        (count, false) => Finding::warning(
            CHECK,
            format!("{count} run; {}", degraded.join("; ")),
            "docs/several-nodes.md says what each of these words means",
        ),
    }
}

async fn redis(config: &Config) -> Finding {
    const CHECK: &str = "redis";
    let Some(address) = &config.redis else {
        return Finding::skipped(CHECK, "none is set");
    };
    let presence = match live::open(Some(address)).await {
        Ok(live) => live.presence,
        Err(error) => {
            return Finding::wrong(CHECK, chain(&error), "correct PLATFORM_REDIS_URL");
        }
    };
    let known = async {
        let mut looks = interval(Duration::from_millis(50));
        loop {
            looks.tick().await;
            if presence.is_known() {
                return;
            }
        }
    };
    match timeout(REDIS, known).await {
        Ok(()) => Finding::fine(CHECK, "it answers and can be written to"),
        Err(_) => Finding::wrong(
            CHECK,
            format!(
                "it does not answer, or cannot be written to, within {} s",
                REDIS.as_secs()
            ),
            "start it, empty or not; meanwhile players go on, but are not counted",
        ),
    }
}

async fn bucket(config: &Config) -> Finding {
    const CHECK: &str = "bucket";
    let Some(settings) = &config.s3 else {
        return Finding::skipped(CHECK, "deployed files are in a folder");
    };
    #[cfg(feature = "cluster")]
    {
        use crate::games::files::copies::BucketCopies;
        let asked = async {
            let bucket = BucketCopies::open_to_read(settings)?;
            bucket.answers().await
        };
        match timeout(PATIENCE, asked).await {
            Ok(Ok(())) => Finding::fine(CHECK, "it answers"),
            Ok(Err(error)) => {
                let advice = "look whether its endpoint, its name and the credentials are right";
                Finding::wrong(CHECK, chain(&error), advice)
            }
            Err(_) => {
                let found = format!("it does not answer within {} s", PATIENCE.as_secs());
                Finding::wrong(
                    CHECK,
                    found,
                    "look at the endpoint, and at the network in between",
                )
            }
        }
    }
    #[cfg(not(feature = "cluster"))]
    {
        let _ = settings;
        let advice = "use the program of a release";
        Finding::wrong(CHECK, "this program was built without S3", advice)
    }
}

/// Every provider must publish metadata that the platform can use.
async fn providers(patient: &Patient<'_>) -> Vec<Finding> {
    const CHECK: &str = "sign-in";
    let (settings, origin) = (&patient.config.identity_providers, patient.origin());
    if settings.is_empty() {
        return vec![if origin.is_local() {
            Finding::skipped(CHECK, "the built-in provider signs in whoever types a name")
        } else {
            let found = "no identity provider is set, so nobody can sign in";
            Finding::warning(CHECK, found, "add one: docs/sign-in.md")
        }];
    }
    let providers = match Providers::new(settings, &origin.auth_url(), &patient.clock) {
        Ok(providers) => providers,
        Err(error) => {
            return vec![Finding::wrong(
                CHECK,
                chain(&error),
                "correct `identity_provider`",
            )];
        }
    };
    let asked = providers.all().map(|provider| async move {
        let id = provider.id();
        match provider.look().await {
            Ok(()) => Finding::fine(CHECK, format!("`{id}` can be used")),
            Err(error) => Finding::wrong(
                CHECK,
                format!("`{id}`: {error}"),
                "compare `issuer` with the provider's documents, and look whether this machine reaches it",
            ),
        }
    });
    futures_util::future::join_all(asked).await
}
