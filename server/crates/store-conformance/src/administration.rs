//! Administrators, owners, names, held guests, and copies of the store.

use std::collections::BTreeMap;

use platform_domain::administration::{Granted, MergedGuest, Transferred};
use platform_domain::audit::{
    Actor, AuditEvent, AuditKind, AuditQuery, By, ROUTINE_MILLIS, Refused, SOURCE_MILLIS, Source,
};
use platform_domain::console_token::Hold;
use platform_domain::environment_setting::EnvironmentSetting;
use platform_domain::player::PlayerState;
use platform_domain::project::{BackendSettings, Deployment, FileEntry, Made, Project};
use platform_domain::session::SESSION_MILLIS;
use platform_domain::sign_in::SignIn;
use platform_protocol::names::Environment;
use platform_store::{NewGuest, Store};
use uuid::Uuid;

use super::{NOW, Place, entropy, guest, sign_in};

#[doc(hidden)]
#[macro_export]
macro_rules! administration_suite {
    ($place:expr; $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let place = $place;
                $crate::administration::$name(&place).await;
            }
        )*
    };
    ($place:expr) => {
        $crate::administration_suite!($place;
            an_account_becomes_an_administrator_and_a_guest_does_not
            a_project_goes_to_an_account_alone
            events_say_who_did_it
            events_say_where_they_came_from
            events_are_gone_on_with_and_routine_ones_are_swept
            who_holds_a_session_is_known_until_it_ends
            players_are_found_by_what_their_names_look_like
            players_are_named_by_their_ids
            merged_guests_are_listed_with_their_account
            addresses_are_listed_with_the_guests_that_they_hold
            a_copy_is_a_whole_store_of_that_moment
        );
    };
}

/// Makes a guest with this name, and turns it into an account.
async fn account(store: &dyn Store, name: &str) -> Uuid {
    let new = guest(&[name]);
    store.add_guest(new.clone()).await.unwrap();
    link(store, &new, name).await;
    new.id
}

/// Signs `subject` in, with the browser of this guest.
async fn link(store: &dyn Store, new: &NewGuest, subject: &str) {
    let request = SignIn {
        guest: Some(new.id),
        held: Some(new.session),
        ..sign_in(subject)
    };
    let outcome = store.complete_sign_in(request).await.unwrap();
    assert!(outcome.player().is_some(), "{outcome:?}");
}

async fn last_event(store: &dyn Store, player: Option<Uuid>) -> AuditEvent {
    let query = AuditQuery {
        player,
        ..AuditQuery::newest(1)
    };
    store.list_audit_events(query).await.unwrap().remove(0)
}

fn project(slug: &str, owner: Option<Uuid>) -> Project {
    Project {
        slug: slug.to_owned(),
        owner,
        created_at: NOW,
    }
}

pub async fn an_account_becomes_an_administrator_and_a_guest_does_not(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store, "otter").await;
    let passing = guest(&["heron"]);
    store.add_guest(passing.clone()).await.unwrap();
    let grant = async |player| {
        store
            .grant_admin(player, Actor::Operator.into(), NOW + 5)
            .await
            .unwrap()
    };
    assert!(!store.is_admin(player).await.unwrap());
    assert_eq!(grant(Uuid::nil()).await, Granted::NoPlayer);
    assert_eq!(grant(passing.id).await, Granted::NotAnAccount);
    assert_eq!(grant(player).await, Granted::Done);
    assert_eq!(grant(player).await, Granted::Already);
    assert!(store.is_admin(player).await.unwrap());
    assert!(!store.is_admin(passing.id).await.unwrap());
    let admins = store.list_admins().await.unwrap();
    assert_eq!(admins.len(), 1);
    assert_eq!(
        (
            admins[0].player,
            admins[0].username.as_str(),
            admins[0].granted_at
        ),
        (player, "otter", NOW + 5)
    );
    let event = last_event(&*store, Some(player)).await;
    assert_eq!(
        (event.kind, event.actor, event.at),
        (AuditKind::AdminGranted, Actor::Operator, NOW + 5)
    );
    let revoke = async || {
        store
            .revoke_admin(player, Actor::Operator.into(), NOW + 6)
            .await
            .unwrap()
    };
    assert!(revoke().await);
    assert!(!revoke().await);
    assert!(!store.is_admin(player).await.unwrap());
    assert_eq!(store.list_admins().await.unwrap(), []);
    let event = last_event(&*store, Some(player)).await;
    assert_eq!((event.kind, event.at), (AuditKind::AdminRevoked, NOW + 6));
}

