//! Common code of the tests of the callback: a platform with a hostile provider, and a sign-in
//! there that must fail.

use platform_protocol::claims::GameTokenClaims;
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::person::{Answer, Person};
use platform_tests::platform::Platform;
use platform_tests::tables::Tables;
use serde_json::{Value, json};

/// The provider's id in the settings.
pub(crate) const PROVIDER: &str = "hostile";

/// Tables in which a failed sign-in may leave a row: it was begun, and has ended.
pub(crate) const ON_THE_WAY: &[&str] = &["pending_sign_ins"];

/// The audit log, and what a row has that says that a sign-in failed, without a player. This row is
/// all that a failed sign-in may leave.
const EVENTS: &str = "audit_events";
const FAILED: &[&str] = &[
    "kind=sign-in-failed",
    "player=null",
    "other=null",
    "subject=hostile",
    "actor=null",
    "admin=null",
];

/// At least this number of these events is kept per network.
const KEPT_OF_NETWORK: usize = 20;

/// A platform and its hostile provider.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) provider: HostileProvider,
    pub(crate) platform: Platform,
}

impl Scene {
    /// Creates one with a provider that signs with `ES256`.
    pub(crate) async fn set() -> Self {
        Self::set_with(HostileProvider::start().await).await
    }

    /// Creates one with this provider.
    pub(crate) async fn set_with(provider: HostileProvider) -> Self {
        let platform = Platform::start(&[(PROVIDER, &provider)]).await;
        Self { provider, platform }
    }

    /// Creates a guest.
    pub(crate) async fn guest(&self) -> (Person, GameTokenClaims) {
        Person::guest(&self.platform.site).await
    }

    /// Returns everything in the store except the events of failed sign-ins.
    pub(crate) fn standing(&self) -> Tables {
        let tables = self.platform.tables();
        tables.without_rows(EVENTS, |row| Tables::row_has(row, FAILED))
    }

    /// Returns the part of it that a failed sign-in must not change.
    pub(crate) fn lasting(&self) -> Tables {
        self.standing().without(ON_THE_WAY)
    }

    /// Returns the number of failed sign-ins in the audit log.
    pub(crate) fn failed_sign_ins(&self) -> usize {
        let tables = self.platform.tables();
        let failed = |row: &&String| Tables::row_has(row, FAILED);
        tables.rows(EVENTS).iter().filter(failed).count()
    }

    /// Lets a guest sign in while the provider behaves as given. The sign-in must end on the
    /// sign-in page with `problem`. It must change nothing, except for one event (unless there were
    /// too many), and it must be over. Once the provider behaves correctly, the same guest signs in
    /// and keeps its id.
    pub(crate) async fn refused(&self, what: &str, behaviour: &Value, problem: &str) {
        let (mut person, guest) = self.guest().await;
        let before = self.lasting();
        let failed = self.failed_sign_ins();
        self.provider.behave(behaviour).await;
        let subject = format!("subject of {what}");
        let callback = person.reach_callback(PROVIDER, &subject).await;
        let answer = person.follow(&callback).await;
        self.provider.behave(&json!({})).await;
        assert_eq!(answer.login_problem(), problem, "{what}");
        let kept = failed.min(KEPT_OF_NETWORK - 1) + 1..=failed + 1;
        assert!(kept.contains(&self.failed_sign_ins()), "{what}");
        self.came_to_nothing(what, &mut person, &guest, &before, &answer)
            .await;
        let again = person.follow(&callback).await;
        assert_eq!(again.login_problem(), "expired", "{what}, again");
        self.still_signs_in(what, &mut person, &guest).await;
    }

    /// Asserts that `answer` gave nothing and that nothing else changed: `person` is the same guest
    /// as before.
    pub(crate) async fn came_to_nothing(
        &self,
        what: &str,
        person: &mut Person,
        guest: &GameTokenClaims,
        before: &Tables,
        answer: &Answer,
    ) {
        assert!(
            !sets_session(answer, person),
            "{what}: a session was set: {:?}",
            answer.headers
        );
        before.demand_same(&self.lasting(), what);
        let claims = person.play().await;
        assert_eq!(claims.sub, guest.sub, "{what}: another player");
        assert!(claims.is_anon, "{what}: no guest any more");
    }

    /// Asserts that `guest` can sign in with a new identity and keeps its id.
    pub(crate) async fn still_signs_in(
        &self,
        what: &str,
        person: &mut Person,
        guest: &GameTokenClaims,
    ) {
        let subject = format!("subject of {what}");
        let account = person.become_account(PROVIDER, &subject).await;
        assert_eq!(account.sub, guest.sub, "{what}: the guest was lost");
    }
}

/// Whether a response sets or clears the session cookie.
pub(crate) fn sets_session(answer: &Answer, person: &Person) -> bool {
    let name = person.session_name();
    let cookies = answer.headers.get_all("set-cookie");
    cookies
        .iter()
        .any(|cookie| cookie.to_str().is_ok_and(|cookie| cookie.starts_with(name)))
}
