//! The requirements on deleting players, and on exporting what is known of them.

use platform_domain::audit::{Actor, AuditEvent, AuditKind, AuditQuery, By, Source};
use platform_domain::clock::Millis;
use platform_domain::counting::{HOUR, NewPlayTime};
use platform_domain::deletion::{
    AskDeletion, DELETED_PLAYER, Deletion, DeletionAsked, DueDeletion, REGRET_MILLIS,
};
use platform_domain::identity::Identity;
use platform_domain::log::{LogEntry, NewLogRecords};
use platform_domain::page::PageId;
use platform_domain::player::PlayerState;
use platform_domain::project::Made;
use platform_domain::session::{SessionHash, SessionStatus};
use platform_domain::sign_in::SignInOutcome;
use platform_domain::takedown::Change;
use platform_protocol::log::{LogLevel, LogSource};
use platform_protocol::names::Environment;
use platform_protocol::people::Role;
use platform_store::{NewGuest, Store};
use uuid::Uuid;

use super::people::{account, join, owner};
use super::place::Needle;
use super::{NOW, Place, by, deployment, entropy, guest, lives, project, sign_in, state};

/// When players are removed who ask for it now.
const DUE: Millis = NOW + REGRET_MILLIS;

/// The act of the player's own, from an address of its own.
fn own(network: &str) -> By {
    let source = Source {
        network: network.into(),
        request: "the-request-of-the-player".into(),
    };
    By::request(Actor::Own, source)
}

fn ask(player: Uuid, browser: Option<(SessionHash, SessionHash)>) -> AskDeletion {
    AskDeletion {
        player,
        browser,
        at: DUE,
        by: Actor::Own.into(),
        now: NOW,
    }
}

async fn asked(store: &dyn Store, player: Uuid) -> DeletionAsked {
    store.ask_for_deletion(ask(player, None)).await.unwrap()
}

async fn due(store: &dyn Store, now: Millis) -> Vec<DueDeletion> {
    store.list_due_deletions(now, 10).await.unwrap()
}

async fn events_of(store: &dyn Store, kind: AuditKind) -> Vec<AuditEvent> {
    let query = AuditQuery {
        kind: Some(kind),
        ..AuditQuery::newest(100)
    };
    store.list_audit_events(query).await.unwrap()
}

pub async fn who_asks_to_be_deleted_is_signed_out_and_can_take_it_back(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    let signed_in = by(&new, "7");
    let (held, other) = (signed_in.session, sign_in("7"));
    store.complete_sign_in(signed_in).await.unwrap();
    store.complete_sign_in(other.clone()).await.unwrap();
    let next = SessionHash(entropy().bytes());
    let answer = store
        .ask_for_deletion(ask(new.id, Some((held, next))))
        .await;
    assert_eq!(answer.unwrap(), DeletionAsked::At(DUE));
    for session in [held, other.session] {
        assert!(!lives(store, &session).await);
    }
    let deletion = Deletion {
        asked_at: NOW,
        at: DUE,
    };
    let session = store.lookup_session(&next).await.unwrap().unwrap();
    assert_eq!(session.status(NOW + 1), SessionStatus::Leaving(deletion));
    assert_eq!(store.find_deletion(new.id).await.unwrap(), Some(deletion));
    // Asked again, it stays; the operator may want it sooner.
    for (at, expected) in [(DUE + 5, DUE), (NOW + 5, NOW + 5)] {
        let again = AskDeletion {
            at,
            now: NOW + 4,
            ..ask(new.id, Some((next, SessionHash(entropy().bytes()))))
        };
        let answer = store.ask_for_deletion(again).await.unwrap();
        assert_eq!(answer, DeletionAsked::At(expected));
    }
    let found = store.find_deletion(new.id).await.unwrap();
    assert_eq!(found.map(|deletion| deletion.asked_at), Some(NOW));

    // Signing in again is possible, and does not take it back.
    let again = sign_in("7");
    let outcome = store.complete_sign_in(again.clone()).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Returned(_)), "{outcome:?}");
    assert!(store.find_deletion(new.id).await.unwrap().is_some());
    for expected in [true, false] {
        let kept = store.take_deletion_back(new.id, Actor::Own.into(), NOW + 6);
        assert_eq!(kept.await.unwrap(), expected);
    }
    let session = store.lookup_session(&again.session).await.unwrap();
    assert_eq!(session.unwrap().status(NOW + 7), SessionStatus::Good);
    assert_eq!(due(store, DUE).await, []);
    assert!(!store.delete_player(new.id, DUE).await.unwrap());
    assert_eq!(state(store, new.id).await, PlayerState::Account);
    let told = events_of(store, AuditKind::DeletionAsked).await;
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().all(|event| event.player == Some(new.id)));
    let told = events_of(store, AuditKind::DeletionTakenBack).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(asked(store, Uuid::max()).await, DeletionAsked::Unknown);
}