pub async fn a_project_goes_to_an_account_alone(place: &dyn Place) {
    let store = place.open().await;
    let (first, second) = (
        account(&*store, "otter").await,
        account(&*store, "heron").await,
    );
    let passing = guest(&["robin"]);
    store.add_guest(passing.clone()).await.unwrap();
    store
        .add_project(project("game", Some(first)))
        .await
        .unwrap();
    store.add_project(project("demo", None)).await.unwrap();
    let give = async |slug, to| {
        store
            .transfer_project(slug, to, Actor::Operator.into(), NOW)
            .await
            .unwrap()
    };
    assert_eq!(give("none", second).await, Transferred::NoProject);
    assert_eq!(give("game", Uuid::nil()).await, Transferred::NoPlayer);
    assert_eq!(give("game", passing.id).await, Transferred::NotAnAccount);
    assert_eq!(give("game", first).await, Transferred::Already);
    let owner = async |slug| store.find_project(slug).await.unwrap().unwrap().owner;
    assert_eq!(owner("game").await, Some(first));
    assert_eq!(give("game", second).await, Transferred::Done);
    assert_eq!(owner("game").await, Some(second));
    assert_eq!(store.list_projects_of(first).await.unwrap(), []);
    // The former owner finds it among their events as well.
    let event = last_event(&*store, Some(first)).await;
    assert_eq!(event.kind, AuditKind::ProjectTransferred);
    assert_eq!(
        (event.player, event.other, event.subject.as_deref()),
        (Some(second), Some(first), Some("game"))
    );
    assert_eq!(give("demo", first).await, Transferred::Done);
    assert_eq!(owner("demo").await, Some(first));
}

pub async fn events_say_who_did_it(place: &dyn Place) {
    let store = place.open().await;
    let (player, admin) = (
        account(&*store, "otter").await,
        account(&*store, "heron").await,
    );
    let actor = async || last_event(&*store, Some(player)).await.actor;
    assert_eq!(actor().await, Actor::Own, "signing in is the player's own");
    for by in [Actor::Operator, Actor::Admin(admin)] {
        store
            .suspend_player(player, None, by.into(), NOW)
            .await
            .unwrap();
        assert_eq!(actor().await, by);
        store
            .unsuspend_player(player, by.into(), NOW)
            .await
            .unwrap();
        assert_eq!(actor().await, by);
        store.grant_admin(player, by.into(), NOW).await.unwrap();
        assert_eq!(actor().await, by);
        store.revoke_admin(player, by.into(), NOW).await.unwrap();
        assert_eq!(actor().await, by);
    }
    let by = Actor::Admin(admin);
    assert_eq!(
        store
            .end_other_sessions(player, None, by.into(), NOW)
            .await
            .unwrap(),
        1
    );
    assert_eq!(actor().await, by);
    store
        .add_key(super::key("a"), None, by.into())
        .await
        .unwrap();
    assert_eq!(last_event(&*store, None).await.actor, by);
    // An administrator's act is among the administrator's own events.
    let event = last_event(&*store, Some(admin)).await;
    assert_eq!((event.kind, event.player), (AuditKind::KeyAdded, None));
}

