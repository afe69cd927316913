//! What any store has to do with projects: their owners, environments,
//! deployments and test players.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By, GIVEN_MILLIS};
use platform_domain::clock::Millis;
use platform_domain::project::{
    BackendSettings, Deployment, EnvironmentRecord, FileEntry, Frames, Made,
};
use platform_protocol::names::Environment;
use platform_protocol::names::Environment::{Dev, Prod};
use platform_store::{Store, StoreError};
use uuid::Uuid;

use super::{NOW, Place, entropy, guest, project};

/// Makes a test of every function here, as [`suite!`](super::suite) does.
#[doc(hidden)]
#[macro_export]
macro_rules! project_suite {
    ($place:expr; $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let place = $place;
                $crate::projects::$name(&place).await;
            }
        )*
    };
    ($place:expr) => {
        $crate::project_suite!($place;
            an_owner_has_their_own_projects_by_slug
            of_many_who_want_a_slug_at_once_one_gets_it
            every_project_has_two_environments
            what_is_set_for_an_environment_is_its_alone
            settings_of_an_unknown_project_are_refused
            a_deployment_comes_back_as_it_was
            deployments_are_listed_newest_first_with_what_they_add_up_to
            an_earlier_deployment_of_the_same_environment_can_be_shown_again
            a_kept_file_is_one_whose_bytes_never_changed
            a_file_of_a_deployment_is_the_one_that_it_had
            the_current_deployment_and_the_newest_are_not_swept
            files_that_no_deployment_has_are_found
            test_players_are_the_same_every_time
            of_many_who_ask_for_a_test_player_at_once_all_get_the_same
            test_players_want_a_project_and_a_deployment
            what_is_set_survives_a_drop
            what_is_set_again_unchanged_is_not_written
            a_test_token_that_is_given_again_is_told_once_an_hour
        );
    };
}

/// A deployment of files by path, each with the letter of its content.
fn deployment(
    slug: &str,
    environment: Environment,
    created_at: Millis,
    files: &[(&str, char)],
) -> Deployment {
    let entry = |(index, (path, letter)): (usize, &(&str, char))| {
        let file = FileEntry {
            sha256: name(*letter),
            size: 10 + index as u64,
        };
        ((*path).to_owned(), file)
    };
    Deployment {
        id: entropy().uuid_v4(),
        slug: slug.into(),
        environment,
        files: files
            .iter()
            .enumerate()
            .map(entry)
            .collect::<BTreeMap<_, _>>(),
        created_at,
        made: Made {
            by: Some(entropy().uuid_v4()),
            client: Some("platform-cli/0.1.0".into()),
            network: Some("192.0.2.1".into()),
            message: Some("Fix the rings".into()),
            revision: Some("3f2a9c1b".into()),
        },
    }
}

/// The name of a file whose content has this letter.
fn name(letter: char) -> String {
    letter.to_string().repeat(64)
}

async fn with_project(place: &dyn Place, slug: &str) -> Arc<dyn Store> {
    let store = place.open().await;
    store.add_project(project(slug, None)).await.unwrap();
    store
}

async fn add(store: &dyn Store, deployment: &Deployment) {
    store
        .add_deployment(deployment.clone(), Actor::Own.into())
        .await
        .unwrap();
}

async fn ids(store: &dyn Store, environment: Environment) -> Vec<Uuid> {
    let kept = store.list_deployments("demo", environment).await.unwrap();
    kept.iter().map(|deployment| deployment.id).collect()
}

#[track_caller]
fn assert_missing<T: std::fmt::Debug>(result: Result<T, StoreError>, wanted: &str) {
    match result {
        Err(StoreError::Missing { table }) => assert_eq!(table, wanted),
        other => panic!("a missing row in {wanted} was expected, not {other:?}"),
    }
}

pub async fn an_owner_has_their_own_projects_by_slug(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    let other = store.add_guest(guest(&["heron"])).await.unwrap().id;
    for (slug, owner) in [
        ("zebra", Some(owner)),
        ("ape", Some(owner)),
        ("bear", Some(other)),
    ] {
        store.add_project(project(slug, owner)).await.unwrap();
    }
    store.add_project(project("demo", None)).await.unwrap();
    let of = async |player| {
        let projects = store.list_projects_of(player).await.unwrap();
        projects.into_iter().map(|one| one.slug).collect::<Vec<_>>()
    };
    assert_eq!(of(owner).await, ["ape", "zebra"]);
    assert_eq!(of(other).await, ["bear"]);
    assert_eq!(of(Uuid::nil()).await, [""; 0]);
}

