//! The requirements on deploy tokens.

use platform_domain::audit::{Actor, AuditKind, AuditQuery, By, Source};
use platform_domain::clock::Millis;
use platform_domain::deploy_token::{
    AddedDeployToken, DeploySecret, DeployToken, ENDED_KEPT, NewDeployToken,
};
use platform_domain::takedown::Change;
use platform_protocol::deploy_token::Scope;
use platform_store::{Removed, Store, StoreError};
use uuid::Uuid;

use super::{Handles, NOW, Place, entropy, guest, project, sign_in};

/// A new token with its text, which is valid for ten seconds.
fn new(name: &str, most: usize) -> (NewDeployToken, DeploySecret) {
    let secret = DeploySecret::generate(entropy().uuid_v7(NOW), entropy());
    let token = DeployToken {
        id: secret.id(),
        name: name.into(),
        scopes: vec![Scope::DeployDev, Scope::Logs],
        created_by: Uuid::from_u128(7),
        created_at: NOW,
        expires_at: NOW + 10_000,
        used_at: None,
        revoked_at: None,
    };
    let hash = secret.hash();
    (NewDeployToken { token, hash, most }, secret)
}

async fn add(store: &dyn Store, slug: &str, new: NewDeployToken) -> AddedDeployToken {
    let added = store.add_deploy_token(slug, new, Actor::Own.into()).await;
    added.unwrap()
}

async fn owned(store: &dyn Store, slug: &str) -> Uuid {
    let owner = store.add_guest(guest(&[&format!("of-{slug}")])).await;
    let owner = owner.unwrap().id;
    let added = store.add_project(project(slug, Some(owner))).await;
    added.unwrap();
    owner
}

pub async fn a_deploy_token_comes_back_as_it_was_with_its_project(place: &dyn Place) {
    let store = place.open().await;
    let owner = owned(&*store, "demo").await;
    let (new, secret) = new("ci", 20);
    let token = new.token.clone();
    assert_eq!(
        add(&*store, "demo", new.clone()).await,
        AddedDeployToken::Done
    );
    let found = store.find_deploy_token(secret.id()).await.unwrap().unwrap();
    assert!(found.is(&secret));
    assert_eq!(found.token, token);
    assert_eq!(found.project, project("demo", Some(owner)));
    assert!(!found.owner_is_suspended);
    assert_eq!(store.list_deploy_tokens("demo").await.unwrap(), [token]);
    assert_eq!(store.list_deploy_tokens("other").await.unwrap(), []);
    assert_eq!(store.find_deploy_token(Uuid::max()).await.unwrap(), None);
    let missing = store
        .add_deploy_token("other", new, Actor::Own.into())
        .await;
    let missing = missing.unwrap_err();
    assert!(matches!(missing, StoreError::Missing { table: "projects" }));
    let by = Actor::Operator;
    assert!(
        store
            .suspend_player(owner, None, by.into(), NOW)
            .await
            .unwrap()
    );
    let found = store.find_deploy_token(secret.id()).await.unwrap().unwrap();
    assert!(found.owner_is_suspended);
}

pub async fn valid_deploy_tokens_have_names_of_their_own_and_are_few(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    owned(&*store, "other").await;
    let (first, secret) = new("ci", 2);
    assert_eq!(add(&*store, "demo", first).await, AddedDeployToken::Done);
    assert_eq!(
        add(&*store, "demo", new("ci", 2).0).await,
        AddedDeployToken::NameTaken
    );
    assert_eq!(
        add(&*store, "other", new("ci", 2).0).await,
        AddedDeployToken::Done
    );
    assert_eq!(
        add(&*store, "demo", new("second", 2).0).await,
        AddedDeployToken::Done
    );
    assert_eq!(
        add(&*store, "demo", new("third", 2).0).await,
        AddedDeployToken::TooMany
    );
    // A revoked token makes room, and leaves its name.
    let revoked = store.revoke_deploy_token("demo", secret.id(), Actor::Own.into(), NOW);
    assert!(revoked.await.unwrap().is_some());
    assert_eq!(
        add(&*store, "demo", new("ci", 2).0).await,
        AddedDeployToken::Done
    );
    // So does an expired one.
    let mut later = new("ci", 2).0;
    later.token.created_at = NOW + 10_000;
    later.token.expires_at = NOW + 20_000;
    assert_eq!(add(&*store, "demo", later).await, AddedDeployToken::Done);
}

