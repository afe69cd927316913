//! The requirements on changes that nodes follow, on nodes, and on leases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use platform_domain::audit::Actor;
use platform_domain::clock::Millis;
use platform_domain::environment_setting::EnvironmentSetting;
use platform_domain::key::Revocation;
use platform_domain::left_guest::{LeftHash, SignedOut};
use platform_domain::node::{Changes, LEASE_MILLIS, NodeReport, Topic};
use platform_domain::project::Frames;
use platform_domain::takedown::{Change, Changed};
use platform_protocol::names::Environment;
use platform_store::{Store, StoreError};
use uuid::Uuid;

use super::{Handles, NOW, Place, by, deployment, entropy, guest, key, project, sign_in};

/// The changes after a version, which the next ones are after.
async fn next(store: &dyn Store, seen: &mut i64) -> Vec<Topic> {
    let Changes { newest, topics } = store.list_changes(*seen).await.unwrap();
    assert_eq!(newest, store.newest_change().await.unwrap());
    assert_eq!(newest > *seen, !topics.is_empty());
    *seen = newest;
    topics
}

fn game() -> Vec<Topic> {
    vec![Topic::Project("game".into())]
}

/// An account that owns the project `game`, which is deployed.
async fn owner(store: &dyn Store) -> Uuid {
    let owner = guest(&["otter"]);
    store.add_guest(owner.clone()).await.unwrap();
    store.complete_sign_in(by(&owner, "ann")).await.unwrap();
    let game = project("game", Some(owner.id));
    let added = store.add_project_within(game, 9, Actor::Own.into());
    added.await.unwrap();
    owner.id
}

pub async fn every_change_that_nodes_keep_in_memory_raises_a_version(place: &dyn Place) {
    let store = place.open().await;
    let mut seen = store.newest_change().await.unwrap();
    assert_eq!(next(&*store, &mut seen).await, []);
    let owner = owner(&*store).await;
    assert_eq!(next(&*store, &mut seen).await, game());

    let first = deployment("game", Environment::Prod, &["index.html"]);
    let second = deployment("game", Environment::Prod, &["index.html", "a.js"]);
    for new in [&first, &second] {
        let added = store.add_deployment(new.clone(), Actor::Own.into());
        added.await.unwrap();
        assert_eq!(next(&*store, &mut seen).await, game());
    }
    let (of, own) = (("game", Environment::Prod), || Actor::Own.into());
    let back = store.set_current_deployment(of.0, of.1, first.id, own(), NOW);
    assert!(back.await.unwrap());
    assert_eq!(next(&*store, &mut seen).await, game());
    for setting in [
        EnvironmentSetting::Isolated(true),
        EnvironmentSetting::Frames(Frames::Platform),
        EnvironmentSetting::Traced(true),
    ] {
        let set = store.set_environment(of.0, of.1, setting, own(), NOW);
        assert!(set.await.unwrap());
        assert_eq!(next(&*store, &mut seen).await, game());
    }
    for change in [Change::Disable { reason: None }, Change::Enable] {
        let changed = store.change_standing("game", change, own(), NOW);
        assert_eq!(changed.await.unwrap(), Changed::Done);
        assert_eq!(next(&*store, &mut seen).await, game());
    }

    let suspension = vec![Topic::Suspension(owner)];
    let suspended = store.suspend_player(owner, Some("why"), Actor::Operator.into(), NOW);
    assert!(suspended.await.unwrap());
    assert_eq!(next(&*store, &mut seen).await, suspension);
    let lifted = store.unsuspend_player(owner, Actor::Operator.into(), NOW);
    assert!(lifted.await.unwrap());
    assert_eq!(next(&*store, &mut seen).await, suspension);

    let ended = store.end_other_sessions(owner, None, Actor::Operator.into(), NOW);
    assert!(ended.await.unwrap() > 0);
    assert_eq!(next(&*store, &mut seen).await, [Topic::Sessions]);
    let (egret, heron) = (guest(&["egret"]), guest(&["heron"]));
    for new in [&egret, &heron] {
        store.add_guest(new.clone()).await.unwrap();
    }
    let ended = store.end_session(&egret.session, own(), NOW);
    ended.await.unwrap();
    assert_eq!(next(&*store, &mut seen).await, [Topic::Sessions]);
    let ended = store.sign_out(&heron.session, &LeftHash([7; 32]), own(), NOW);
    assert_eq!(ended.await.unwrap(), SignedOut::Guest);
    assert_eq!(next(&*store, &mut seen).await, [Topic::Sessions]);
    // A guest is merged into an account.
    let merged = guest(&["ibis"]);
    store.add_guest(merged.clone()).await.unwrap();
    store.complete_sign_in(by(&merged, "ann")).await.unwrap();
    assert_eq!(next(&*store, &mut seen).await, [Topic::Sessions]);

    assert!(store.add_key(key("a"), None, own()).await.unwrap());
    assert_eq!(next(&*store, &mut seen).await, [Topic::Keys]);
    let (kid, after) = (key("a").kid, key("a").kid);
    let revoked = store.revoke_key(&kid, Some(key("b")), Some(&after), NOW, own());
    assert_eq!(revoked.await.unwrap(), Revocation::Done);
    assert_eq!(next(&*store, &mut seen).await, [Topic::Keys]);

    // The platform deploys its own demo, which is no event.
    store.add_project(project("demo", None)).await.unwrap();
    let demo = deployment("demo", Environment::Dev, &["index.html"]);
    store.add_deployment(demo, own()).await.unwrap();
    let changed = next(&*store, &mut seen).await;
    assert_eq!(changed, [Topic::Project("demo".into())]);
}