pub async fn of_many_who_want_a_slug_at_once_one_gets_it(place: &dyn Place) {
    let store = place.open().await;
    let mut wanting = Vec::new();
    for number in 0..20 {
        let name = format!("otter-{number}");
        let owner = store.add_guest(guest(&[&name])).await.unwrap().id;
        let store = Arc::clone(&store);
        wanting.push(tokio::spawn(async move {
            let added = store.add_project(project("demo", Some(owner))).await;
            added.map(|()| owner)
        }));
    }
    let mut owners = Vec::new();
    for wanting in wanting {
        match wanting.await.unwrap() {
            Ok(owner) => owners.push(owner),
            Err(error) => super::assert_conflict::<()>(Err(error), ("projects", "slug")),
        }
    }
    assert_eq!(owners.len(), 1);
    let found = store.find_project("demo").await.unwrap().unwrap();
    assert_eq!(found.owner, Some(owners[0]));
}

fn nothing_set(slug: &str, environment: Environment) -> EnvironmentRecord {
    EnvironmentRecord {
        slug: slug.into(),
        environment,
        deployment: None,
        backend: None,
        isolated: false,
        frames: Frames::Any,
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
    let shown = deployment("demo", Dev, NOW, &[("index.html", 'a')]);
    add(&*store, &shown).await;
    let expected = EnvironmentRecord {
        deployment: Some(shown.id),
        backend: Some(backend),
        isolated: true,
        frames,
        ..nothing_set("demo", Dev)
    };
    let dev = async || store.find_environment("demo", Dev).await.unwrap().unwrap();
    assert_eq!(dev().await, expected);
    for (slug, environment) in [("demo", Prod), ("other", Dev), ("other", Prod)] {
        let found = store.find_environment(slug, environment).await.unwrap();
        assert_eq!(found, Some(nothing_set(slug, environment)));
    }
    // Each is taken back without the other.
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

pub async fn a_deployment_comes_back_as_it_was(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let odd = [
        ("index.html", 'a'),
        ("a b/é\u{1f3ae}.png", 'b'),
        ("x'\"%_", 'a'),
    ];
    let added = deployment("demo", Prod, -5, &odd);
    add(&*store, &added).await;
    assert_eq!(store.find_deployment(added.id).await.unwrap(), Some(added));
    assert_eq!(store.find_deployment(Uuid::nil()).await.unwrap(), None);
}

pub async fn deployments_are_listed_newest_first_with_what_they_add_up_to(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    assert!(ids(&*store, Prod).await.is_empty());
    let newer = deployment("demo", Prod, NOW + 5, &[("index.html", 'a'), ("b", 'b')]);
    let older = deployment("demo", Prod, NOW, &[("index.html", 'c')]);
    let elsewhere = deployment("demo", Dev, NOW + 9, &[("index.html", 'd')]);
    // The time counts, whatever the order of adding.
    for added in [&newer, &older, &elsewhere] {
        add(&*store, added).await;
    }
    let listed = store.list_deployments("demo", Prod).await.unwrap();
    let said: Vec<_> = listed
        .iter()
        .map(|one| (one.id, one.created_at, one.files, one.bytes, one.current))
        .collect();
    assert_eq!(
        said,
        [
            (newer.id, NOW + 5, 2, 21, false),
            (older.id, NOW, 1, 10, true)
        ]
    );
    assert_eq!(ids(&*store, Dev).await, [elsewhere.id]);
    let unknown = store.list_deployments("other", Prod).await.unwrap();
    assert_eq!(unknown, []);
}

pub async fn an_earlier_deployment_of_the_same_environment_can_be_shown_again(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    store.add_project(project("other", None)).await.unwrap();
    let first = deployment("demo", Prod, NOW, &[("index.html", 'a')]);
    let second = deployment("demo", Prod, NOW + 1, &[("index.html", 'b')]);
    let dev = deployment("demo", Dev, NOW + 2, &[("index.html", 'c')]);
    let other = deployment("other", Prod, NOW + 3, &[("index.html", 'd')]);
    for added in [&first, &second, &dev, &other] {
        add(&*store, added).await;
    }
    let current = async || store.find_current_deployment("demo", Prod).await.unwrap();
    for wrong in [dev.id, other.id, Uuid::nil()] {
        let set = store.set_current_deployment("demo", Prod, wrong, Actor::Own.into(), NOW);
        assert_missing(set.await, "deployments");
        assert_eq!(current().await.as_ref(), Some(&second));
    }
    for shown in [&first, &first, &second] {
        let set = store.set_current_deployment("demo", Prod, shown.id, Actor::Own.into(), NOW);
        set.await.unwrap();
        assert_eq!(current().await.as_ref(), Some(shown));
    }
    let dev_now = store.find_current_deployment("demo", Dev).await.unwrap();
    assert_eq!(dev_now, Some(dev));
}

pub async fn a_kept_file_is_one_whose_bytes_never_changed(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let files = [("both.js", 'a'), ("old.js", 'b'), ("same.js", 'e')];
    let first = deployment("demo", Prod, NOW, &files);
    let second = deployment("demo", Prod, NOW + 1, &[("both.js", 'c'), ("same.js", 'e')]);
    let dev = deployment("demo", Dev, NOW + 2, &[("dev.js", 'd'), ("same.js", 'f')]);
    for added in [&first, &second, &dev] {
        add(&*store, added).await;
    }
    // What is shown does not matter.
    let set = store.set_current_deployment("demo", Prod, first.id, Actor::Own.into(), NOW);
    set.await.unwrap();
    let kept = async |path| {
        let found = store.find_kept_file("demo", Prod, path).await.unwrap();
        found.map(|file| file.sha256)
    };
    assert_eq!(kept("both.js").await, None);
    assert_eq!(kept("old.js").await, Some(name('b')));
    assert_eq!(kept("same.js").await, Some(name('e')));
    assert_eq!(kept("dev.js").await, None);
    assert_eq!(kept("OLD.js").await, None);
    let elsewhere = store.find_kept_file("other", Prod, "old.js").await.unwrap();
    assert_eq!(elsewhere, None);
    for (slug, environment, changed) in [
        ("demo", Prod, vec!["both.js".to_owned()]),
        ("demo", Dev, Vec::new()),
        ("other", Prod, Vec::new()),
    ] {
        let list = store.list_changed_paths(slug, environment).await.unwrap();
        assert_eq!(list, changed, "{slug} {environment:?}");
    }
}

pub async fn a_file_of_a_deployment_is_the_one_that_it_had(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let first = deployment("demo", Prod, NOW, &[("a.js", 'a')]);
    let second = deployment("demo", Prod, NOW + 1, &[("a.js", 'b'), ("b.js", 'c')]);
    for added in [&first, &second] {
        add(&*store, added).await;
    }
    let found = async |slug, environment, id, path| {
        let found = store.find_file_of(slug, environment, id, path).await;
        found.unwrap().map(|file| file.sha256)
    };
    assert_eq!(found("demo", Prod, first.id, "a.js").await, Some(name('a')));
    assert_eq!(
        found("demo", Prod, second.id, "a.js").await,
        Some(name('b'))
    );
    assert_eq!(found("demo", Prod, first.id, "b.js").await, None);
    // Neither another environment nor another project has it.
    assert_eq!(found("demo", Dev, first.id, "a.js").await, None);
    assert_eq!(found("other", Prod, first.id, "a.js").await, None);
}

pub async fn the_current_deployment_and_the_newest_are_not_swept(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let all: Vec<_> = (0..6)
        .map(|age| deployment("demo", Prod, NOW - age, &[("index.html", 'a')]))
        .collect();
    for added in &all {
        add(&*store, added).await;
    }
    let dev = deployment("demo", Dev, NOW - 100, &[("index.html", 'a')]);
    add(&*store, &dev).await;
    // The oldest was added last, so it is the one that is shown.
    assert_eq!(store.sweep_deployments("demo", Prod, 2).await.unwrap(), 3);
    let expected = [all[0].id, all[1].id, all[5].id];
    assert_eq!(ids(&*store, Prod).await, expected);
    assert_eq!(store.find_deployment(all[2].id).await.unwrap(), None);
    assert_eq!(store.sweep_deployments("demo", Prod, 2).await.unwrap(), 0);
    assert_eq!(store.sweep_deployments("other", Prod, 0).await.unwrap(), 0);
    assert_eq!(ids(&*store, Dev).await, [dev.id]);
    let set = store.set_current_deployment("demo", Prod, all[0].id, Actor::Own.into(), NOW);
    set.await.unwrap();
    assert_eq!(store.sweep_deployments("demo", Prod, 0).await.unwrap(), 2);
    assert_eq!(ids(&*store, Prod).await, [all[0].id]);
}

pub async fn files_that_no_deployment_has_are_found(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let old = deployment("demo", Prod, NOW, &[("1", 'a'), ("2", 'b')]);
    let new = deployment("demo", Prod, NOW + 1, &[("1", 'b'), ("3", 'c')]);
    add(&*store, &old).await;
    add(&*store, &new).await;
    let unreferenced = async |letters: &str| {
        let mut files: Vec<String> = letters.chars().map(name).collect();
        // What is no name of a file is left alone.
        files.extend(["".into(), "zz".repeat(32), "readme.txt".into()]);
        store.list_unreferenced_files(files).await.unwrap()
    };
    assert_eq!(unreferenced("abcde").await, [name('d'), name('e')]);
    store.sweep_deployments("demo", Prod, 1).await.unwrap();
    assert_eq!(unreferenced("abcd").await, [name('a'), name('d')]);
    assert_eq!(unreferenced("").await, [""; 0]);
}

pub async fn test_players_are_the_same_every_time(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    store.add_project(project("other", None)).await.unwrap();
    for slug in ["demo", "other"] {
        add(&*store, &deployment(slug, Dev, NOW, &[("index.html", 'a')])).await;
    }
    let mut known = HashSet::new();
    for slug in ["demo", "other"] {
        for guest in [false, true] {
            for number in 1..=10 {
                let fresh = entropy().uuid_v7(NOW);
                let first =
                    store.ensure_test_player(slug, guest, number, fresh, Actor::Own.into(), NOW);
                assert_eq!(first.await.unwrap(), fresh);
                let other = entropy().uuid_v7(NOW);
                let again =
                    store.ensure_test_player(slug, guest, number, other, Actor::Own.into(), NOW);
                assert_eq!(again.await.unwrap(), fresh);
                assert!(known.insert(fresh));
            }
        }
    }
    // A number that no test player has makes none.
    let eleventh = store.ensure_test_player("demo", false, 11, Uuid::max(), Actor::Own.into(), NOW);
    assert!(eleventh.await.is_err());
}

pub async fn of_many_who_ask_for_a_test_player_at_once_all_get_the_same(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    add(
        &*store,
        &deployment("demo", Prod, NOW, &[("index.html", 'a')]),
    )
    .await;
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let store = Arc::clone(&store);
            let fresh = entropy().uuid_v7(NOW);
            tokio::spawn(async move {
                store
                    .ensure_test_player("demo", true, 7, fresh, Actor::Own.into(), NOW)
                    .await
            })
        })
        .collect();
    let mut ids = HashSet::new();
    for asking in asking {
        ids.insert(asking.await.unwrap().unwrap());
    }
    assert_eq!(ids.len(), 1);
}