pub async fn events_say_where_they_came_from(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store, "otter").await;
    let source = Source {
        network: "2001:db8::/64".to_owned(),
        request: "request-1".to_owned(),
    };
    let by = || By::request(Actor::Own, source.clone());
    let mut request = sign_in("otter");
    request.source = Some(source.clone());
    let session = request.session;
    store.complete_sign_in(request).await.unwrap();
    let seen = async |kind, detail: Option<&str>| {
        let event = last_event(&*store, Some(player)).await;
        assert_eq!((event.kind, event.actor), (kind, Actor::Own));
        assert_eq!(event.detail.as_deref(), detail);
        assert_eq!(event.network, Some(source.network.clone()));
        assert_eq!(event.request, Some(source.request.clone()));
    };
    seen(AuditKind::SignedIn, None).await;
    store
        .rename_player(player, "heron", by(), NOW)
        .await
        .unwrap();
    seen(AuditKind::Renamed, None).await;
    store.end_session(&session, by(), NOW).await.unwrap();
    seen(AuditKind::SignedOut, None).await;
    let game = project("game", Some(player));
    store.add_project_within(game, 1, by()).await.unwrap();
    seen(AuditKind::ProjectCreated, None).await;
    let dev = Environment::Dev;
    let (first, second) = (entropy().uuid_v4(), entropy().uuid_v4());
    for id in [first, second] {
        let deployment = Deployment {
            id,
            slug: "game".to_owned(),
            environment: dev,
            files: BTreeMap::new(),
            created_at: NOW,
            made: Made::default(),
            inspection: None,
        };
        store.add_deployment(deployment, by()).await.unwrap();
        seen(AuditKind::Deployed, Some(&format!("dev {id}"))).await;
    }
    let back = store.set_current_deployment("game", dev, first, by(), NOW);
    back.await.unwrap();
    let both = format!("dev {first} in place of {second}");
    seen(AuditKind::RolledBack, Some(&both)).await;
    let backend = BackendSettings {
        url: "http://127.0.0.1:3000".to_owned(),
        paths: vec!["/api/".to_owned()],
    };
    for (backend, detail) in [
        (Some(backend), "dev http://127.0.0.1:3000"),
        (None, "dev none"),
    ] {
        let backend = EnvironmentSetting::Backend(backend);
        let set = store.set_environment("game", dev, backend, by(), NOW);
        set.await.unwrap();
        seen(AuditKind::BackendChanged, Some(detail)).await;
    }
    store
        .ensure_test_player("game", true, 3, Uuid::max(), by(), NOW)
        .await
        .unwrap();
    seen(AuditKind::TestTokenGiven, Some("test-guest-3")).await;
}

pub async fn an_act_on_what_lies_elsewhere_is_recorded_for_the_owner(place: &dyn Place) {
    let store = place.open().await;
    let owner = account(&*store, "otter").await;
    let added = store.add_project(project("game", Some(owner)));
    added.await.unwrap();
    let member = Uuid::from_u128(7);
    let by = By::from(Actor::Member(member));
    for (kind, slug) in [
        (AuditKind::ErrorDecided, "game"),
        (AuditKind::ErrorsDeleted, "game"),
        (AuditKind::ErrorsDeleted, "none"),
    ] {
        let noted = store.note_project_act(kind, (slug, "prod: all"), by.clone(), NOW);
        noted.await.unwrap();
    }
    let mut events = store
        .list_audit_events(AuditQuery::newest(3))
        .await
        .unwrap();
    assert_eq!(
        (events[0].player, &events[0].kind),
        (None, &AuditKind::ErrorsDeleted)
    );
    for (event, kind) in events
        .drain(1..)
        .zip([AuditKind::ErrorsDeleted, AuditKind::ErrorDecided])
    {
        assert_eq!((event.kind, event.player), (kind, Some(owner)));
        assert_eq!(event.subject.as_deref(), Some("game"));
        assert_eq!(event.detail.as_deref(), Some("prod: all"));
        assert_eq!((event.actor, event.at), (Actor::Member(member), NOW));
    }
    // Groups are not kept for longer themselves.
    let swept = store.sweep_audit_events(NOW + ROUTINE_MILLIS, 10).await;
    assert_eq!(swept.unwrap(), 3);
}