pub async fn what_changes_nothing_for_nodes_raises_no_version(place: &dyn Place) {
    let store = place.open().await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    store.complete_sign_in(by(&new, "ann")).await.unwrap();
    store.complete_sign_in(sign_in("ann")).await.unwrap();
    let renamed = store.rename_player(new.id, "robin", Actor::Own.into(), NOW);
    renamed.await.unwrap();
    let granted = store.grant_admin(new.id, Actor::Operator.into(), NOW);
    granted.await.unwrap();
    assert_eq!(store.list_changes(0).await.unwrap(), Changes::default());
}

pub async fn a_change_that_failed_raises_no_version(place: &dyn Place) {
    let store = place.open().await;
    let unknown = deployment("game", Environment::Prod, &["index.html"]);
    let added = store.add_deployment(unknown, Actor::Own.into()).await;
    assert!(
        matches!(added, Err(StoreError::Missing { .. })),
        "{added:?}"
    );
    let suspended = store.suspend_player(Uuid::nil(), None, Actor::Operator.into(), NOW);
    assert!(!suspended.await.unwrap());
    assert!(
        !store
            .add_key(key("a"), Some("b"), Actor::Own.into())
            .await
            .unwrap()
    );
    assert_eq!(store.list_changes(0).await.unwrap(), Changes::default());
}

/// One follower reads on after what it has seen, while others write. Everything that is written has
/// to come, once it is committed: a version that shows later than a larger one would be missed.
pub async fn who_follows_changes_while_others_write_misses_none(place: &dyn Place) {
    const GAMES: usize = 40;
    let handles = Handles::open(place).await;
    let store = handles.next();
    for number in 0..GAMES {
        let game = project(&format!("game-{number}"), None);
        store.add_project(game).await.unwrap();
    }
    let mut seen = store.newest_change().await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..GAMES)
        .map(|number| {
            let store = handles.next();
            tokio::spawn(async move {
                let slug = format!("game-{number}");
                let new = deployment(&slug, Environment::Prod, &["index.html"]);
                store.add_deployment(new, Actor::Own.into()).await.unwrap();
                store.newest_change().await.unwrap()
            })
        })
        .collect();
    let follower = {
        let (store, done) = (handles.next(), Arc::clone(&done));
        tokio::spawn(async move {
            let mut followed = BTreeSet::new();
            loop {
                let last = done.load(Ordering::SeqCst);
                followed.extend(next_of(&*store, &mut seen).await);
                if last {
                    return followed;
                }
                tokio::task::yield_now().await;
            }
        })
    };
    let mut newest = 0;
    for writer in writers {
        newest = newest.max(writer.await.unwrap());
    }
    done.store(true, Ordering::SeqCst);
    let followed = follower.await.unwrap();
    assert_eq!(followed.len(), GAMES);
    assert_eq!(store.newest_change().await.unwrap(), newest);
}

/// As [`next`], while others write.
async fn next_of(store: &dyn Store, seen: &mut i64) -> Vec<Topic> {
    let changes = store.list_changes(*seen).await.unwrap();
    *seen = changes.newest;
    changes.topics
}

fn report(id: Uuid) -> NodeReport {
    NodeReport {
        id,
        address: "one:8787".into(),
        binary: "1.2.3".into(),
        settings: r#"{"token_seconds":"900"}"#.into(),
        applied: 0,
        clock_offset: None,
        degraded: Vec::new(),
    }
}

