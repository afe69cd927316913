//! The requirements on previews.

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By};
use platform_domain::clock::Millis;
use platform_domain::node::Topic;
use platform_domain::preview::{AddedPreview, HostedPreview, NewPreview, Preview, day_of};
use platform_domain::project::{Deployment, DeploymentSummary};
use platform_domain::takedown::Change;
use platform_protocol::names::Environment::Dev;
use platform_store::{Removed, Store, StoreError};
use uuid::Uuid;

use super::deployments::{assert_missing, deployment as with_files};
use super::{Handles, NOW, Place, guest, project};

const DAY: Millis = 24 * 60 * 60 * 1_000;

/// Deploys a preview, of which a project may have `most`.
async fn put(store: &dyn Store, name: &str, deployment: &Deployment, most: usize) -> AddedPreview {
    let new = NewPreview {
        name: name.into(),
        deployment: deployment.clone(),
        most,
    };
    store.put_preview(new, Actor::Own.into()).await.unwrap()
}

fn summary(deployment: &Deployment) -> DeploymentSummary {
    DeploymentSummary {
        id: deployment.id,
        created_at: deployment.created_at,
        files: deployment.files.len() as u64,
        bytes: deployment.files.values().map(|file| file.size).sum(),
        current: true,
        made: deployment.made.clone(),
    }
}

fn demo(created_at: Millis, letter: char) -> Deployment {
    with_files("demo", Dev, created_at, &[("index.html", letter)])
}

async fn owned(store: &dyn Store, slug: &str) -> Uuid {
    let owner = store.add_guest(guest(&[&format!("of-{slug}")])).await;
    let owner = owner.unwrap().id;
    let added = store.add_project(project(slug, Some(owner))).await;
    added.unwrap();
    owner
}

pub async fn a_preview_comes_back_as_it_was_and_shows_what_was_deployed_last(place: &dyn Place) {
    let store = place.open().await;
    let owner = owned(&*store, "demo").await;
    owned(&*store, "other").await;
    let (first, second) = (demo(NOW, 'a'), demo(NOW + DAY, 'b'));
    assert_eq!(put(&*store, "rings", &first, 20).await, AddedPreview::Done);
    let found = store.find_deployment(first.id).await.unwrap();
    assert_eq!(found.as_ref(), Some(&first));
    let preview = |deployment: &Deployment, used_at| Preview {
        name: "rings".into(),
        deployment: summary(deployment),
        created_at: NOW,
        used_at: day_of(used_at),
    };
    let listed = store.list_previews("demo").await.unwrap();
    assert_eq!(listed, [preview(&first, NOW)]);
    assert_eq!(put(&*store, "rings", &second, 20).await, AddedPreview::Done);
    let listed = store.list_previews("demo").await.unwrap();
    assert_eq!(listed, [preview(&second, NOW + DAY)]);
    assert_eq!(store.find_deployment(first.id).await.unwrap(), None);
    let hosted = HostedPreview {
        slug: "demo".into(),
        name: "rings".into(),
        deployment: second.id,
        used_at: day_of(NOW + DAY),
    };
    for slug in [None, Some("demo")] {
        let listed = store.list_hosted_previews(slug).await.unwrap();
        assert_eq!(listed, std::slice::from_ref(&hosted));
    }
    assert_eq!(store.list_previews("other").await.unwrap(), []);
    let of_other = store.list_hosted_previews(Some("other")).await.unwrap();
    assert_eq!(of_other, []);
    let events = store.list_audit_events(AuditQuery::of(owner, 10)).await;
    let event = &events.unwrap()[0];
    assert_eq!(event.kind, AuditKind::PreviewDeployed);
    let detail = format!("rings {}", second.id);
    assert_eq!(event.detail.as_deref(), Some(detail.as_str()));
    let new = NewPreview {
        name: "rings".into(),
        deployment: with_files("none", Dev, NOW, &[("index.html", 'a')]),
        most: 20,
    };
    let missing = store.put_preview(new, Actor::Own.into()).await;
    assert_missing(missing, "projects");
}

pub async fn the_environment_of_a_preview_does_not_notice_it(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    let shown = with_files("demo", Dev, NOW, &[("index.html", 'a'), ("x.js", 'c')]);
    let by = || By::from(Actor::Own);
    store.add_deployment(shown.clone(), by()).await.unwrap();
    let preview = with_files("demo", Dev, NOW + 1, &[("index.html", 'b'), ("y.js", 'd')]);
    put(&*store, "rings", &preview, 20).await;
    let listed = store.list_deployments("demo", Dev).await.unwrap();
    assert_eq!(listed, [summary(&shown)]);
    let current = store.find_current_deployment("demo", Dev).await.unwrap();
    assert_eq!(current.map(|current| current.id), Some(shown.id));
    let changed = store.list_changed_paths("demo", Dev).await.unwrap();
    assert_eq!(changed, Vec::<String>::new());
    let kept = async |path| store.find_kept_file("demo", Dev, path).await.unwrap();
    assert!(kept("index.html").await.is_some());
    assert_eq!(kept("y.js").await, None);
    let back = store.set_current_deployment("demo", Dev, preview.id, by(), NOW);
    assert_missing(back.await, "deployments");
    assert_eq!(store.sweep_deployments("demo", Dev, 0).await.unwrap(), 0);
    assert!(!store.remove_oldest_deployment("demo").await.unwrap());
    // Its files are kept, and found by the positions in its logs.
    let names: Vec<String> = preview
        .files
        .values()
        .map(|file| file.sha256.clone())
        .collect();
    let unreferenced = store.list_unreferenced_files(names.clone()).await;
    assert_eq!(unreferenced.unwrap(), Vec::<String>::new());
    let found = store.find_file_of("demo", Dev, preview.id, "y.js").await;
    assert_eq!(found.unwrap().as_ref(), preview.files.get("y.js"));
    // They count, and cannot be removed for the sake of another deployment.
    let counted = store.count_room("demo").await.unwrap();
    let measured = store.measure_room("demo", shown.files.clone()).await;
    let measured = measured.unwrap();
    assert_eq!(measured.with_all, measured.with_shown);
    assert!(counted < measured.with_all);
    let removed = store.remove_preview("demo", "rings", by(), NOW).await;
    assert!(removed.unwrap());
    assert!(store.count_room("demo").await.unwrap() < counted);
    let unreferenced = store.list_unreferenced_files(names.clone()).await;
    assert_eq!(unreferenced.unwrap(), names);
}

