//! The same identity from several browsers at the same time, against the real server program, with
//! a delay before every step: always one account, no half-merged guest, nothing lost.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join;
use futures_util::stream;
use platform_protocol::claims::GameTokenClaims;
use platform_tests::hostile_provider::{CLIENT_ID, CLIENT_SECRET, HostileProvider};
use platform_tests::person::Person;
use platform_tests::platform::Site;
use platform_tests::server::Server;
use platform_tests::settings;
use platform_tests::tables::Tables;
use serde_json::json;
use tempfile::TempDir;

use crate::scene::PROVIDER;

/// Rounds of two browsers with one new identity.
const ROUNDS: usize = 200;
/// Rounds of each other kind.
const FEW: usize = 40;
/// Rounds that run concurrently.
const BESIDE: usize = 8;
/// The maximum delay before a step in milliseconds; also at the provider.
const DELAY: u64 = 6;

/// A delay of random length, so that the steps of two browsers interleave in any order.
async fn dawdle(random: &mut fastrand::Rng) {
    let moment = Duration::from_micros(random.u64(0..DELAY * 1_000));
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is waited for: the moment of every step is random"
    )]
    tokio::time::sleep(moment).await;
}

/// A sign-in with a delay before each of its steps.
async fn sign_in(person: &mut Person, subject: &str, random: &mut fastrand::Rng) {
    let game = person.game();
    dawdle(random).await;
    let begun = person.begin(PROVIDER, &game).await;
    dawdle(random).await;
    let callback = person.authorize(&begun, subject).await;
    dawdle(random).await;
    assert_eq!(
        person.follow(&callback).await.see_other(),
        game,
        "{subject}"
    );
}

/// Who somebody was before, and is now.
struct Told {
    guest: GameTokenClaims,
    account: GameTokenClaims,
    old: Person,
}

/// Arrives as a guest, signs in, and asks immediately who the player is.
async fn race(site: &Site, subject: &str, mut random: fastrand::Rng) -> Told {
    let (mut person, guest) = Person::guest(site).await;
    let old = person.clone();
    sign_in(&mut person, subject, &mut random).await;
    let account = person.play().await;
    assert!(!account.is_anon, "{subject}");
    Told {
        guest,
        account,
        old,
    }
}

struct Track {
    provider: HostileProvider,
    server: Server,
    data: TempDir,
    random: fastrand::Rng,
}