pub async fn a_node_is_listed_with_what_it_reported_last(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.list_nodes().await.unwrap(), []);
    let (one, other) = (entropy().uuid_v7(NOW), entropy().uuid_v7(NOW));
    let first = store.report_node(&report(one)).await.unwrap();
    store.report_node(&report(other)).await.unwrap();
    let later = NodeReport {
        applied: 7,
        clock_offset: Some(-1_200),
        degraded: vec!["clock".into(), "redis".into()],
        ..report(one)
    };
    assert!(
        store
            .add_key(key("a"), None, Actor::Own.into())
            .await
            .unwrap()
    );
    let second = store.report_node(&later).await.unwrap();
    assert_eq!((first.newest, second.newest), (0, 1));
    assert!(second.at >= first.at);
    let nodes = store.list_nodes().await.unwrap();
    let reports: Vec<_> = nodes.iter().map(|node| node.report.clone()).collect();
    // Both may have started in one millisecond.
    assert!(reports.contains(&later) && reports.contains(&report(other)));
    for node in &nodes {
        assert!(node.is_live(), "{node:?}");
        assert!((first.at..=second.at).contains(&node.started_at));
    }
}

pub async fn a_node_that_stops_leaves_nothing_behind(place: &dyn Place) {
    let store = place.open().await;
    let (one, other) = (entropy().uuid_v7(NOW), entropy().uuid_v7(NOW));
    for id in [one, other] {
        store.report_node(&report(id)).await.unwrap();
    }
    for (name, holder) in [("a", one), ("b", other), ("c", one)] {
        assert!(store.take_lease(name, holder, LEASE_MILLIS).await.unwrap());
    }
    store.remove_node(one).await.unwrap();
    store.remove_node(one).await.unwrap();
    let nodes = store.list_nodes().await.unwrap();
    assert_eq!(
        nodes.iter().map(|node| node.report.id).collect::<Vec<_>>(),
        [other]
    );
    let leases = store.list_leases().await.unwrap();
    assert_eq!(leases.len(), 1);
    assert_eq!((leases[0].name.as_str(), leases[0].holder), ("b", other));
    assert!(store.take_lease("a", other, LEASE_MILLIS).await.unwrap());
}

/// A lease that has ended already.
const ENDED: Millis = -1;

pub async fn a_lease_has_one_holder_until_it_ends(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let (store, there) = (handles.next(), handles.next());
    let (one, other) = (entropy().uuid_v7(NOW), entropy().uuid_v7(NOW));
    for _ in 0..2 {
        assert!(store.take_lease("sweep", one, LEASE_MILLIS).await.unwrap());
        assert!(
            !there
                .take_lease("sweep", other, LEASE_MILLIS)
                .await
                .unwrap()
        );
    }
    assert!(there.take_lease("rank", other, LEASE_MILLIS).await.unwrap());
    let leases = there.list_leases().await.unwrap();
    assert_eq!(leases.len(), 2);
    let sweep = &leases[1];
    assert_eq!((sweep.name.as_str(), sweep.holder), ("sweep", one));
    assert!((1..=LEASE_MILLIS).contains(&sweep.left), "{sweep:?}");
    // Its holder says that it ends now, and another one takes it.
    assert_eq!(store.renew_leases(one, ENDED).await.unwrap(), ["sweep"]);
    assert!(
        there
            .take_lease("sweep", other, LEASE_MILLIS)
            .await
            .unwrap()
    );
    assert!(!store.take_lease("sweep", one, LEASE_MILLIS).await.unwrap());
    // Who comes back too late is told what is left.
    assert!(
        store
            .renew_leases(one, LEASE_MILLIS)
            .await
            .unwrap()
            .is_empty()
    );
    let renewed = there.renew_leases(other, LEASE_MILLIS).await.unwrap();
    assert_eq!(renewed, ["rank", "sweep"]);
}

pub async fn of_many_who_want_a_lease_at_once_one_gets_it(place: &dyn Place) {
    let handles = Handles::open(place).await;
    for round in 0..20 {
        let name = format!("work-{}", round % 2);
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (store, name) = (handles.next(), name.clone());
                tokio::spawn(async move {
                    let holder = entropy().uuid_v7(NOW);
                    let taken = store.take_lease(&name, holder, LEASE_MILLIS).await;
                    taken.unwrap().then_some(holder)
                })
            })
            .collect();
        let mut holders = Vec::new();
        for task in tasks {
            holders.extend(task.await.unwrap());
        }
        assert_eq!(holders.len(), 1);
        let store = handles.next();
        let ended = store.renew_leases(holders[0], ENDED).await.unwrap();
        assert_eq!(ended, [name]);
    }
}
