//! The requirements on environments and their settings.

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By};
use platform_domain::project::{BackendSettings, EnvironmentRecord, Frames};
use platform_domain::takedown::Change;
use platform_protocol::names::Environment;
use platform_protocol::names::Environment::{Dev, Prod};
use platform_store::Store;
use uuid::Uuid;

use super::deployments::{add, assert_missing, deployment, with_project};
use super::{NOW, Place, guest, project};

fn nothing_set(slug: &str, environment: Environment) -> EnvironmentRecord {
    EnvironmentRecord {
        slug: slug.into(),
        environment,
        deployment: None,
        backend: None,
        isolated: false,
        frames: Frames::Any,
        traced: false,
    }
}

pub async fn every_project_has_two_environments(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.list_environments().await.unwrap(), []);
    assert_eq!(store.find_environment("demo", Dev).await.unwrap(), None);
    for slug in ["demo", "zebra"] {
        store.add_project(project(slug, None)).await.unwrap();
    }
    let listed = store.list_environments().await.unwrap();
    assert_eq!(listed.len(), 4);
    for slug in ["demo", "zebra"] {
        for environment in Environment::ALL {
            let expected = nothing_set(slug, environment);
            let found = store.find_environment(slug, environment).await.unwrap();
            assert_eq!(found.as_ref(), Some(&expected));
            assert!(listed.contains(&expected), "{expected:?}");
        }
    }
}

pub async fn what_is_hosted_is_read_whole_or_of_one_project(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.list_hosted(None).await.unwrap(), []);
    for slug in ["demo", "zebra"] {
        store.add_project(project(slug, None)).await.unwrap();
    }
    let shown = deployment("demo", Dev, NOW, &[("index.html", 'a')]);
    add(&*store, &shown).await;
    let disable = Change::Disable { reason: None };
    let changed = store.change_standing("demo", disable, Actor::Operator.into(), NOW);
    changed.await.unwrap();
    let all = store.list_hosted(None).await.unwrap();
    assert_eq!(all.len(), 4);
    for slug in ["demo", "zebra"] {
        let of_one = store.list_hosted(Some(slug)).await.unwrap();
        assert_eq!(of_one.len(), 2);
        for one in of_one {
            assert_eq!(one.record.slug, slug);
            assert_eq!(one.standing.is_down(), slug == "demo");
            let is_shown = (slug, one.record.environment) == ("demo", Dev);
            assert_eq!(one.record.deployment, is_shown.then_some(shown.id));
            assert!(all.contains(&one), "{one:?}");
        }
    }
    assert_eq!(store.list_hosted(Some("none")).await.unwrap(), []);
}

pub async fn what_is_set_for_an_environment_is_its_alone(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    store.add_project(project("other", None)).await.unwrap();
    let backend = BackendSettings {
        url: "http://127.0.0.1:3000".into(),
        paths: vec!["/api/".into(), "/\"odd\"/".into()],
    };
    let set = store.set_backend("demo", Dev, Some(backend.clone()), Actor::Own.into(), NOW);
    set.await.unwrap();
    store
        .set_isolated("demo", Dev, true, Actor::Own.into(), NOW)
        .await
        .unwrap();
    let frames = Frames::Origins(vec!["https://a.example".into(), "https://b.example".into()]);
    let set = store.set_frames("demo", Dev, frames.clone(), Actor::Own.into(), NOW);
    set.await.unwrap();
    for changed in [true, false] {
        let set = store.set_traced("demo", Dev, true, Actor::Own.into(), NOW);
        assert_eq!(set.await.unwrap(), changed);
    }
    let shown = deployment("demo", Dev, NOW, &[("index.html", 'a')]);
    add(&*store, &shown).await;
    let expected = EnvironmentRecord {
        deployment: Some(shown.id),
        backend: Some(backend),
        isolated: true,
        frames,
        traced: true,
        ..nothing_set("demo", Dev)
    };
    let dev = async || store.find_environment("demo", Dev).await.unwrap().unwrap();
    assert_eq!(dev().await, expected);
    for (slug, environment) in [("demo", Prod), ("other", Dev), ("other", Prod)] {
        let found = store.find_environment(slug, environment).await.unwrap();
        assert_eq!(found, Some(nothing_set(slug, environment)));
    }
    // Each can be removed without the other.
    store
        .set_backend("demo", Dev, None, Actor::Own.into(), NOW)
        .await
        .unwrap();
    let expected = EnvironmentRecord {
        backend: None,
        ..expected
    };
    assert_eq!(dev().await, expected);
    store
        .set_isolated("demo", Dev, false, Actor::Own.into(), NOW)
        .await
        .unwrap();
    assert!(!dev().await.isolated);
    let set = store.set_traced("demo", Dev, false, Actor::Own.into(), NOW);
    set.await.unwrap();
    assert!(!dev().await.traced);
    for frames in [Frames::Platform, Frames::Any] {
        let set = store.set_frames("demo", Dev, frames.clone(), Actor::Own.into(), NOW);
        set.await.unwrap();
        assert_eq!(dev().await.frames, frames);
    }
}

