//! Browsers that sign in at the same time, with a delay of random length before every step, through
//! one server or through several nodes, and what must be true afterwards.
//!
//! A round is one race. It asserts what players see; the [`Finish`] that it returns is compared
//! with the [`Players`] of the store when all rounds are over.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::future::{Either, join, join_all, select};
use platform_protocol::claims::GameTokenClaims;
use platform_protocol::paths;
use platform_protocol::token::TokenAnswer;
use platform_server::domain::username;

use crate::hostile_provider::{CLIENT_ID, CLIENT_SECRET, HostileProvider};
use crate::person::{Answer, Person};
use crate::platform::Site;
use crate::tables::Tables;
use crate::{forms, settings, terminal, visitor};

/// The provider's id in the settings.
pub const PROVIDER: &str = "hostile";
/// The maximum delay before a step in milliseconds; also at the provider.
pub const DELAY: u64 = 6;
/// The maximum delay before a game requests the next token, in milliseconds.
const BETWEEN_TOKENS: u64 = 60;

/// Returns the settings with which a platform uses this provider.
#[must_use]
pub fn settings_for(provider: &HostileProvider) -> String {
    format!(
        "[[identity_provider]]\nid = \"{PROVIDER}\"\nname = \"Hostile\"\nissuer = \"{}\"\n\
         client_id = \"{CLIENT_ID}\"\nclient_secret = \"{CLIENT_SECRET}\"\n",
        provider.issuer
    )
}