pub async fn a_revoked_deploy_token_is_found_as_revoked(place: &dyn Place) {
    let store = place.open().await;
    let owner = owned(&*store, "demo").await;
    owned(&*store, "other").await;
    let (new, secret) = new("ci", 20);
    add(&*store, "demo", new).await;
    let revoke = |slug: &'static str, now: Millis| {
        store.revoke_deploy_token(slug, secret.id(), Actor::Own.into(), now)
    };
    assert_eq!(revoke("other", NOW + 1).await.unwrap(), None);
    assert_eq!(revoke("none", NOW + 1).await.unwrap(), None);
    let revoked = revoke("demo", NOW + 1).await.unwrap().unwrap();
    assert_eq!(revoked.revoked_at, Some(NOW + 1));
    assert_eq!(revoke("demo", NOW + 2).await.unwrap(), None);
    let found = store.find_deploy_token(secret.id()).await.unwrap().unwrap();
    assert_eq!(found.token, revoked);
    assert_eq!(store.list_deploy_tokens("demo").await.unwrap(), []);
    let events = store
        .list_audit_events(AuditQuery::of(owner, 10))
        .await
        .unwrap();
    let told = events
        .iter()
        .map(|event| (event.kind, event.detail.as_deref()));
    let expected = [
        (AuditKind::DeployTokenRevoked, Some("ci")),
        (AuditKind::DeployTokenCreated, Some("ci: deploy-dev logs")),
    ];
    assert!(told.eq(expected), "{events:?}");
}

pub async fn the_last_use_of_a_deploy_token_only_ever_grows(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    let (new, secret) = new("ci", 20);
    add(&*store, "demo", new).await;
    for (day, expected) in [(NOW, NOW), (NOW - 1, NOW), (NOW + 1, NOW + 1)] {
        let noted = store.note_deploy_token_use(secret.id(), day).await;
        noted.unwrap();
        let found = store.find_deploy_token(secret.id()).await.unwrap().unwrap();
        assert_eq!(found.token.used_at, Some(expected));
    }
}

pub async fn deploy_tokens_end_with_their_projects_owner(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    let signed_in = store.complete_sign_in(sign_in("ada")).await.unwrap();
    let (new, secret) = new("ci", 20);
    add(&*store, "demo", new).await;
    let to = signed_in.player().unwrap().id;
    let by = || By::from(Actor::Operator);
    store
        .transfer_project("demo", to, by(), NOW + 5)
        .await
        .unwrap();
    let found = store.find_deploy_token(secret.id()).await.unwrap().unwrap();
    assert_eq!(found.token.revoked_at, Some(NOW + 5));
    // Nothing is left of a removed project's.
    let deleted = store.change_standing("demo", Change::Delete, by(), NOW);
    deleted.await.unwrap();
    let removed = store.remove_deleted(NOW, NOW).await.unwrap();
    assert_eq!(removed, Some(Removed::Whole("demo".into())));
    assert_eq!(store.find_deploy_token(secret.id()).await.unwrap(), None);
}

pub async fn the_newest_ended_deploy_tokens_are_kept(place: &dyn Place) {
    let store = place.open().await;
    owned(&*store, "demo").await;
    let mut ids = Vec::new();
    for number in 0..=ENDED_KEPT {
        let (new, secret) = new("ci", 20);
        add(&*store, "demo", new).await;
        let now = NOW + Millis::try_from(number).unwrap();
        let by = Actor::Own.into();
        let revoked = store.revoke_deploy_token("demo", secret.id(), by, now);
        assert!(revoked.await.unwrap().is_some());
        ids.push(secret.id());
    }
    add(&*store, "demo", new("ci", 20).0).await;
    assert_eq!(store.find_deploy_token(ids[0]).await.unwrap(), None);
    assert!(store.find_deploy_token(ids[1]).await.unwrap().is_some());
}

pub async fn an_act_with_a_deploy_token_names_it(place: &dyn Place) {
    let store = place.open().await;
    let owner = owned(&*store, "demo").await;
    let source = Source {
        network: "192.0.2.1".into(),
        request: "r".into(),
    };
    let environment = platform_protocol::names::Environment::Dev;
    let mut deployment = super::deployment("demo", environment, &["index.html"]);
    deployment.made.by = Some(owner);
    deployment.made.deploy_token = Some("ci".into());
    let by = By::deploy_token("ci".into(), source);
    store.add_deployment(deployment.clone(), by).await.unwrap();
    let found = store.find_deployment(deployment.id).await.unwrap();
    assert_eq!(found, Some(deployment.clone()));
    let current = store.find_current_deployment("demo", environment).await;
    assert_eq!(current.unwrap(), Some(deployment.clone()));
    let listed = store.list_deployments("demo", environment).await.unwrap();
    assert_eq!(listed[0].made, deployment.made);
    let events = store
        .list_audit_events(AuditQuery::of(owner, 10))
        .await
        .unwrap();
    let detail = format!("dev {} with the deploy token ci", deployment.id);
    assert_eq!(events[0].detail.as_deref(), Some(detail.as_str()));
    assert_eq!(events[0].actor, Actor::Own);
}

pub async fn of_many_deploy_tokens_at_once_no_more_are_added_than_may_be(place: &dyn Place) {
    let handles = Handles::open(place).await;
    owned(&*handles.next(), "demo").await;
    let mut adding = Vec::new();
    for number in 0..20 {
        let store = handles.next();
        let (new, _) = new(&format!("ci {number}"), 5);
        adding.push(tokio::spawn(async move { add(&*store, "demo", new).await }));
    }
    let mut added = 0;
    for adding in adding {
        added += usize::from(adding.await.unwrap() == AddedDeployToken::Done);
    }
    assert_eq!(added, 5);
    let listed = handles.next().list_deploy_tokens("demo").await.unwrap();
    assert_eq!(listed.len(), 5);
}
