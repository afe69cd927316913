//! The requirements on deployments and their files.

use std::collections::BTreeMap;
use std::sync::Arc;

use platform_domain::audit::Actor;
use platform_domain::clock::Millis;
use platform_domain::listing::PageWords;
use platform_domain::project::{Deployment, DeploymentWarning, FileEntry, Inspection, Made};
use platform_protocol::names::Environment;
use platform_protocol::names::Environment::{Dev, Prod};
use platform_store::{Store, StoreError};
use uuid::Uuid;

use super::{NOW, Place, entropy, project};

/// A deployment with files by path, each with the letter of its content.
pub(crate) fn deployment(
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
            deploy_token: Some("GitHub Actions".into()),
        },
        inspection: Some(Inspection {
            title: Some("A \"game\"".into()),
            pictures: vec!["/cover.png?v=2".into()],
            measured: BTreeMap::from([("cover.png".into(), true)]),
            words: PageWords {
                description: Some("Hop.".into()),
                author: None,
                tags: vec!["arcade".into()],
            },
            warnings: vec![DeploymentWarning {
                code: "runtime-not-loaded".into(),
                message: "Put it there.".into(),
            }],
        }),
    }
}

/// The name of a file whose content is this letter.
fn name(letter: char) -> String {
    letter.to_string().repeat(64)
}

pub(crate) async fn with_project(place: &dyn Place, slug: &str) -> Arc<dyn Store> {
    let store = place.open().await;
    store.add_project(project(slug, None)).await.unwrap();
    store
}

pub(crate) async fn add(store: &dyn Store, deployment: &Deployment) {
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
pub(crate) fn assert_missing<T: std::fmt::Debug>(result: Result<T, StoreError>, wanted: &str) {
    match result {
        Err(StoreError::Missing { table }) => assert_eq!(table, wanted),
        other => panic!("a missing row in {wanted} was expected, not {other:?}"),
    }
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

pub async fn an_inspection_is_set_once(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    let inspected = deployment("demo", Prod, NOW, &[("index.html", 'a')]);
    let older = Deployment {
        inspection: None,
        ..deployment("demo", Dev, NOW, &[("index.html", 'a')])
    };
    let found = |title: &str| Inspection {
        title: Some(title.to_owned()),
        ..Inspection::default()
    };
    for one in [&inspected, &older] {
        add(&*store, one).await;
    }
    for title in ["one", "other"] {
        // A deployment that was removed in the meantime is no error.
        let ids = [inspected.id, older.id, Uuid::nil()];
        let found = ids.map(|id| (id, found(title))).to_vec();
        store.set_inspections(found).await.unwrap();
    }
    let kept = store.find_deployment(older.id).await.unwrap().unwrap();
    assert_eq!(kept.inspection, Some(found("one")));
    let current = store.find_current_deployment("demo", Dev).await.unwrap();
    assert_eq!(current, Some(kept));
    let kept = store.find_deployment(inspected.id).await.unwrap();
    assert_eq!(kept, Some(inspected), "an inspection that is set stays");
}

pub async fn deployments_are_listed_newest_first_with_what_they_add_up_to(place: &dyn Place) {
    let store = with_project(place, "demo").await;
    assert!(ids(&*store, Prod).await.is_empty());
    let newer = deployment("demo", Prod, NOW + 5, &[("index.html", 'a'), ("b", 'b')]);
    let older = deployment("demo", Prod, NOW, &[("index.html", 'c')]);
    let elsewhere = deployment("demo", Dev, NOW + 9, &[("index.html", 'd')]);
    // The time decides, whatever the order of adding.
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
    // It does not matter which deployment is current.
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

pub async fn a_deployment_is_described_without_its_files_and_some_are_found(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    store.add_project(project("demo", None)).await.unwrap();
    let one = deployment("demo", Dev, NOW, &[("a.js", 'a'), ("index.html", 'b')]);
    let other = deployment("demo", Dev, NOW + 1, &[("a.js", 'c')]);
    for deployment in [&one, &other] {
        let added = store.add_deployment(deployment.clone(), Actor::Own.into());
        added.await.unwrap();
    }
    let described = store.describe_deployment(one.id).await.unwrap();
    let expected = Deployment {
        files: BTreeMap::new(),
        ..one.clone()
    };
    assert_eq!(described, Some(expected));
    let missing = store.describe_deployment(Uuid::nil()).await.unwrap();
    assert_eq!(missing, None);
    let find = async |id, paths: &[&str]| {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        store.find_files(id, paths).await.unwrap()
    };
    let found = find(one.id, &["none", "a.js", "A.js", "a.js"]).await;
    let expected = BTreeMap::from([("a.js".to_owned(), one.files["a.js"].clone())]);
    assert_eq!(found, expected);
    assert_eq!(find(one.id, &["a.js", "index.html"]).await, one.files);
    assert_eq!(find(other.id, &["index.html", ""]).await, BTreeMap::new());
    assert_eq!(find(Uuid::nil(), &["a.js"]).await, BTreeMap::new());
    assert_eq!(find(one.id, &[]).await, BTreeMap::new());
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
    // The oldest was added last, so it is the current one.
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
        // A text that is not the name of a file is ignored.
        files.extend(["".into(), "zz".repeat(32), "readme.txt".into()]);
        store.list_unreferenced_files(files).await.unwrap()
    };
    assert_eq!(unreferenced("abcde").await, [name('d'), name('e')]);
    store.sweep_deployments("demo", Prod, 1).await.unwrap();
    assert_eq!(unreferenced("abcd").await, [name('a'), name('d')]);
    assert_eq!(unreferenced("").await, [""; 0]);
}