pub async fn events_are_gone_on_with_and_routine_ones_are_swept(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store, "otter").await;
    let source = Source {
        network: "192.0.2.1".to_owned(),
        request: "request-1".to_owned(),
    };
    let refuse = async |at| {
        let refused = Refused {
            kind: AuditKind::SignInFailed,
            player: None,
            subject: Some("google".to_owned()),
            detail: "unknown".to_owned(),
        };
        let by = By::request(Actor::Own, source.clone());
        store.note_refusal(refused, by, at).await.unwrap();
    };
    let list = async |query| store.list_audit_events(query).await.unwrap();
    let linked = list(AuditQuery::newest(10)).await.remove(0);
    refuse(NOW).await;
    refuse(NOW + 1).await;
    let query = AuditQuery {
        after: Some(linked.id),
        ..AuditQuery::newest(10)
    };
    let times = async |query| {
        let events = list(query).await.into_iter();
        events.map(|event| event.at).collect::<Vec<_>>()
    };
    assert_eq!(times(query).await, [NOW, NOW + 1], "the oldest first");
    let limit = AuditQuery { limit: 1, ..query };
    assert_eq!(times(limit).await, [NOW]);
    let of_player = AuditQuery {
        player: Some(player),
        ..query
    };
    assert!(times(of_player).await.is_empty());

    assert_eq!(store.sweep_audit_events(NOW, 10).await.unwrap(), 0);
    let swept = store.sweep_audit_events(NOW + ROUTINE_MILLIS, 10).await;
    assert_eq!(swept.unwrap(), 1);
    assert_eq!(times(query).await, [NOW + 1]);
    let by = By::request(Actor::Own, source.clone());
    store.rename_player(player, "heron", by, NOW).await.unwrap();
    let late = NOW + SOURCE_MILLIS;
    assert_eq!(store.sweep_audit_events(late, 10).await.unwrap(), 2);
    let renamed = last_event(&*store, Some(player)).await;
    assert_eq!((renamed.network, renamed.request), (None, None));
    assert_eq!(times(AuditQuery::newest(10)).await.len(), 2);
}

pub async fn who_holds_a_session_is_known_until_it_ends(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store, "otter").await;
    let mut request = sign_in("otter");
    request.authenticated_at = NOW + 7;
    let (session, began) = (request.session, request.now);
    store.complete_sign_in(request).await.unwrap();
    let holder = async |now| {
        let found = store.find_holder(&Hold::Session(session), now).await;
        found.unwrap()
    };
    let known = holder(NOW).await.unwrap();
    assert_eq!((known.player.id, known.is_admin), (player, false));
    assert_eq!(known.authenticated_at, Some(NOW + 7));
    let by = || By::from(Actor::Operator);
    store.grant_admin(player, by(), NOW).await.unwrap();
    store
        .suspend_player(player, Some("Why."), by(), NOW)
        .await
        .unwrap();
    let known = holder(NOW).await.unwrap();
    assert!(known.is_admin, "{known:?}");
    assert!(matches!(known.player.state, PlayerState::Suspended { .. }));
    assert_eq!(holder(began + SESSION_MILLIS).await, None);
    store.end_session(&session, by(), NOW).await.unwrap();
    assert_eq!(holder(NOW).await, None);
    let unknown = Hold::Device(Uuid::max());
    assert_eq!(store.find_holder(&unknown, NOW).await.unwrap(), None);

    let new = guest(&["heron"]);
    store.add_guest(new.clone()).await.unwrap();
    let known = store.find_holder(&Hold::Session(new.session), NOW).await;
    let known = known.unwrap().unwrap();
    assert_eq!((known.player.id, known.authenticated_at), (new.id, None));
}

pub async fn players_are_found_by_what_their_names_look_like(place: &dyn Place) {
    let store = place.open().await;
    let mut ids = BTreeMap::new();
    for name in ["Otter", "otter-2", "heron", "ott_er"] {
        let new = guest(&[name]);
        store.add_guest(new.clone()).await.unwrap();
        ids.insert(name, new.id);
    }
    let find = async |name| {
        let found = store.find_player_by_name(name).await.unwrap();
        found.map(|player| player.id)
    };
    assert_eq!(find("OTTER").await, Some(ids["Otter"]));
    assert_eq!(find("ott").await, None);
    assert_eq!(find("").await, None);
    let list = async |start, limit| {
        let found = store.list_players_by_name(start, limit).await.unwrap();
        let mut names: Vec<String> = found.into_iter().map(|player| player.username).collect();
        names.sort();
        names
    };
    assert_eq!(list("oTTer", 10).await, ["Otter", "otter-2"]);
    assert_eq!(list("OTT", 10).await, ["Otter", "ott_er", "otter-2"]);
    assert_eq!(list("OTT", 2).await.len(), 2);
    assert_eq!(list("%", 10).await, [""; 0]);
}