/// Returns the source of all random delays, and prints how to get the same ones again.
#[must_use]
#[expect(clippy::print_stdout, reason = "a failed race is repeated by its seed")]
pub fn random() -> fastrand::Rng {
    let given = settings::variable("TESTS_SEED").and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("repeat with TESTS_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// A delay of random length, so that the steps of two browsers interleave in any order.
async fn dawdle(random: &mut fastrand::Rng) {
    dawdle_up_to(DELAY, random).await;
}

async fn dawdle_up_to(milliseconds: u64, random: &mut fastrand::Rng) {
    let moment = Duration::from_micros(random.u64(0..milliseconds * 1_000));
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

/// Somebody after a race.
#[derive(Clone, Debug)]
pub struct Racer {
    /// The guest as whom they came.
    pub guest: GameTokenClaims,
    /// The account that they have now.
    pub account: GameTokenClaims,
    /// The browser with its cookies from before the sign-in.
    old: Person,
}

/// A race after its end.
#[derive(Clone, Debug)]
pub struct Finish {
    /// The account of the identity.
    pub account: String,
    /// Everybody who signed in with it as another guest.
    pub racers: Vec<Racer>,
}

impl Finish {
    /// Asserts that every racer is either this account or merged into it, and that no cookie from
    /// before gives access. Returns how many were merged.
    ///
    /// # Panics
    /// Panics if a player is neither, or both.
    pub async fn assert_whole(self, players: &Players) -> usize {
        let account = &players.0[&plain(&self.account)];
        assert_eq!(account["linked"], "1", "{account:?}");
        assert_eq!(account["merged_into"], "null", "{account:?}");
        let mut merged = 0;
        for Racer {
            guest,
            account,
            mut old,
        } in self.racers
        {
            assert_eq!(account.sub, self.account);
            if guest.sub != self.account {
                let row = &players.0[&plain(&guest.sub)];
                assert_eq!(row["merged_into"], plain(&self.account), "{row:?}");
                assert_eq!(row["linked"], "0", "{row:?}");
                assert_ne!(row["merged_at"], "null", "{row:?}");
                merged += 1;
            }
            // The session before the sign-in gives no access.
            assert_eq!(old.token().await.slug(), "session-expired");
        }
        merged
    }
}

/// The players of a store by id, with every column by its name.
#[derive(Clone, Debug)]
pub struct Players(HashMap<String, HashMap<String, String>>);

impl Players {
    /// Returns the players in these tables.
    #[must_use]
    pub fn of(tables: &Tables) -> Self {
        let rows = tables.rows("players").iter();
        let columns = |row: &String| {
            row.split(' ')
                .filter_map(|column| column.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        };
        let players = rows.map(columns);
        Self(
            players
                .map(|columns: HashMap<String, String>| (columns["id"].clone(), columns))
                .collect(),
        )
    }

    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Asserts that no player is half merged, and that no two have names that look alike: the store
    /// knows what each name looks like, and a merged player has none.
    ///
    /// # Panics
    /// Panics if a player is, or two have.
    pub fn assert_whole(&self) {
        let mut names = BTreeMap::new();
        for (id, row) in &self.0 {
            let is_merged = row["merged_into"] != "null";
            assert_eq!(is_merged, row["merged_at"] != "null", "{row:?}");
            assert!(!(is_merged && row["linked"] == "1"), "{row:?}");
            if is_merged {
                let into = &self.0[&row["merged_into"]];
                assert_eq!(into["merged_into"], "null", "{row:?} into {into:?}");
                assert!(row["username"].starts_with("gone-"), "{row:?}");
                continue;
            }
            let key = username::unique_key(&row["username"]);
            assert_eq!(row["username_key"], key, "{row:?}");
            assert_eq!(names.insert(key, id), None, "{row:?}");
        }
    }
}

/// Returns a player's id as the tables have it.
fn plain(sub: &str) -> String {
    sub.replace('-', "")
}

/// Where races take place: the addresses of one platform.
#[derive(Clone, Debug)]
pub struct Track {
    /// One server, or each node of a cluster, and the balancer before them.
    pub sites: Vec<Site>,
}

impl Track {
    /// Returns the way of the racer `number` of a race; racers have different ones, if there are
    /// enough.
    fn site(&self, first: usize, number: usize) -> &Site {
        &self.sites[(first + number) % self.sites.len()]
    }

    /// One new identity in two browsers: both become one account, which is one of their guests.
    pub async fn one_identity_in_two_browsers(
        &self,
        subject: &str,
        mut random: fastrand::Rng,
    ) -> Finish {
        let first = random.usize(..);
        let (left, right) = (random.fork(), random.fork());
        let (one, two) = join(
            self.arrive_and_sign_in(self.site(first, 0), subject, left),
            self.arrive_and_sign_in(self.site(first, 1), subject, right),
        )
        .await;
        assert_eq!(one.account.sub, two.account.sub, "{subject}");
        let account = one.account.sub.clone();
        let racers = vec![one, two];
        let is_account = |racer: &&Racer| racer.guest.sub == account;
        let of_guests = racers.iter().filter(is_account).count();
        assert_eq!(of_guests, 1, "{subject}: one of the two is the account");
        Finish { account, racers }
    }

    /// A known identity takes in three guests at once, who request tokens meanwhile.
    pub async fn guests_of_a_known_identity(
        &self,
        subject: &str,
        mut random: fastrand::Rng,
    ) -> Finish {
        let first = random.usize(..);
        let known = self
            .arrive_and_sign_in(self.site(first, 3), subject, random.fork())
            .await;
        let account = known.account.sub.clone();
        let guests = (0..3).map(|number| {
            self.arrive_and_sign_in(self.site(first, number), subject, random.fork())
        });
        let mut racers = join_all(guests).await;
        racers.push(known);
        for racer in &racers {
            assert_eq!(racer.account.sub, account, "{subject}");
        }
        Finish { account, racers }
    }

    /// One guest signs in with one identity in two tabs, and stays the same player.
    pub async fn one_guest_in_two_tabs(&self, subject: &str, mut random: fastrand::Rng) -> Finish {
        let first = random.usize(..);
        let (mut person, mut tab, guest) = self.two_tabs(first).await;
        let old = person.clone();
        let (mut left, mut right) = (random.fork(), random.fork());
        join(
            sign_in(&mut person, subject, &mut left),
            sign_in(&mut tab, subject, &mut right),
        )
        .await;
        // Whichever cookie the browser kept works.
        let mut racers = Vec::new();
        for tab in [&mut person, &mut tab] {
            let account = tab.play().await;
            assert_eq!(account.sub, guest.sub, "{subject}");
            assert!(!account.is_anon, "{subject}");
            racers.push(Racer {
                guest: guest.clone(),
                account,
                old: old.clone(),
            });
        }
        let account = guest.sub;
        Finish { account, racers }
    }

    /// One guest signs in with two identities at once, and goes to one of them.
    pub async fn one_guest_with_two_identities(
        &self,
        subject: &str,
        mut random: fastrand::Rng,
    ) -> Finish {
        let subjects = [format!("{subject}-left"), format!("{subject}-right")];
        let first = random.usize(..);
        let (mut person, mut tab, guest) = self.two_tabs(first).await;
        let old = person.clone();
        let (mut left, mut right) = (random.fork(), random.fork());
        join(
            sign_in(&mut person, &subjects[0], &mut left),
            sign_in(&mut tab, &subjects[1], &mut right),
        )
        .await;
        let (one, two) = (person.play().await, tab.play().await);
        assert_ne!(one.sub, two.sub, "{subject}: two identities, two accounts");
        let accounts = [&one, &two];
        let of_guest = accounts.iter().filter(|account| account.sub == guest.sub);
        assert_eq!(
            of_guest.count(),
            1,
            "{subject}: the guest went to one of them"
        );
        // Each identity gets its own account again.
        for (subject, account) in subjects.iter().zip([one, two]) {
            let mut later = Person::new(self.site(first, 2));
            sign_in(&mut later, subject, &mut left).await;
            assert_eq!(later.play().await.sub, account.sub, "{subject}");
        }
        let account = guest.sub.clone();
        let racers = vec![Racer {
            account: guest.clone(),
            guest,
            old,
        }];
        Finish { account, racers }
    }

    /// Two guests become one account, while both and an onlooker take names that look alike: at
    /// most one of them has such a name afterwards.
    pub async fn names_during_a_sign_in(&self, subject: &str, mut random: fastrand::Rng) -> Finish {
        let first = random.usize(..);
        let mut onlooker = Person::guest(self.site(first, 2)).await.0;
        // `0` looks like `O`, and case does not count.
        let number = random.u32(..);
        let names = [
            format!("R0und{number:08x}"),
            format!("rOUnd{number:08X}"),
            format!("RoUND{number:08x}"),
        ];
        let mut racers = Vec::new();
        for number in 0..2 {
            let (person, tab, guest) = self.two_tabs(first + number).await;
            racers.push((person, tab, guest, random.fork(), random.fork()));
        }
        let racing = racers.into_iter().zip(&names).map(
            async |((person, mut tab, guest, left, mut right), name)| {
                let (racer, saved) = join(
                    self.sign_in_under_way(person, guest, subject, left),
                    rename(&mut tab, name, &mut right),
                )
                .await;
                (racer, saved)
            },
        );
        let mut of_onlooker = random.fork();
        let (racers, saved) = join(
            join_all(racing),
            rename(&mut onlooker, &names[2], &mut of_onlooker),
        )
        .await;
        let (racers, mut done): (Vec<Racer>, Vec<bool>) = racers.into_iter().unzip();
        done.push(saved);
        let account = racers[0].account.sub.clone();
        for racer in &racers {
            assert_eq!(racer.account.sub, account, "{subject}");
        }
        // A guest who is merged gives its name back, so a second one may get it after that.
        assert!(done.contains(&true), "{subject}: somebody gets the name");
        Finish { account, racers }
    }

    /// A guest in two tabs, which share the cookie of forms, too.
    async fn two_tabs(&self, first: usize) -> (Person, Person, GameTokenClaims) {
        let (mut person, guest) = Person::guest(self.site(first, 0)).await;
        let game = person.game();
        person.login_form(PROVIDER, &game).await;
        let tab = person.clone().through(self.site(first, 1));
        (person, tab, guest)
    }

    async fn arrive_and_sign_in(&self, site: &Site, subject: &str, random: fastrand::Rng) -> Racer {
        let (person, guest) = Person::guest(site).await;
        self.sign_in_under_way(person, guest, subject, random).await
    }

    /// A guest signs in, and the game requests tokens with the cookie of before, through every
    /// address: each response is a token of this guest, until the session has ended for good.
    async fn sign_in_under_way(
        &self,
        mut person: Person,
        guest: GameTokenClaims,
        subject: &str,
        mut random: fastrand::Rng,
    ) -> Racer {
        let old = person.clone();
        let mut of_tokens = random.fork();
        let tokens = Box::pin(async {
            let mut has_ended = false;
            loop {
                dawdle_up_to(BETWEEN_TOKENS, &mut of_tokens).await;
                let site = self.site(of_tokens.usize(..), 0);
                let answer = old.clone().through(site).token().await;
                has_ended = is_that_guest(&answer, &guest, has_ended);
            }
        });
        let signing_in = Box::pin(sign_in(&mut person, subject, &mut random));
        match select(signing_in, tokens).await {
            Either::Left(_) => {}
            Either::Right((never, _)) => never,
        }
        for site in &self.sites {
            let answer = old.clone().through(site).token().await;
            assert_eq!(answer.slug(), "session-expired", "{subject}");
        }
        let account = person.play().await;
        assert!(!account.is_anon, "{subject}");
        Racer {
            guest,
            account,
            old,
        }
    }
}

/// Asserts that this response to a cookie of before is the guest's token, or says that the session
/// has ended, as every response after that does. Returns whether it says so.
fn is_that_guest(answer: &Answer, guest: &GameTokenClaims, has_ended: bool) -> bool {
    if answer.status != 200 {
        assert_eq!(answer.slug(), "session-expired", "{answer:?}");
        return true;
    }
    assert!(!has_ended, "an ended session gave a token");
    let token: TokenAnswer = serde_json::from_str(&answer.body).expect("a token answer");
    let claims = visitor::claims(&token.access_token);
    assert_eq!(claims.sub, guest.sub, "another player for the same cookie");
    false
}

/// Takes a name on the profile page, after a delay. Returns whether it was saved; otherwise another
/// player has the name, or the session has ended meanwhile.
async fn rename(person: &mut Person, name: &str, random: &mut fastrand::Rng) -> bool {
    dawdle(random).await;
    let page = person.open(paths::PROFILE).await;
    let mut forms = forms::forms(&page.body).into_iter();
    let Some(form) = forms.find(|form| form.field("action") == Some("rename")) else {
        // The session has ended meanwhile: no player's page.
        assert!(!page.status.is_server_error(), "{page:?}");
        return false;
    };
    dawdle(random).await;
    let answer = terminal::press(person, &form, &[("username", name)]).await;
    assert!(!answer.status.is_server_error(), "{answer:?}");
    answer.status == 303 && answer.see_other().contains("saved=rename")
}