pub async fn settings_of_an_unknown_project_are_refused(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    assert_missing(
        store
            .set_backend("other", Dev, None, Actor::Own.into(), NOW)
            .await,
        "projects",
    );
    assert_missing(
        store
            .set_isolated("other", Dev, true, Actor::Own.into(), NOW)
            .await,
        "projects",
    );
    let set = store.set_frames("other", Dev, Frames::Any, Actor::Own.into(), NOW);
    assert_missing(set.await, "projects");
    let set = store.set_current_deployment("other", Dev, Uuid::nil(), Actor::Own.into(), NOW);
    assert_missing(set.await, "projects");
    assert_eq!(store.list_environments().await.unwrap().len(), 2);
}

pub async fn what_is_set_survives_a_drop(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let first = deployment("demo", Dev, NOW, &[("index.html", 'a')]);
    let second = deployment("demo", Dev, NOW + 1, &[("index.html", 'b')]);
    add(&*store, &first).await;
    add(&*store, &second).await;
    let set = store.set_current_deployment("demo", Dev, first.id, Actor::Own.into(), NOW);
    set.await.unwrap();
    store
        .set_isolated("demo", Dev, true, Actor::Own.into(), NOW)
        .await
        .unwrap();
    let player = store.ensure_test_player("demo", false, 1, Uuid::max(), Actor::Own.into(), NOW);
    player.await.unwrap();
    let before = store.list_environments().await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(store.list_environments().await.unwrap(), before);
    let shown = store.find_current_deployment("demo", Dev).await.unwrap();
    assert_eq!(shown, Some(first));
    let again = store.ensure_test_player("demo", false, 1, Uuid::nil(), Actor::Own.into(), NOW);
    assert_eq!(again.await.unwrap(), Uuid::max());
}

/// Kind and detail of a player's events, newest first.
pub(crate) async fn events(store: &dyn Store, player: Uuid) -> Vec<(AuditKind, Option<String>)> {
    let events = store.list_audit_events(AuditQuery::of(player, 100)).await;
    let events = events.unwrap().into_iter();
    events.map(|event| (event.kind, event.detail)).collect()
}

pub async fn what_is_set_again_unchanged_is_not_written(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    store
        .add_project(project("demo", Some(owner)))
        .await
        .unwrap();
    let by = || By::from(Actor::Own);
    let (first, second) = (
        deployment("demo", Prod, NOW, &[("index.html", 'a')]),
        deployment("demo", Prod, NOW + 1, &[("index.html", 'b')]),
    );
    for added in [&first, &second] {
        add(&*store, added).await;
    }
    let backend = BackendSettings {
        url: "http://127.0.0.1:3000".into(),
        paths: vec!["/api/".into()],
    };
    let elsewhere = BackendSettings {
        paths: vec!["/api/".into(), "/ws/".into()],
        ..backend.clone()
    };
    let before = events(&*store, owner).await.len();
    // These are the default settings.
    assert!(
        !store
            .set_backend("demo", Prod, None, by(), NOW)
            .await
            .unwrap()
    );
    assert!(
        !store
            .set_isolated("demo", Prod, false, by(), NOW)
            .await
            .unwrap()
    );
    let set = store.set_frames("demo", Prod, Frames::Any, by(), NOW);
    assert!(!set.await.unwrap());
    let set = store.set_current_deployment("demo", Prod, second.id, by(), NOW);
    assert!(!set.await.unwrap());
    assert_eq!(events(&*store, owner).await.len(), before);
    let mut written = 0;
    for backend in [Some(backend), Some(elsewhere), None] {
        for changed in [true, false] {
            let set = store.set_backend("demo", Prod, backend.clone(), by(), NOW);
            assert_eq!(set.await.unwrap(), changed, "{backend:?}");
        }
        written += 1;
    }
    for isolated in [true, false] {
        for changed in [true, false] {
            let set = store.set_isolated("demo", Prod, isolated, by(), NOW);
            assert_eq!(set.await.unwrap(), changed, "{isolated}");
        }
        written += 1;
    }
    let origins = Frames::Origins(vec!["https://a.example".into()]);
    for frames in [Frames::Platform, origins, Frames::Any] {
        for changed in [true, false] {
            let set = store.set_frames("demo", Prod, frames.clone(), by(), NOW);
            assert_eq!(set.await.unwrap(), changed, "{frames:?}");
        }
        written += 1;
    }
    for shown in [first.id, second.id] {
        for changed in [true, false] {
            let set = store.set_current_deployment("demo", Prod, shown, by(), NOW);
            assert_eq!(set.await.unwrap(), changed);
        }
        written += 1;
    }
    assert_eq!(events(&*store, owner).await.len(), before + written);
}
