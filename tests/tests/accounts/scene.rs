//! What the tests of the callback have in common: a platform with a hostile
//! provider, and a sign-in there that must come to nothing.

use platform_protocol::claims::GameTokenClaims;
use platform_tests::hostile_provider::HostileProvider;
use platform_tests::person::{Answer, Person};
use platform_tests::platform::Platform;
use platform_tests::tables::Tables;
use serde_json::{Value, json};

/// The provider's id in the settings.
pub(crate) const PROVIDER: &str = "hostile";

/// Tables in which a sign-in that came to nothing may leave something: it was
/// begun, and that is over now.
pub(crate) const ON_THE_WAY: &[&str] = &["pending_sign_ins"];

/// The log of security events, and how a row of it begins to say that a sign-in
/// failed, of nobody: that it failed is kept, and is all that may be.
const EVENTS: &str = "audit_events";
const FAILED: &str =
    "kind=sign-in-failed player=null other=null subject=hostile actor=null admin=null";

/// So many of these events are kept of one network at least.
const KEPT_OF_NETWORK: usize = 20;

/// A platform and its hostile provider.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) provider: HostileProvider,
    pub(crate) platform: Platform,
}

impl Scene {
    /// With a provider that signs with `ES256`.
    pub(crate) async fn set() -> Self {
        Self::set_with(HostileProvider::start().await).await
    }

    /// With this provider.
    pub(crate) async fn set_with(provider: HostileProvider) -> Self {
        let platform = Platform::start(&[(PROVIDER, &provider)]).await;
        Self { provider, platform }
    }

    /// A guest.
    pub(crate) async fn guest(&self) -> (Person, GameTokenClaims) {
        Person::guest(&self.platform.site).await
    }

    /// Everything in the store but the events that a sign-in failed.
    pub(crate) fn standing(&self) -> Tables {
        let tables = self.platform.tables();
        tables.without_rows(EVENTS, |row| row.contains(FAILED))
    }

    /// What of it a sign-in which comes to nothing leaves as it is.
    pub(crate) fn lasting(&self) -> Tables {
        self.standing().without(ON_THE_WAY)
    }

    /// How many sign-ins failed, as the log of security events says.
    pub(crate) fn failed_sign_ins(&self) -> usize {
        let tables = self.platform.tables();
        let failed = |row: &&String| row.contains(FAILED);
        tables.rows(EVENTS).iter().filter(failed).count()
    }

    /// Lets a guest sign in while the provider behaves as told. It must end on
    /// the sign-in page with `problem`, change nothing but that one event says
    /// so, unless that were too many, and be over; and once the provider behaves, the same guest signs in
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

    /// Demands that `answer` gave nothing and that nothing else changed either:
    /// `person` is the same guest as before.
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

    /// Demands that `guest` can sign in as somebody new, and stays who it is.
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

/// Whether an answer sets or clears the session cookie.
pub(crate) fn sets_session(answer: &Answer, person: &Person) -> bool {
    let name = person.session_name();
    let cookies = answer.headers.get_all("set-cookie");
    cookies
        .iter()
        .any(|cookie| cookie.to_str().is_ok_and(|cookie| cookie.starts_with(name)))
}
