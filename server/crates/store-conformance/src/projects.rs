//! The requirements on projects.

use platform_domain::audit::Actor;
use platform_protocol::names::Environment;
use platform_store::StoreError;
use uuid::Uuid;

use super::{Handles, Place, assert_conflict, deployment, guest, project};

pub async fn projects_are_found_and_listed_by_slug(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    store.add_project(project("zebra", None)).await.unwrap();
    store
        .add_project(project("demo", Some(owner)))
        .await
        .unwrap();
    assert_conflict(
        store.add_project(project("demo", None)).await,
        ("projects", "slug"),
    );
    let nobody = store.add_project(project("other", Some(Uuid::nil()))).await;
    assert!(matches!(
        nobody,
        Err(StoreError::Missing { table: "players" })
    ));
    let all = store.list_projects().await.unwrap();
    assert_eq!(all, [project("demo", Some(owner)), project("zebra", None)]);
    assert_eq!(
        store.find_project("demo").await.unwrap(),
        Some(project("demo", Some(owner)))
    );
    assert_eq!(store.find_project("other").await.unwrap(), None);
}

pub async fn the_last_deployment_of_an_environment_is_the_current_one(place: &dyn Place) {
    use Environment::{Dev, Prod};
    let store = place.open().await;
    store.add_project(project("demo", None)).await.unwrap();
    assert_eq!(
        store.find_current_deployment("demo", Prod).await.unwrap(),
        None
    );
    let first = deployment("demo", Prod, &["index.html", "a/b.js"]);
    let second = deployment("demo", Prod, &["index.html", "c.js"]);
    let other = deployment("demo", Dev, &["index.html"]);
    for added in [&first, &second, &other] {
        store
            .add_deployment(added.clone(), Actor::Own.into())
            .await
            .unwrap();
    }
    let current = |environment| store.find_current_deployment("demo", environment);
    assert_eq!(current(Prod).await.unwrap(), Some(second));
    assert_eq!(current(Dev).await.unwrap(), Some(other));
    assert_conflict(
        store.add_deployment(first, Actor::Own.into()).await,
        ("deployments", "id"),
    );
}

pub async fn a_deployment_of_an_unknown_project_changes_nothing(place: &dyn Place) {
    let store = place.open().await;
    let added = deployment("demo", Environment::Dev, &["index.html"]);
    let missing = store.add_deployment(added.clone(), Actor::Own.into()).await;
    assert!(
        matches!(missing, Err(StoreError::Missing { table: "projects" })),
        "{missing:?}"
    );
    store.add_project(project("demo", None)).await.unwrap();
    let found = store
        .find_current_deployment("demo", Environment::Dev)
        .await
        .unwrap();
    assert_eq!(found, None);
    store
        .add_deployment(added, Actor::Own.into())
        .await
        .unwrap();
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
    let handles = Handles::open(place).await;
    let store = handles.next();
    let mut wanting = Vec::new();
    for number in 0..20 {
        let name = format!("otter-{number}");
        let owner = store.add_guest(guest(&[&name])).await.unwrap().id;
        let store = handles.next();
        wanting.push(tokio::spawn(async move {
            let added = store.add_project(project("demo", Some(owner))).await;
            added.map(|()| owner)
        }));
    }
    let mut owners = Vec::new();
    for wanting in wanting {
        match wanting.await.unwrap() {
            Ok(owner) => owners.push(owner),
            Err(error) => assert_conflict::<()>(Err(error), ("projects", "slug")),
        }
    }
    assert_eq!(owners.len(), 1);
    let found = store.find_project("demo").await.unwrap().unwrap();
    assert_eq!(found.owner, Some(owners[0]));
}
