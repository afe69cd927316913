//! The requirements on the storage of deployments.

use platform_domain::audit::Actor;
use platform_domain::room::{BLOCK, entry_bytes};
use platform_protocol::names::Environment::{Dev, Prod};
use platform_store::StoreError;

use super::{Place, deployment, guest, project};

pub async fn a_content_takes_room_once_and_every_entry_of_it(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["otter"])).await.unwrap().id;
    for slug in ["one", "two"] {
        store.add_project(project(slug, Some(owner))).await.unwrap();
    }
    assert_eq!(
        store.list_uncounted_projects().await.unwrap(),
        ["one", "two"]
    );
    // All files of these deployments have one content.
    let next = deployment("one", Prod, &["a", "b"]);
    let expected = BLOCK + 2 * entry_bytes("a");
    let measured = store.measure_room("one", next.files.clone()).await.unwrap();
    assert_eq!(
        (measured.with_all, measured.with_shown, measured.others),
        (expected, expected, 0)
    );
    store
        .add_deployment(next.clone(), Actor::Own.into())
        .await
        .unwrap();
    assert_eq!(store.count_room("one").await.unwrap(), expected);
    assert_eq!(store.find_room("one").await.unwrap(), expected);
    assert_eq!(store.list_uncounted_projects().await.unwrap(), ["two"]);

    // In the other environment only its entries are added.
    let measured = store.measure_room("one", next.files.clone()).await.unwrap();
    assert_eq!(measured.with_all, expected + 2 * entry_bytes("a"));
    store
        .add_deployment(deployment("one", Dev, &["a"]), Actor::Own.into())
        .await
        .unwrap();
    let counted = store.count_room("one").await.unwrap();
    assert_eq!(counted, BLOCK + 3 * entry_bytes("a"));
    let other = store.measure_room("two", next.files.clone()).await.unwrap();
    assert_eq!((other.with_all, other.others), (expected, counted));
    assert_eq!(store.total_room().await.unwrap(), counted);
    let none = store.measure_room("none", next.files).await;
    assert!(matches!(none, Err(StoreError::Missing { .. })), "{none:?}");
}

pub async fn the_oldest_deployment_that_is_not_shown_goes_first(place: &dyn Place) {
    let store = place.open().await;
    store.add_project(project("game", None)).await.unwrap();
    let mut ids = Vec::new();
    for environment in [Dev, Prod, Prod, Prod] {
        let one = deployment("game", environment, &["index.html"]);
        ids.push(one.id);
        store.add_deployment(one, Actor::Own.into()).await.unwrap();
    }
    let kept = async || {
        let kept = store.list_deployments("game", Prod).await.unwrap();
        kept.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert!(store.remove_oldest_deployment("game").await.unwrap());
    assert_eq!(kept().await, [ids[3], ids[2]]);
    assert!(store.remove_oldest_deployment("game").await.unwrap());
    assert_eq!(kept().await, [ids[3]]);
    assert!(!store.remove_oldest_deployment("game").await.unwrap());
}