pub async fn who_owns_a_project_is_not_deleted(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let ada = owner(store, "demo").await;
    let refused = DeletionAsked::Owns(vec!["demo".into()]);
    assert_eq!(asked(store, ada).await, refused);
    assert_eq!(store.find_deletion(ada).await.unwrap(), None);
    let change = async |change| {
        let changed = store.change_standing("demo", change, Actor::Own.into(), NOW);
        changed.await.unwrap();
    };
    change(Change::Delete).await;
    assert_eq!(asked(store, ada).await, DeletionAsked::At(DUE));
    // A project that comes to the player meanwhile stops it.
    change(Change::Restore).await;
    assert_eq!(due(store, DUE).await, []);
    assert!(!store.delete_player(ada, DUE).await.unwrap());
    change(Change::Delete).await;
    assert_eq!(due(store, DUE).await.len(), 1);
    assert!(store.delete_player(ada, DUE).await.unwrap());
    let found = store.find_project("demo").await.unwrap().unwrap();
    assert_eq!(found.owner, None);
}

pub async fn a_suspension_stops_a_deletion_unless_it_came_before(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let ada = account(store, "ada").await;
    assert_eq!(asked(store, ada).await, DeletionAsked::At(DUE));
    let suspend = async |at| {
        let by = Actor::Operator.into();
        store.suspend_player(ada, None, by, at).await.unwrap();
    };
    suspend(NOW + 1).await;
    assert_eq!(due(store, DUE).await, []);
    assert!(!store.delete_player(ada, DUE).await.unwrap());
    // The operator may delete who is suspended.
    store
        .take_deletion_back(ada, Actor::Operator.into(), NOW + 2)
        .await
        .unwrap();
    let again = AskDeletion {
        now: NOW + 2,
        ..ask(ada, None)
    };
    store.ask_for_deletion(again).await.unwrap();
    assert_eq!(due(store, DUE - 1).await, []);
    assert_eq!(due(store, DUE).await.len(), 1);
    assert!(!store.delete_player(ada, DUE - 1).await.unwrap());
    assert!(store.delete_player(ada, DUE).await.unwrap());
    assert!(!store.delete_player(ada, DUE).await.unwrap());
}

pub async fn a_guest_that_is_to_be_deleted_becomes_no_part_of_an_account(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    account(store, "ada").await;
    for subject in ["ada", "new"] {
        let new = guest(&[&format!("guest-of-{subject}")]);
        store.add_guest(new.clone()).await.unwrap();
        let next = SessionHash(entropy().bytes());
        let browser = Some((new.session, next));
        store.ask_for_deletion(ask(new.id, browser)).await.unwrap();
        let sign_in = platform_domain::sign_in::SignIn {
            held: Some(next),
            ..by(&new, subject)
        };
        let outcome = store.complete_sign_in(sign_in).await.unwrap();
        let player = outcome.player().unwrap().id;
        assert_ne!(player, new.id, "{outcome:?}");
        assert_eq!(state(store, new.id).await, PlayerState::Guest);
    }
}

/// A player who has done all that leaves traces.
struct Busy {
    player: Uuid,
    merged: NewGuest,
    session: SessionHash,
    name: String,
    identity: Identity,
    address: &'static str,
}

