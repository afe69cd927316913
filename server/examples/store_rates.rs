//! Measures what the embedded store can do per second: new guests of 64 concurrent callers, lookups
//! of their sessions, and game tokens signed on one thread.
//!
//! `cargo run --release -p platform-server --example store_rates [directory]`
//!
//! By default the store is in a temporary directory. On a virtual disk, the durable rates say
//! little about a real one, but the ratios hold.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use platform_protocol::claims::{GameTokenClaims, PrincipalKind};
use platform_server::auth::keys::{KeyRing, KeySecrets};
use platform_server::clock::{Clock, SystemClock};
use platform_server::domain::session::SessionHash;
use platform_server::domain::username::generate_guest_names;
use platform_server::entropy::{Entropy, SystemEntropy};
use platform_server::store::{NewGuest, SchemaPolicy, Store, connect};

const CALLERS: usize = 64;
const GUESTS_EACH: usize = 1_500;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = given.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("platform-store-rates-{}", std::process::id()))
    });
    let url = format!("sqlite://{}/rates.db", directory.display());

    let store = connect(&url, SchemaPolicy::Upgrade).await?;
    let sessions = add_guests(&store).await?;
    look_up(&store, &sessions).await?;
    sign(&store).await?;
    store.close().await?;

    let begin = now();
    let store = connect(&url, SchemaPolicy::Upgrade).await?;
    report("open the store again", 1, begin.elapsed());
    store.close().await?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "this program measures real time")]
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "this is the program's result")]
fn report(what: &str, count: usize, took: Duration) {
    let seconds = took.as_secs_f64();
    let each = seconds / count as f64 * 1e6;
    println!(
        "{what}: {:.0}/s, {each:.1} µs each ({count} in {seconds:.3} s)",
        count as f64 / seconds
    );
}

async fn add_guests(store: &Arc<dyn Store>) -> Outcome<Vec<SessionHash>> {
    let begin = now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move { one_caller(&*store).await })
        })
        .collect();
    let (mut sessions, mut waits) = (Vec::new(), Vec::new());
    for caller in callers {
        let (made, waited) = caller.await??;
        sessions.extend(made);
        waits.extend(waited);
    }
    report("new guests, 64 callers", sessions.len(), begin.elapsed());
    waits.sort_unstable();
    report(
        "… the 99th percentile of one",
        1,
        waits[waits.len() * 99 / 100],
    );
    Ok(sessions)
}

async fn one_caller(store: &dyn Store) -> Outcome<(Vec<SessionHash>, Vec<Duration>)> {
    let entropy: &dyn Entropy = &SystemEntropy;
    let (mut sessions, mut waits) = (Vec::new(), Vec::new());
    for _ in 0..GUESTS_EACH {
        let (time, session) = (SystemClock.now(), SessionHash(entropy.bytes()));
        let begin = now();
        let guest = NewGuest {
            cap: None,
            awaiting: None,
            id: entropy.uuid_v7(time),
            usernames: generate_guest_names(entropy),
            session,
            address: "192.0.2.1".into(),
            now: time,
        };
        store.add_guest(guest).await?;
        waits.push(begin.elapsed());
        sessions.push(session);
    }
    Ok((sessions, waits))
}

async fn look_up(store: &Arc<dyn Store>, sessions: &[SessionHash]) -> Outcome<()> {
    let begin = now();
    for session in sessions {
        store
            .lookup_session(session)
            .await?
            .ok_or("a session is missing")?;
    }
    report(
        "lookups of a session, one caller",
        sessions.len(),
        begin.elapsed(),
    );

    let begin = now();
    let readers: Vec<_> = (0..CALLERS)
        .map(|reader| {
            let (store, sessions) = (Arc::clone(store), sessions.to_vec());
            tokio::spawn(async move {
                for session in sessions.iter().skip(reader).step_by(8) {
                    store
                        .lookup_session(session)
                        .await?
                        .ok_or("a session is missing")?;
                }
                Outcome::Ok(sessions.iter().skip(reader).step_by(8).count())
            })
        })
        .collect();
    let mut count = 0;
    for reader in readers {
        count += reader.await??;
    }
    report("lookups of a session, 64 callers", count, begin.elapsed());
    Ok(())
}

async fn sign(store: &Arc<dyn Store>) -> Outcome<()> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let keys = KeyRing::open(
        Arc::clone(store),
        clock,
        entropy,
        900,
        KeySecrets::default(),
    )
    .await?;
    let claims = GameTokenClaims {
        sub: "01890a5d-ac96-774b-bcce-b302099a8057".into(),
        username: "swift-otter-4821".into(),
        aud: "game:demo".into(),
        iss: "http://auth.platform.localhost:8787".into(),
        is_anon: true,
        principal_kind: PrincipalKind::Human,
        exp: 1_800_000_900,
        iat: 1_800_000_000,
        jti: "01890a5d-ac96-774b-bcce-b302099a8058".into(),
    };
    let begin = now();
    for _ in 0..20_000 {
        keys.sign(&claims)?;
    }
    report("game tokens signed, one thread", 20_000, begin.elapsed());
    Ok(())
}
