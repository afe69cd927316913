//! The requirements at the end of a store: every confirmed write is there afterwards.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use platform_domain::audit::Actor;
use platform_store::StoreError;

use super::{Place, guest, key};

pub async fn what_was_answered_is_there_after_a_drop_without_close(place: &dyn Place) {
    let new = guest(&["otter"]);
    let store = place.open().await;
    let player = store.add_guest(new.clone()).await.unwrap();
    store
        .add_key(key("a"), None, Actor::Own.into())
        .await
        .unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(
        store
            .lookup_session(&new.session)
            .await
            .unwrap()
            .unwrap()
            .player,
        player
    );
    assert_eq!(store.list_keys().await.unwrap(), [key("a")]);
}

pub async fn closing_writes_out_what_is_queued_and_refuses_what_follows(place: &dyn Place) {
    let store = place.open().await;
    let writes = (0..50).map(|number| {
        let (store, name) = (Arc::clone(&store), format!("otter-{number}"));
        async move {
            let new = guest(&[&name]);
            store
                .add_guest(new.clone())
                .await
                .map(|player| (new.session, player))
        }
    });
    // Every write is queued before the close: the futures are polled in turn.
    let (written, closed) = join(join_all(writes), store.close()).await;
    closed.unwrap();
    store.close().await.unwrap();
    let refused = store.add_guest(guest(&["late"])).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    let reopened = place.open().await;
    for result in written {
        let (session, player) = result.unwrap();
        assert_eq!(
            reopened
                .lookup_session(&session)
                .await
                .unwrap()
                .unwrap()
                .player,
            player
        );
    }
}
