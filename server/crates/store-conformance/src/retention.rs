//! The requirements on what is kept for a time only.

use platform_domain::audit::{Actor, By, Source};
use platform_domain::retention::Retention;
use platform_protocol::names::Environment;
use platform_store::{NewGuest, Store};

use super::audit::events;
use super::{NOW, Place, deployment, guest, project};

fn from(network: &str) -> By {
    let source = Source {
        network: network.into(),
        request: "request".into(),
    };
    By::request(Actor::Own, source)
}

fn retention(events_before: Option<i64>) -> Retention {
    Retention {
        events_before,
        addresses_before: NOW + 5,
        guests_before: NOW + 5,
    }
}

/// Applies it in steps of one row of each kind, and returns how many rows changed.
async fn apply(store: &dyn Store, retention: Retention) -> usize {
    let mut changed = 0;
    loop {
        match store.apply_retention(retention, 1).await.unwrap() {
            0 => return changed,
            some => changed += some,
        }
    }
}

pub async fn old_events_go_and_old_addresses_are_shortened(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    let new = NewGuest {
        address: "203.0.113.77".into(),
        ..guest(&["otter"])
    };
    store.add_guest(new.clone()).await.unwrap();
    let later = NewGuest {
        address: "203.0.113.78".into(),
        now: NOW + 5,
        ..guest(&["heron"])
    };
    store.add_guest(later.clone()).await.unwrap();
    for (name, network, at) in [
        ("one", "203.0.113.77", NOW),
        ("two", "2001:db8:1:2::/64", NOW + 4),
        ("three", "203.0.113.77", NOW + 5),
    ] {
        let renamed = store.rename_player(new.id, name, from(network), at);
        renamed.await.unwrap();
    }
    store.add_project(project("demo", None)).await.unwrap();
    let mut made = deployment("demo", Environment::Prod, &["index.html"]);
    made.made.network = Some("198.51.100.9".into());
    let id = made.id;
    store.add_deployment(made, Actor::Own.into()).await.unwrap();

    // Two events, the deployment, and the guest that was not seen since.
    assert_eq!(apply(store, retention(None)).await, 4);
    assert_eq!(apply(store, retention(None)).await, 0);
    let networks = async || -> Vec<Option<String>> {
        let renamed = events(store, Some(new.id)).await.into_iter();
        renamed.map(|event| event.network).collect()
    };
    let known = |network: &str| Some(network.to_owned());
    let expected = [
        known("203.0.113.77"),
        known("2001:db8:1::/48"),
        known("203.0.113.0/24"),
    ];
    assert_eq!(networks().await, expected);
    let found = store.find_deployment(id).await.unwrap().unwrap();
    assert_eq!(found.made.network, known("198.51.100.0/24"));
    let holding = store.list_holding_addresses(0, 10).await.unwrap();
    let holding: Vec<&str> = holding.iter().map(|one| one.address.as_str()).collect();
    assert_eq!(holding, ["203.0.113.78"]);

    assert_eq!(apply(store, retention(Some(NOW + 4))).await, 1);
    assert_eq!(networks().await, expected[..2]);
}