impl Busy {
    /// What must not be found afterwards.
    fn needles(&self) -> Vec<Needle> {
        vec![
            Needle::Id(self.player),
            Needle::Id(self.merged.id),
            Needle::Text(self.name.clone()),
            Needle::Text("busy-guest".into()),
            Needle::Text("earlier-busy-name".into()),
            Needle::Text(self.address.into()),
            Needle::Text("the-request-of-the-player".into()),
            Needle::Text("secret-of-the-players-log".into()),
            Needle::Text("reason-of-the-suspension".into()),
            Needle::Hash(self.identity.key.0),
            Needle::Hash(self.session.0),
            Needle::Hash(self.merged.session.0),
        ]
    }
}

fn record(player: Uuid, message: &str) -> NewLogRecords {
    NewLogRecords {
        slug: "demo".into(),
        environment: Environment::Prod,
        deployment: None,
        player: Some(player),
        page: PageId([9; 16]),
        received_at: NOW,
        entries: vec![LogEntry {
            time: NOW,
            level: LogLevel::Info,
            source: LogSource::Console,
            message: message.into(),
            stack: None,
            url: None,
            line: None,
            column: None,
            metadata: None,
            count: 1,
        }],
    }
}

/// Makes an account, into which a guest is merged, and lets it do all that leaves traces.
async fn busy(store: &dyn Store) -> Busy {
    let address = "203.0.113.77";
    let of = owner(store, "demo").await;
    let player = account(store, "busy").await;
    let name = "busy-name-of-the-player";
    for (name, at) in [("earlier-busy-name", NOW + 1), (name, NOW + 2)] {
        let renamed = store.rename_player(player, name, own(address), at);
        renamed.await.unwrap();
    }
    let merged = NewGuest {
        address: address.into(),
        ..guest(&["busy-guest"])
    };
    store.add_guest(merged.clone()).await.unwrap();
    let signed_in = by(&merged, "busy");
    let (session, identity) = (signed_in.session, signed_in.identity.clone());
    let outcome = store.complete_sign_in(signed_in).await.unwrap();
    assert!(
        matches!(outcome, SignInOutcome::Merged { .. }),
        "{outcome:?}"
    );
    store
        .note_browser(&session, "Firefox on Linux")
        .await
        .unwrap();
    join(store, "demo", of, (player, Role::Developer)).await;
    let mut made = deployment("demo", Environment::Prod, &["index.html"]);
    made.made = Made {
        by: Some(player),
        network: Some(address.into()),
        ..Made::default()
    };
    let source = own(address).source.unwrap();
    let by = By::request(Actor::Member(player), source);
    store.add_deployment(made, by).await.unwrap();
    let time = NewPlayTime {
        slug: "demo".into(),
        environment: Environment::Prod,
        player,
        hour: NOW - NOW % HOUR,
        millis: 5,
    };
    store.add_play_times(vec![time]).await.unwrap();
    store
        .grant_admin(player, Actor::Operator.into(), NOW)
        .await
        .unwrap();
    let reason = Some("reason-of-the-suspension");
    let operator = || By::from(Actor::Operator);
    store
        .suspend_player(player, reason, operator(), NOW)
        .await
        .unwrap();
    store
        .unsuspend_player(player, operator(), NOW)
        .await
        .unwrap();
    for id in [player, merged.id] {
        let records = record(id, "secret-of-the-players-log");
        store.add_log_records(records).await.unwrap();
    }
    store
        .add_log_records(record(of, "of the owner"))
        .await
        .unwrap();
    Busy {
        player,
        merged,
        session,
        name: name.into(),
        identity,
        address,
    }
}