pub async fn a_project_has_few_previews_and_learns_which_was_used_longest_ago(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    for (name, at) in [("one", NOW + 2 * DAY), ("two", NOW), ("three", NOW + DAY)] {
        assert_eq!(
            put(&*store, name, &demo(at, 'a'), 3).await,
            AddedPreview::Done
        );
    }
    let full = |oldest: &str, used_at| AddedPreview::TooMany {
        oldest: oldest.into(),
        used_at: day_of(used_at),
    };
    let added = put(&*store, "four", &demo(NOW, 'a'), 3).await;
    assert_eq!(added, full("two", NOW));
    // One that exists may be deployed, and is used by this.
    let added = put(&*store, "two", &demo(NOW + 3 * DAY, 'a'), 3).await;
    assert_eq!(added, AddedPreview::Done);
    let added = put(&*store, "four", &demo(NOW, 'a'), 3).await;
    assert_eq!(added, full("three", NOW + DAY));
    let by = Actor::Own.into();
    let removed = store.remove_preview("demo", "one", by, NOW).await;
    assert!(removed.unwrap());
    let added = put(&*store, "four", &demo(NOW, 'a'), 3).await;
    assert_eq!(added, AddedPreview::Done);
}

pub async fn a_preview_that_nobody_uses_is_removed(place: &dyn Place) {
    let store = place.open().await;
    let owner = owned(&*store, "demo").await;
    for name in ["one", "two", "three"] {
        put(&*store, name, &demo(NOW, 'a'), 3).await;
    }
    let day = day_of(NOW);
    for noted in [day + DAY, day] {
        let noted = store.note_preview_use("demo", "two", noted).await;
        noted.unwrap();
    }
    store.note_preview_use("demo", "none", day).await.unwrap();
    store.note_preview_use("none", "two", day).await.unwrap();
    let remove = |used_at| store.remove_unused_preview(used_at, NOW + 5);
    assert_eq!(remove(day - 1).await.unwrap(), None);
    let changes = store.list_changes(0).await.unwrap().newest;
    for expected in [Some("demo"), Some("demo"), None] {
        assert_eq!(remove(day).await.unwrap().as_deref(), expected);
    }
    let left = store.list_previews("demo").await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!((&*left[0].name, left[0].used_at), ("two", day + DAY));
    let events = store.list_audit_events(AuditQuery::of(owner, 1)).await;
    let event = &events.unwrap()[0];
    assert_eq!((event.kind, event.at), (AuditKind::PreviewRemoved, NOW + 5));
    // Every node learns of it.
    let changed = store.list_changes(changes).await.unwrap().topics;
    assert_eq!(changed, [Topic::Project("demo".into())]);
}

pub async fn previews_go_with_their_project(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    put(&*store, "rings", &demo(NOW, 'a'), 3).await;
    put(&*store, "lights", &demo(NOW, 'b'), 3).await;
    let by = || By::from(Actor::Own);
    let deleted = store.change_standing("demo", Change::Delete, by(), NOW);
    deleted.await.unwrap();
    assert_eq!(store.list_hosted_previews(None).await.unwrap().len(), 2);
    let remove = || store.remove_deleted(NOW, NOW);
    for _ in 0..2 {
        let part = remove().await.unwrap();
        assert_eq!(part, Some(Removed::Part("demo".into())));
    }
    let whole = remove().await.unwrap();
    assert_eq!(whole, Some(Removed::Whole("demo".into())));
    assert_eq!(store.list_hosted_previews(None).await.unwrap(), []);
    let removed = store.remove_preview("demo", "rings", by(), NOW).await;
    assert!(!removed.unwrap());
    let new = NewPreview {
        name: "rings".into(),
        deployment: demo(NOW, 'a'),
        most: 3,
    };
    let added = store.put_preview(new, by()).await;
    assert!(matches!(added, Err(StoreError::Missing { .. })));
}

pub async fn of_many_previews_at_once_no_more_are_added_than_may_be(place: &dyn Place) {
    let handles = Handles::open(place).await;
    owned(&*handles.next(), "demo").await;
    let mut adding = Vec::new();
    for number in 0..20 {
        let store = handles.next();
        let name = format!("preview-{number}");
        adding.push(tokio::spawn(async move {
            put(&*store, &name, &demo(NOW, 'a'), 5).await
        }));
    }
    let mut added = 0;
    for adding in adding {
        added += usize::from(adding.await.unwrap() == AddedPreview::Done);
    }
    assert_eq!(added, 5);
    let listed = handles.next().list_previews("demo").await.unwrap();
    assert_eq!(listed.len(), 5);
}