pub async fn test_players_want_a_project_and_a_deployment(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let ask = async |slug| {
        store
            .ensure_test_player(slug, false, 1, Uuid::max(), Actor::Own.into(), NOW)
            .await
    };
    assert_missing(ask("other").await, "projects");
    assert_missing(ask("demo").await, "deployments");
    add(
        &*store,
        &deployment("demo", Prod, NOW, &[("index.html", 'a')]),
    )
    .await;
    assert_eq!(ask("demo").await.unwrap(), Uuid::max());
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

/// Kind and detail of the events of a player, newest first.
async fn events(store: &dyn Store, player: Uuid) -> Vec<(AuditKind, Option<String>)> {
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
    // What nothing was ever set for is as it is set here.
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

pub async fn a_test_token_that_is_given_again_is_told_once_an_hour(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    let admin = store.add_guest(guest(&["heron"])).await.unwrap().id;
    for slug in ["demo", "other"] {
        store.add_project(project(slug, Some(owner))).await.unwrap();
        let shown = deployment(slug, Dev, NOW, &[("index.html", 'a')]);
        add(&*store, &shown).await;
    }
    let given = async |slug: &str, is_guest, number, actor: Actor, now| {
        let before = events(&*store, owner).await.len();
        let fresh = entropy().uuid_v4();
        let ensured = store.ensure_test_player(slug, is_guest, number, fresh, actor.into(), now);
        ensured.await.unwrap();
        events(&*store, owner).await.len() - before
    };
    let own = Actor::Own;
    for (slug, is_guest, number, actor) in [
        ("demo", false, 1, own),
        ("demo", false, 2, own),
        ("demo", true, 1, own),
        ("demo", false, 1, Actor::Admin(admin)),
        ("other", false, 1, own),
    ] {
        for told in [1, 0, 0] {
            assert_eq!(given(slug, is_guest, number, actor, NOW).await, told);
        }
    }
    assert_eq!(
        given("demo", false, 1, own, NOW + GIVEN_MILLIS - 1).await,
        0
    );
    assert_eq!(given("demo", false, 1, own, NOW + GIVEN_MILLIS).await, 1);
    // A clock that is set back hides nothing.
    assert_eq!(given("demo", false, 1, own, NOW - 1).await, 1);
}
