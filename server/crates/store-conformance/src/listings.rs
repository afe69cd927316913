//! The requirements on listings.

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By};
use platform_domain::listing::{Listing, OwnListing};
use platform_domain::node::Topic;
use platform_domain::takedown::Change;
use platform_store::{Removed, Store, StoreError};

use super::{NOW, Place, guest, project};

fn own() -> OwnListing {
    OwnListing {
        title: Some("Two Rings".into()),
        description: Some("Hop between \u{5d0} and \"b\".".into()),
        author: Some("swift-otter".into()),
        tags: Some(vec!["arcade".into(), "two-players".into()]),
        cover: Some("/cover.png".into()),
    }
}

async fn set(store: &dyn Store, slug: &str, listed: bool, own: OwnListing, now: i64) -> bool {
    let by = By::from(Actor::Own);
    store.set_listing(slug, listed, own, by, now).await.unwrap()
}

pub async fn what_is_set_for_a_listing_comes_back_and_is_written_once(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["of-demo"])).await.unwrap().id;
    for slug in ["demo", "other"] {
        store.add_project(project(slug, Some(owner))).await.unwrap();
    }
    assert_eq!(
        store.find_listing("demo").await.unwrap(),
        Listing::default()
    );
    assert_eq!(
        store.find_listing("none").await.unwrap(),
        Listing::default()
    );
    assert!(!set(&*store, "demo", false, OwnListing::default(), NOW).await);
    let changes = store.list_changes(0).await.unwrap().newest;
    assert!(set(&*store, "demo", true, own(), NOW).await);
    assert!(!set(&*store, "demo", true, own(), NOW + 1).await);
    let listing = Listing {
        listed_at: Some(NOW),
        own: own(),
    };
    assert_eq!(store.find_listing("demo").await.unwrap(), listing);
    let expected = [("demo".to_owned(), listing)];
    for slug in [None, Some("demo")] {
        assert_eq!(store.list_listings(slug).await.unwrap(), expected);
    }
    assert_eq!(store.list_listings(Some("other")).await.unwrap(), []);
    // Every node learns of it, and the log of events has it.
    let changed = store.list_changes(changes).await.unwrap().topics;
    assert_eq!(changed, [Topic::Project("demo".into())]);
    let events = store.list_audit_events(AuditQuery::of(owner, 5)).await;
    let events = events.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, AuditKind::SettingChanged);
    assert_eq!(events[0].detail.as_deref(), Some("listing on"));
    let unknown = store.set_listing("none", true, own(), Actor::Own.into(), NOW);
    assert!(matches!(
        unknown.await,
        Err(StoreError::Missing { table: "projects" })
    ));
}

pub async fn a_listed_game_keeps_its_time_until_it_is_taken_off(place: &dyn Place) {
    let store = place.open().await;
    store.add_project(project("demo", None)).await.unwrap();
    let at = async || store.find_listing("demo").await.unwrap().listed_at;
    assert!(set(&*store, "demo", true, OwnListing::default(), NOW).await);
    assert!(set(&*store, "demo", true, own(), NOW + 5).await);
    assert_eq!(at().await, Some(NOW));
    assert!(set(&*store, "demo", false, own(), NOW + 6).await);
    assert_eq!(at().await, None);
    assert_eq!(store.find_listing("demo").await.unwrap().own, own());
    let none = OwnListing {
        tags: Some(Vec::new()),
        ..OwnListing::default()
    };
    assert!(set(&*store, "demo", true, none.clone(), NOW + 7).await);
    let found = store.find_listing("demo").await.unwrap();
    assert_eq!((found.listed_at, found.own), (Some(NOW + 7), none));
}

pub async fn a_listing_goes_with_its_project(place: &dyn Place) {
    let store = place.open().await;
    let owner = store.add_guest(guest(&["of-demo"])).await.unwrap().id;
    store
        .add_project(project("demo", Some(owner)))
        .await
        .unwrap();
    assert!(set(&*store, "demo", true, own(), NOW).await);
    let by = By::from(Actor::Own);
    let deleted = store.change_standing("demo", Change::Delete, by, NOW);
    deleted.await.unwrap();
    let removed = store.remove_deleted(NOW, NOW).await.unwrap();
    assert_eq!(removed, Some(Removed::Whole("demo".into())));
    assert_eq!(store.list_listings(None).await.unwrap(), []);
}
