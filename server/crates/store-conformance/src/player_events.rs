//! The requirements on events about players, which webhooks are told that asked for it.

use platform_domain::audit::{Actor, By};
use platform_domain::clock::Millis;
use platform_domain::deletion::AskDeletion;
use platform_domain::player_event::SentPlayerEvent;
use platform_domain::webhook::{NewWebhook, Wants, WebhookOutcome, WebhookSecret};
use platform_store::Store;
use uuid::Uuid;

use super::people::{account, owner};
use super::{NOW, Place, by, entropy, guest};

fn own() -> By {
    Actor::Own.into()
}

/// Gives a new project a webhook that is told about this.
async fn with_webhook(store: &dyn Store, slug: &str, wants: Option<Wants>) {
    owner(store, slug).await;
    set(store, slug, wants).await;
}

async fn set(store: &dyn Store, slug: &str, wants: Option<Wants>) -> Wants {
    let new = NewWebhook {
        url: "https://hooks.example/".into(),
        secret: WebhookSecret::generate(entropy()),
        rotate: false,
        wants,
    };
    let set = store.set_webhook(slug, new, own(), NOW).await.unwrap();
    set.wants
}

async fn delete(store: &dyn Store, player: Uuid) {
    let ask = AskDeletion {
        player,
        browser: None,
        at: NOW,
        by: own(),
        now: NOW,
    };
    store.ask_for_deletion(ask).await.unwrap();
    assert!(store.delete_player(player, NOW).await.unwrap());
}

async fn due(store: &dyn Store, now: Millis) -> Vec<(String, i64)> {
    let due = store.list_due_player_events(now, 10).await.unwrap();
    due.into_iter()
        .map(|event| (event.slug, event.id))
        .collect()
}

const PLAYERS: Wants = Wants {
    errors: false,
    players: true,
};

pub async fn what_a_webhook_is_told_about_stays_until_it_is_set_again(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    owner(store, "demo").await;
    let (errors, both) = (
        Wants::default(),
        Wants {
            errors: true,
            players: true,
        },
    );
    for (wants, expected) in [
        (None, errors),
        (Some(PLAYERS), PLAYERS),
        (None, PLAYERS),
        (Some(both), both),
    ] {
        assert_eq!(set(store, "demo", wants).await, expected);
        let found = store.find_webhook("demo").await.unwrap().unwrap();
        assert_eq!(found.wants, expected);
    }
}

pub async fn a_deleted_player_is_told_to_the_webhooks_that_asked_for_it(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    with_webhook(store, "asked", Some(PLAYERS)).await;
    with_webhook(store, "other", None).await;
    with_webhook(store, "elsewhere", Some(PLAYERS)).await;
    let new = guest(&["otter"]);
    store.add_guest(new.clone()).await.unwrap();
    let player = account(store, "ada").await;
    // What the guest had goes to the account. A favourite is no token.
    for slug in ["asked", "asked", "other", "none"] {
        store.note_token(new.id, slug).await.unwrap();
    }
    let favourite = store.set_favourite(player, "elsewhere", true, 9, NOW);
    favourite.await.unwrap();
    assert_eq!(store.sweep_played(NOW, 9).await.unwrap(), 0);
    store.complete_sign_in(by(&new, "ada")).await.unwrap();
    delete(store, player).await;
    let told = store.list_due_player_events(NOW, 10).await.unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].slug.as_str(), told[0].tries), ("asked", 0));
    for id in [player, new.id] {
        assert!(told[0].data.contains(&id.to_string()), "{told:?}");
    }
    assert_eq!(due(store, NOW - 1).await, []);

    let id = told[0].id;
    let sent = |status, next_at| SentPlayerEvent {
        id,
        outcome: WebhookOutcome {
            at: NOW + 1,
            status: Some(status),
            error: None,
        },
        is_delivered: status == 204,
        next_at,
    };
    store
        .note_player_event(sent(500, Some(NOW + 9)))
        .await
        .unwrap();
    assert_eq!(due(store, NOW + 8).await, []);
    assert_eq!(due(store, NOW + 9).await.len(), 1);
    store.note_player_event(sent(204, None)).await.unwrap();
    assert_eq!(due(store, NOW + 9).await, []);
    let listed = store.list_player_events("asked", 10).await.unwrap();
    assert_eq!(
        (listed[0].tries, listed[0].delivered_at),
        (1, Some(NOW + 1))
    );
    assert_eq!(listed[0].last.as_ref().unwrap().status, Some(204));
    assert_eq!(store.list_player_events("other", 10).await.unwrap(), []);

    // It can be sent again while it is kept, by its own project.
    for (slug, expected) in [("other", false), ("none", false), ("asked", true)] {
        let replayed = store.replay_player_event(slug, id, NOW + 20).await;
        assert_eq!(replayed.unwrap(), expected, "{slug}");
    }
    assert_eq!(due(store, NOW + 20).await.len(), 1);
    store.give_up_player_events("asked").await.unwrap();
    assert_eq!(due(store, NOW + 20).await, []);
    assert_eq!(store.sweep_player_events(NOW, 10).await.unwrap(), 0);
    assert_eq!(store.sweep_player_events(NOW + 1, 10).await.unwrap(), 1);
    assert_eq!(store.list_player_events("asked", 10).await.unwrap(), []);
    assert!(!store.replay_player_event("asked", id, NOW).await.unwrap());
}

pub async fn events_about_players_go_with_their_webhook(place: &dyn Place) {
    let store = place.open().await;
    let store = &*store;
    with_webhook(store, "demo", Some(PLAYERS)).await;
    let player = account(store, "ada").await;
    store.note_token(player, "demo").await.unwrap();
    delete(store, player).await;
    assert_eq!(due(store, NOW).await.len(), 1);
    assert!(store.remove_webhook("demo", own(), NOW).await.unwrap());
    assert_eq!(due(store, NOW).await, []);
    assert_eq!(store.list_player_events("demo", 10).await.unwrap(), []);
}