pub async fn a_player_who_is_deleted_leaves_nothing_behind(place: &dyn Place) {
    let store = place.open().await;
    let busy = busy(&*store).await;
    let needles = busy.needles();
    let found = place.find_raw(&needles).await;
    // A merged guest's name, and a player's earlier one, are in no table any more.
    assert!(found.len() + 2 >= needles.len(), "before: {found:?}");
    let bytes = store.log_bytes("demo").await.unwrap();

    assert_eq!(asked(&*store, busy.player).await, DeletionAsked::At(DUE));
    let listed = due(&*store, DUE).await;
    let ids = [busy.player, busy.merged.id].to_vec();
    assert_eq!(
        listed.iter().map(DueDeletion::ids).collect::<Vec<_>>(),
        [ids]
    );
    let ids = listed[0].ids();
    let mut forgotten = 0;
    loop {
        match store.forget_log_records(ids.clone(), 1).await.unwrap() {
            0 => break,
            number => forgotten += number,
        }
    }
    assert_eq!(forgotten, 2);
    assert!(store.log_bytes("demo").await.unwrap() < bytes);
    assert!(store.delete_player(busy.player, DUE).await.unwrap());
    // How many guests an address made is kept for a day.
    store.sweep_sessions(DUE, 100).await.unwrap();
    assert!(store.overwrite_removed().await.unwrap());
    let found = place.find_raw(&needles).await;
    assert_eq!(found, Vec::<String>::new(), "afterwards");

    for id in [busy.player, busy.merged.id] {
        assert_eq!(store.find_player(id).await.unwrap(), None);
        assert_eq!(store.export_player(id).await.unwrap(), None);
    }
    // Others' records and what happened are still there.
    assert!(store.log_bytes("demo").await.unwrap() > 0);
    let deleted = events_of(&*store, AuditKind::PlayerDeleted).await;
    assert_eq!(deleted.len(), 1);
    assert_eq!((deleted[0].player, &deleted[0].network), (None, &None));
    let deployed = events_of(&*store, AuditKind::Deployed).await;
    assert_eq!(deployed[0].actor, Actor::Member(DELETED_PLAYER));
    assert_eq!(deployed[0].network, None);
    let people = store.list_people("demo").await.unwrap();
    assert_eq!(people.len(), 1, "{people:?}");
    // The name is free, and the identity makes a new account.
    let again = sign_in("busy");
    let outcome = store.complete_sign_in(again).await.unwrap();
    assert!(matches!(outcome, SignInOutcome::Created(_)), "{outcome:?}");
    let new = outcome.player().unwrap().id;
    let renamed = store.rename_player(new, &busy.name, Actor::Own.into(), NOW);
    renamed.await.unwrap();
}

pub async fn everything_that_is_known_of_a_player_is_exported(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let busy = busy(store).await;
    store
        .add_project(project("own", Some(busy.player)))
        .await
        .unwrap();
    assert_eq!(store.export_player(Uuid::max()).await.unwrap(), None);
    let sections = store.export_player(busy.player).await.unwrap().unwrap();
    assert!(sections.iter().all(|section| !section.is_cut));
    let rows = |name: &str| {
        let section = sections.iter().find(|section| section.name == name);
        section.unwrap().rows.clone()
    };
    for (name, number) in [
        ("player", 1),
        ("merged_guests", 1),
        ("identities", 1),
        ("administrator", 1),
        ("games", 1),
        ("play_times", 1),
        ("memberships", 1),
        ("deployments", 1),
        ("own_projects", 1),
        ("log_records", 1),
        ("devices", 0),
    ] {
        assert_eq!(rows(name).len(), number, "{name}: {:?}", rows(name));
    }
    let player = &rows("player")[0];
    assert_eq!(player["id"], busy.player.to_string());
    assert_eq!(player["username"], busy.name);
    assert_eq!(player["is_account"], true);
    let sessions = rows("sessions");
    let known = sessions
        .iter()
        .any(|one| one["browser"] == "Firefox on Linux");
    assert!(known, "{sessions:?}");
    assert_eq!(rows("games")[0]["game"], "demo");
    assert_eq!(rows("deployments")[0]["address"], busy.address);
    assert_eq!(rows("log_records")[0]["game"], "demo");
    let events = rows("events");
    let of = |kind: &str| {
        let event = events.iter().find(|event| event["kind"] == kind);
        event.unwrap_or_else(|| panic!("{kind}: {events:?}"))
    };
    assert_eq!(of("renamed")["address"], busy.address);
    assert_eq!(of("renamed")["by"], "you");
    assert_eq!(of("suspended")["by"], "operator");
    // What others know of themselves is not the player's to read.
    let owner = store.find_project("demo").await.unwrap().unwrap().owner;
    let text = format!("{sections:?}");
    assert!(!text.contains(&owner.unwrap().to_string()), "{text}");
    let guests = store.export_player(busy.merged.id).await.unwrap().unwrap();
    let records = guests.iter().find(|section| section.name == "log_records");
    assert_eq!(records.unwrap().rows.len(), 1);
}