impl Track {
    async fn lay() -> Self {
        let provider = HostileProvider::start().await;
        provider.behave(&json!({ "jitter": DELAY })).await;
        let data = TempDir::with_prefix("platform-tests-").unwrap();
        let toml = format!(
            "[[identity_provider]]\nid = \"{PROVIDER}\"\nname = \"Hostile\"\nissuer = \"{}\"\n\
             client_id = \"{CLIENT_ID}\"\nclient_secret = \"{CLIENT_SECRET}\"\n",
            provider.issuer
        );
        let server = Server::start_set(data.path(), &toml, &[]).await;
        let given = settings::variable("PLATFORM_TEST_SEED").and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| fastrand::u64(..));
        println!("repeat with PLATFORM_TEST_SEED={seed}");
        Self {
            provider,
            server,
            data,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    fn site(&self) -> Site {
        Site::from(&self.server)
    }

    fn tables(&self) -> Tables {
        Tables::read(self.data.path())
    }
}

/// Returns the players by id, with every column by its name.
fn players(tables: &Tables) -> HashMap<String, HashMap<String, String>> {
    let rows = tables.rows("players").iter();
    rows.map(|row| {
        let columns: HashMap<String, String> = row
            .split(' ')
            .filter_map(|column| column.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        (columns["id"].clone(), columns)
    })
    .collect()
}

fn plain(sub: &str) -> String {
    sub.replace('-', "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_identity_in_two_browsers_is_one_account_in_two_hundred_rounds() {
    let mut track = Track::lay().await;
    let site = track.site();
    let rounds: Vec<_> = (0..ROUNDS)
        .map(|round| (round, track.random.fork(), track.random.fork()))
        .collect();
    let told: Vec<(usize, Told, Told)> = stream::iter(rounds)
        .map(|(round, left, right)| {
            let site = site.clone();
            async move {
                let subject = format!("racer-{round}");
                let both = join(race(&site, &subject, left), race(&site, &subject, right));
                let (one, two) = both.await;
                (round, one, two)
            }
        })
        .buffer_unordered(BESIDE)
        .collect()
        .await;
    assert_eq!(told.len(), ROUNDS);

    let tables = track.tables();
    assert_eq!(tables.rows("identities").len(), ROUNDS);
    assert_eq!(tables.rows("pending_sign_ins").len(), 0);
    let players = players(&tables);
    assert_eq!(
        players.len(),
        2 * ROUNDS,
        "nobody was made beside the guests"
    );
    for (round, one, two) in told {
        assert_eq!(one.account.sub, two.account.sub, "round {round}");
        let account = one.account.sub.clone();
        let mut merged = 0;
        for told in [one, two] {
            let row = &players[&plain(&told.guest.sub)];
            if told.guest.sub == account {
                assert_eq!(row["linked"], "1", "round {round}");
                assert_eq!(row["merged_into"], "null", "round {round}");
            } else {
                assert_eq!(row["merged_into"], plain(&account), "round {round}");
                assert_eq!(row["linked"], "0", "round {round}");
                assert_ne!(row["merged_at"], "null", "round {round}");
                merged += 1;
            }
            // The session before the sign-in gives no access.
            let mut old = told.old;
            assert_eq!(old.token().await.slug(), "session-expired", "round {round}");
        }
        assert_eq!(merged, 1, "round {round}: one of the two is the account");
    }
    drop(track.provider);
    track.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_known_identity_takes_in_every_guest_that_comes_at_once() {
    let mut track = Track::lay().await;
    let site = track.site();
    for round in 0..FEW {
        let subject = format!("known-{round}");
        let first = race(&site, &subject, track.random.fork()).await;
        let randoms: Vec<_> = (0..3).map(|_| track.random.fork()).collect();
        let guests = randoms
            .into_iter()
            .map(|random| race(&site, &subject, random));
        let guests = futures_util::future::join_all(guests).await;
        let players = players(&track.tables());
        for guest in guests {
            assert_eq!(guest.account.sub, first.account.sub, "round {round}");
            let row = &players[&plain(&guest.guest.sub)];
            assert_eq!(row["merged_into"], plain(&first.account.sub));
        }
    }
    track.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_guest_in_two_tabs_is_one_account() {
    let mut track = Track::lay().await;
    let site = track.site();
    for round in 0..FEW {
        let subject = format!("tabs-{round}");
        let (mut person, guest) = Person::guest(&site).await;
        // Both tabs have opened a form, so they share the cookie of forms, too.
        let game = person.game();
        person.login_form(PROVIDER, &game).await;
        let mut tab = person.clone();
        let (mut left, mut right) = (track.random.fork(), track.random.fork());
        join(
            sign_in(&mut person, &subject, &mut left),
            sign_in(&mut tab, &subject, &mut right),
        )
        .await;
        // Whichever cookie the browser kept works.
        for tab in [&mut person, &mut tab] {
            let account = tab.play().await;
            assert_eq!(account.sub, guest.sub, "round {round}");
            assert!(!account.is_anon, "round {round}");
        }
    }
    assert_eq!(track.tables().rows("players").len(), FEW);
    track.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_guest_with_two_identities_at_once_goes_to_one_of_them() {
    let mut track = Track::lay().await;
    let site = track.site();
    for round in 0..FEW {
        let subjects = [format!("left-{round}"), format!("right-{round}")];
        let (mut person, guest) = Person::guest(&site).await;
        let game = person.game();
        person.login_form(PROVIDER, &game).await;
        let mut tab = person.clone();
        let (mut left, mut right) = (track.random.fork(), track.random.fork());
        join(
            sign_in(&mut person, &subjects[0], &mut left),
            sign_in(&mut tab, &subjects[1], &mut right),
        )
        .await;
        let (one, two) = (person.play().await, tab.play().await);
        assert_ne!(
            one.sub, two.sub,
            "round {round}: two identities, two accounts"
        );
        let of_guest = [&one, &two]
            .iter()
            .filter(|account| account.sub == guest.sub)
            .count();
        assert_eq!(of_guest, 1, "round {round}: the guest went to one of them");
        // Each identity gets its own account again.
        for (subject, account) in subjects.iter().zip([one, two]) {
            let mut later = Person::new(&site);
            sign_in(&mut later, subject, &mut left).await;
            assert_eq!(later.play().await.sub, account.sub, "round {round}");
        }
    }
    track.server.stop().await;
}
