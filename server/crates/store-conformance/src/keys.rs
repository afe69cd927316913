//! The requirements on signing keys.

use platform_domain::audit::{Actor, AuditKind, AuditQuery};
use platform_domain::key::{Revocation, StoredKey};

use super::{Handles, NOW, Place, assert_conflict, key};

pub async fn keys_come_back_as_they_were_in_the_order_of_adding(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.list_keys().await.unwrap(), []);
    // The order is that of adding, whatever the times are.
    let older = StoredKey {
        created_at: -5,
        signs_from: -4,
        ..key("a")
    };
    assert!(
        store
            .add_key(key("b"), None, Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        store
            .add_key(older.clone(), Some(&key("b").kid), Actor::Own.into())
            .await
            .unwrap()
    );
    assert_eq!(store.list_keys().await.unwrap(), [key("b"), older.clone()]);
    assert_conflict(
        store
            .add_key(key("b"), Some(&older.kid), Actor::Own.into())
            .await,
        ("signing_keys", "kid"),
    );
}

pub async fn a_shared_secret_is_the_one_that_was_proposed_first(place: &dyn Place) {
    let store = place.open().await;
    let propose = async |name, secret| store.shared_secret(name, [secret; 32]).await.unwrap();
    assert_eq!(propose("one", 1).await, [1; 32]);
    assert_eq!(propose("one", 2).await, [1; 32]);
    assert_eq!(propose("another", 3).await, [3; 32]);
    store.close().await.unwrap();
    let again = place.open().await;
    assert_eq!(again.shared_secret("one", [4; 32]).await.unwrap(), [1; 32]);
}

pub async fn a_key_after_a_stale_one_is_not_added(place: &dyn Place) {
    let store = place.open().await;
    assert!(
        !store
            .add_key(key("a"), Some(&key("b").kid), Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        store
            .add_key(key("a"), None, Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        !store
            .add_key(key("b"), None, Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        store
            .add_key(key("b"), Some(&key("a").kid), Actor::Own.into())
            .await
            .unwrap()
    );
    assert!(
        !store
            .add_key(key("c"), Some(&key("a").kid), Actor::Own.into())
            .await
            .unwrap()
    );
    assert_eq!(store.list_keys().await.unwrap(), [key("a"), key("b")]);
}

pub async fn of_many_keys_at_once_one_is_added(place: &dyn Place) {
    let handles = Handles::open(place).await;
    let store = handles.next();
    let tasks: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h"]
        .into_iter()
        .map(|letter| {
            let store = handles.next();
            tokio::spawn(async move {
                store
                    .add_key(key(letter), None, Actor::Own.into())
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut added = 0;
    for task in tasks {
        added += usize::from(task.await.unwrap());
    }
    assert_eq!((added, store.list_keys().await.unwrap().len()), (1, 1));
}

pub async fn removed_keys_are_forgotten(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    store
        .add_key(key("b"), Some(&key("a").kid), Actor::Own.into())
        .await
        .unwrap();
    store
        .remove_keys(&[key("a").kid, key("z").kid])
        .await
        .unwrap();
    store.remove_keys(&[]).await.unwrap();
    assert_eq!(store.list_keys().await.unwrap(), [key("b")]);
}

pub async fn a_revoked_key_goes_in_the_moment_in_which_its_successor_comes(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    let revoke = async |kid: &str, successor, after: &str| {
        let (kid, after) = (key(kid).kid, key(after).kid);
        let revoked = store.revoke_key(&kid, successor, Some(&after), NOW, Actor::Operator.into());
        revoked.await.unwrap()
    };
    assert_eq!(revoke("a", None, "z").await, Revocation::Changed);
    assert_eq!(revoke("z", Some(key("b")), "a").await, Revocation::Missing);
    assert_eq!(store.list_keys().await.unwrap(), [key("a")]);
    assert_eq!(revoke("a", Some(key("b")), "a").await, Revocation::Done);
    assert_eq!(store.list_keys().await.unwrap(), [key("b")]);
    let events = store
        .list_audit_events(AuditQuery::newest(2))
        .await
        .unwrap();
    let told: Vec<_> = events
        .into_iter()
        .map(|event| (event.kind, event.subject.unwrap(), event.actor))
        .collect();
    let by = Actor::Operator;
    assert_eq!(
        told,
        [
            (AuditKind::KeyAdded, key("b").kid, by),
            (AuditKind::KeyRevoked, key("a").kid, by),
        ]
    );
    // A second revocation that was based on the same keys does nothing.
    assert_eq!(revoke("a", Some(key("c")), "a").await, Revocation::Changed);
    assert_eq!(store.list_keys().await.unwrap(), [key("b")]);
}

pub async fn resealed_keys_keep_all_but_how_they_lie(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    store
        .add_key(key("c"), Some(&key("a").kid), Actor::Own.into())
        .await
        .unwrap();
    let sealed = vec![(key("a").kid, vec![9, 9]), (key("z").kid, vec![8])];
    store.reseal_keys(sealed).await.unwrap();
    let resealed = StoredKey {
        private: vec![9, 9],
        sealed: true,
        ..key("a")
    };
    assert_eq!(store.list_keys().await.unwrap(), [resealed, key("c")]);
}

pub async fn the_life_of_a_keys_tokens_only_ever_grows(place: &dyn Place) {
    let store = place.open().await;
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    for (set, expected) in [(1, 900_000), (900_001, 900_001), (5, 900_001)] {
        store.raise_token_life(set).await.unwrap();
        let kept = store.list_keys().await.unwrap();
        assert_eq!(kept[0].token_millis, expected);
    }
}