pub async fn players_are_named_by_their_ids(place: &dyn Place) {
    let store = place.open().await;
    let otter = account(&*store, "otter").await;
    let heron = guest(&["heron"]);
    store.add_guest(heron.clone()).await.unwrap();
    let asked = [otter, heron.id, Uuid::nil()].into();
    let names = store.list_usernames(asked).await.unwrap();
    let expected = [(otter, "otter"), (heron.id, "heron")];
    assert_eq!(
        names,
        expected.map(|(id, name)| (id, name.to_owned())).into()
    );
    assert!(store.list_usernames([].into()).await.unwrap().is_empty());
}

pub async fn merged_guests_are_listed_with_their_account(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store, "otter").await;
    assert_eq!(store.list_merged_guests(player, 10).await.unwrap(), []);
    let passing = guest(&["heron"]);
    store.add_guest(passing.clone()).await.unwrap();
    link(&*store, &passing, "otter").await;
    let merged = MergedGuest {
        guest: passing.id,
        merged_at: Some(NOW + 1),
    };
    assert_eq!(
        store.list_merged_guests(player, 10).await.unwrap(),
        [merged]
    );
    assert_eq!(store.list_merged_guests(player, 0).await.unwrap(), []);
}

pub async fn addresses_are_listed_with_the_guests_that_they_hold(place: &dyn Place) {
    let store = place.open().await;
    let mut held = Vec::new();
    for (index, address) in ["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3"]
        .into_iter()
        .enumerate()
    {
        let name = format!("otter-{index}");
        let new = NewGuest {
            address: address.to_owned(),
            now: NOW + i64::try_from(index).unwrap(),
            ..guest(&[&name])
        };
        store.add_guest(new.clone()).await.unwrap();
        held.push(new);
    }
    // An account counts for no address.
    link(&*store, &held[3], "ann").await;
    let addresses = async |since, limit| {
        let found = store.list_holding_addresses(since, limit).await.unwrap();
        let pairs = found.into_iter().map(|one| (one.address, one.guests));
        pairs.collect::<Vec<_>>()
    };
    let pair = |address: &str, guests| (address.to_owned(), guests);
    assert_eq!(
        addresses(NOW, 10).await,
        [pair("192.0.2.2", 2), pair("192.0.2.1", 1)]
    );
    assert_eq!(addresses(NOW, 1).await, [pair("192.0.2.2", 2)]);
    assert_eq!(addresses(NOW + 2, 10).await, [pair("192.0.2.2", 1)]);
    let found = store.list_held_guests("192.0.2.2", NOW, 10).await.unwrap();
    let ids: Vec<Uuid> = found.iter().map(|player| player.id).collect();
    assert_eq!(ids, [held[2].id, held[1].id]);
    let found = store.list_held_guests("192.0.2.3", NOW, 10).await.unwrap();
    assert_eq!(found, []);
}

pub async fn a_copy_is_a_whole_store_of_that_moment(place: &dyn Place) {
    let store = place.open().await;
    let player = account(&*store, "otter").await;
    store
        .add_project(project("game", Some(player)))
        .await
        .unwrap();
    let file = FileEntry {
        sha256: "ab".repeat(32),
        size: 3,
    };
    let deployment = Deployment {
        id: entropy().uuid_v7(NOW),
        slug: "game".to_owned(),
        environment: Environment::Prod,
        files: BTreeMap::from([
            ("index.html".to_owned(), file.clone()),
            ("again.html".to_owned(), file),
        ]),
        created_at: NOW,
        made: Made::default(),
        inspection: None,
    };
    store
        .add_deployment(deployment.clone(), Actor::Own.into())
        .await
        .unwrap();
    let copied = place.open_copy().await;
    let later = account(&*store, "heron").await;
    assert_eq!(
        copied.find_player(player).await.unwrap(),
        store.find_player(player).await.unwrap()
    );
    assert_eq!(copied.find_player(later).await.unwrap(), None);
    let shown = copied.find_current_deployment("game", Environment::Prod);
    assert_eq!(shown.await.unwrap(), Some(deployment));
    // The copy is a complete store, and writes to it stay in it.
    let fresh = account(&*copied, "robin").await;
    assert_eq!(store.find_player(fresh).await.unwrap(), None);
}
