//! The requirements on environments and their settings.

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By};
use platform_domain::environment_setting::EnvironmentSetting;
use platform_domain::project::{BackendSettings, EnvironmentRecord, Frames};
use platform_domain::takedown::Change;
use platform_protocol::names::Environment;
use platform_protocol::names::Environment::{Dev, Prod};
use platform_store::{Store, StoreError};
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

/// Every setting as it is before anybody sets it.
fn defaults() -> [EnvironmentSetting; 4] {
    [
        EnvironmentSetting::Backend(None),
        EnvironmentSetting::Isolated(false),
        EnvironmentSetting::Frames(Frames::Any),
        EnvironmentSetting::Traced(false),
    ]
}

/// Sets one setting. Returns whether that is a change.
async fn set_one(
    store: &dyn Store,
    (slug, environment): (&str, Environment),
    setting: EnvironmentSetting,
) -> Result<bool, StoreError> {
    store
        .set_environment(slug, environment, setting, Actor::Own.into(), NOW)
        .await
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
    let frames = Frames::Origins(vec!["https://a.example".into(), "https://b.example".into()]);
    let store = &*store;
    for setting in [
        EnvironmentSetting::Backend(Some(backend.clone())),
        EnvironmentSetting::Isolated(true),
        EnvironmentSetting::Frames(frames.clone()),
        EnvironmentSetting::Traced(true),
    ] {
        let changed = set_one(store, ("demo", Dev), setting).await;
        assert!(changed.unwrap());
    }
    let shown = deployment("demo", Dev, NOW, &[("index.html", 'a')]);
    add(store, &shown).await;
    let mut expected = EnvironmentRecord {
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
    // Each can be removed without the others.
    let unset = async |setting| set_one(store, ("demo", Dev), setting).await.unwrap();
    unset(EnvironmentSetting::Backend(None)).await;
    expected.backend = None;
    assert_eq!(dev().await, expected);
    unset(EnvironmentSetting::Isolated(false)).await;
    expected.isolated = false;
    assert_eq!(dev().await, expected);
    unset(EnvironmentSetting::Traced(false)).await;
    expected.traced = false;
    assert_eq!(dev().await, expected);
    for frames in [Frames::Platform, Frames::Any] {
        unset(EnvironmentSetting::Frames(frames.clone())).await;
        expected.frames = frames;
        assert_eq!(dev().await, expected);
    }
}

pub async fn settings_of_an_unknown_project_are_refused(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    for setting in defaults() {
        let set = set_one(&*store, ("other", Dev), setting).await;
        assert_missing(set, "projects");
    }
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
    let isolated = EnvironmentSetting::Isolated(true);
    set_one(&*store, ("demo", Dev), isolated).await.unwrap();
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
    for setting in defaults() {
        assert!(!set_one(&*store, ("demo", Prod), setting).await.unwrap());
    }
    let set = store.set_current_deployment("demo", Prod, second.id, by(), NOW);
    assert!(!set.await.unwrap());
    assert_eq!(events(&*store, owner).await.len(), before);
    let origins = Frames::Origins(vec!["https://a.example".into()]);
    let mut written = 0;
    for setting in [
        EnvironmentSetting::Backend(Some(backend)),
        EnvironmentSetting::Backend(Some(elsewhere)),
        EnvironmentSetting::Backend(None),
        EnvironmentSetting::Isolated(true),
        EnvironmentSetting::Isolated(false),
        EnvironmentSetting::Frames(Frames::Platform),
        EnvironmentSetting::Frames(origins),
        EnvironmentSetting::Frames(Frames::Any),
        EnvironmentSetting::Traced(true),
        EnvironmentSetting::Traced(false),
    ] {
        for changed in [true, false] {
            let set = set_one(&*store, ("demo", Prod), setting.clone()).await;
            assert_eq!(set.unwrap(), changed, "{setting:?}");
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
