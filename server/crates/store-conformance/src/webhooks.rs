//! The requirements on webhooks.

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By};
use platform_domain::takedown::Change;
use platform_domain::webhook::{NewWebhook, WebhookOutcome, WebhookSecret};
use platform_store::{Store, StoreError};

use super::{NOW, Place, entropy, guest, project, sign_in};

const URL: &str = "https://hooks.example/a?key=secret";

fn new(url: &str, rotate: bool) -> NewWebhook {
    NewWebhook {
        url: url.into(),
        secret: WebhookSecret::generate(entropy()),
        rotate,
        wants: None,
    }
}

fn own() -> By {
    Actor::Own.into()
}

async fn owned(store: &dyn Store, slug: &str) {
    let owner = store.add_guest(guest(&[&format!("of-{slug}")])).await;
    let added = store.add_project(project(slug, Some(owner.unwrap().id)));
    added.await.unwrap();
}

/// The details of the events of this kind, newest first.
async fn details(store: &dyn Store, kind: AuditKind) -> Vec<String> {
    let query = AuditQuery {
        player: None,
        kind: Some(kind),
        actor: None,
        before: None,
        after: None,
        limit: 9,
    };
    let events = store.list_audit_events(query).await.unwrap();
    let details = events.into_iter().map(|event| event.detail);
    details.map(Option::unwrap_or_default).collect()
}

pub async fn a_webhook_comes_back_as_it_was_set(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    assert_eq!(store.find_webhook("demo").await.unwrap(), None);
    let first = new(URL, false);
    let set = store.set_webhook("demo", first.clone(), own(), NOW).await;
    let set = set.unwrap();
    assert_eq!((set.url.as_str(), &set.secret), (URL, &first.secret));
    assert_eq!((set.created_at, set.off_at, &set.last), (NOW, None, &None));
    assert_eq!(store.find_webhook("demo").await.unwrap(), Some(set));
    assert_eq!(store.find_webhook("other").await.unwrap(), None);
    // Another address keeps the secret, unless it is to be replaced.
    let second = new("https://other.example/", false);
    let set = store.set_webhook("demo", second, own(), NOW + 1).await;
    let set = set.unwrap();
    assert_eq!((&set.secret, set.created_at), (&first.secret, NOW));
    assert_eq!(set.url, "https://other.example/");
    let third = new(URL, true);
    let set = store.set_webhook("demo", third.clone(), own(), NOW + 2);
    assert_eq!(set.await.unwrap().secret, third.secret);
    let missing = store.set_webhook("none", new(URL, false), own(), NOW).await;
    let missing = missing.unwrap_err();
    assert!(matches!(missing, StoreError::Missing { table: "projects" }));
    // No event has the path, which may be secret.
    assert_eq!(
        details(&*store, AuditKind::WebhookSet).await,
        [
            "https://hooks.example with a new secret",
            "https://other.example",
            "https://hooks.example"
        ]
    );
    assert!(store.remove_webhook("demo", own(), NOW).await.unwrap());
    assert!(!store.remove_webhook("demo", own(), NOW).await.unwrap());
    assert!(!store.remove_webhook("none", own(), NOW).await.unwrap());
    assert_eq!(store.find_webhook("demo").await.unwrap(), None);
    let removed = details(&*store, AuditKind::WebhookRemoved).await;
    assert_eq!(removed, ["https://hooks.example"]);
}

pub async fn the_last_outcome_of_a_webhook_is_kept_and_a_gone_one_is_off(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    let outcome = |at, status: Option<u16>| WebhookOutcome {
        at,
        status,
        error: status.is_none().then(|| "connection refused".to_owned()),
    };
    let note = async |url, outcome, gone| {
        let noted = store.note_webhook_outcome("demo", url, outcome, gone);
        noted.await.unwrap();
        let webhook = store.find_webhook("demo").await.unwrap();
        webhook.map(|webhook| (webhook.last, webhook.off_at))
    };
    assert_eq!(note(URL, outcome(NOW, Some(200)), false).await, None);
    let set = store.set_webhook("demo", new(URL, false), own(), NOW);
    set.await.unwrap();
    for last in [outcome(NOW + 1, Some(503)), outcome(NOW + 2, None)] {
        let noted = note(URL, last.clone(), false).await;
        assert_eq!(noted, Some((Some(last), None)));
    }
    // What came of another address says nothing of this one.
    let last = outcome(NOW + 2, None);
    let noted = note("https://before.example/", outcome(NOW + 3, Some(410)), true).await;
    assert_eq!(noted, Some((Some(last), None)));
    let gone = outcome(NOW + 4, Some(410));
    let noted = note(URL, gone.clone(), true).await;
    assert_eq!(noted, Some((Some(gone), Some(NOW + 4))));
    let off = details(&*store, AuditKind::WebhookTurnedOff).await;
    assert_eq!(off, ["https://hooks.example"]);
    let set = store.set_webhook("demo", new(URL, false), own(), NOW + 5);
    assert_eq!(set.await.unwrap().off_at, None, "it is on again");
}

pub async fn a_webhook_ends_with_its_projects_owner(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    let set = async || {
        let set = store.set_webhook("demo", new(URL, false), own(), NOW);
        set.await.unwrap();
    };
    set().await;
    let signed_in = store.complete_sign_in(sign_in("ada")).await.unwrap();
    let to = signed_in.player().unwrap().id;
    let by = || By::from(Actor::Operator);
    let transferred = store.transfer_project("demo", to, by(), NOW).await;
    transferred.unwrap();
    assert_eq!(store.find_webhook("demo").await.unwrap(), None);
    set().await;
    let deleted = store.change_standing("demo", Change::Delete, by(), NOW);
    deleted.await.unwrap();
    while store.remove_deleted(NOW, NOW).await.unwrap().is_some() {}
    assert_eq!(store.find_webhook("demo").await.unwrap(), None);
}
