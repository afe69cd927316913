//! The people of a project: invitations, roles, leaving, and handing on.

use platform_server::domain::audit::{Actor, AuditKind, AuditQuery};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

const PEOPLE: &str = "/api/projects/game/people";
const INVITATIONS: &str = "/api/projects/game/invitations";
const HANDOVER: &str = "/api/projects/game/handover";
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Creates an invitation. Returns its description and its secret.
async fn invitation(owner: &Caller<'_>, role: &str) -> (Value, String) {
    let made = owner.post(INVITATIONS, json!({ "role": role })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let made: Value = made.json();
    let (page, secret) = made["link"].as_str().unwrap().split_once('#').unwrap();
    let console = owner.app.running.state.platform.origin.to_string();
    assert_eq!(page, format!("{console}/invitations"));
    let secret = secret.to_owned();
    (made, secret)
}

async fn accept(caller: &Caller<'_>, secret: &str) -> Answer {
    let body = json!({ "secret": secret });
    caller.post("/api/invitations/accept", body).await
}

async fn read(caller: &Caller<'_>, secret: &str) -> Answer {
    let body = json!({ "secret": secret });
    caller.post("/api/invitations/read", body).await
}

async fn remove(caller: &Caller<'_>, member: &Caller<'_>) -> Answer {
    let path = format!("{PEOPLE}/{}", member.sub);
    send(caller.ask(Method::DELETE, &path)).await
}

async fn offer(from: &Caller<'_>, to: &Caller<'_>) -> Answer {
    from.put(HANDOVER, json!({ "sub": to.sub })).await
}

async fn take_on(caller: &Caller<'_>) -> Answer {
    send(caller.ask(Method::POST, &format!("{HANDOVER}/accept"))).await
}

/// Returns id and role of the people of the project.
async fn people(caller: &Caller<'_>) -> Vec<(String, String)> {
    let list: Value = caller.get(PEOPLE).await.json();
    let people = list["people"].as_array().unwrap();
    let text = |person: &Value, member| person[member].as_str().unwrap().to_owned();
    let each = people.iter();
    each.map(|person| (text(person, "sub"), text(person, "role")))
        .collect()
}

fn pair(caller: &Caller<'_>, role: &str) -> (String, String) {
    (caller.sub.to_string(), role.to_owned())
}

#[tokio::test]
async fn an_invitation_shows_what_it_offers_and_is_used_once() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let (guest, ada) = (Caller::guest(&app).await, Caller::account(&app).await);
    let (made, secret) = invitation(&owner, "developer").await;
    let kept = app.sql_text("SELECT hex(hash) FROM invitations");
    assert_eq!(kept.len(), 64, "only a hash is kept");
    let listed: Value = owner.get(INVITATIONS).await.json();
    let mut told = made.clone();
    told.as_object_mut().unwrap().remove("link");
    assert_eq!(listed["invitations"], json!([told]));
    let offer: Value = read(&guest, &secret).await.json();
    assert_eq!(offer["slug"], "game");
    assert_eq!(offer["role"], "developer");
    assert_eq!(offer["your_role"], Value::Null);
    assert_eq!(offer["owner_username"], owner.claims().username);
    assert_eq!(accept(&guest, &secret).await.problem(), "not-allowed");
    let joined: Value = accept(&ada, &secret).await.json();
    assert_eq!(joined, json!({ "slug": "game", "role": "developer" }));
    for caller in [&ada, &owner] {
        assert_eq!(accept(caller, &secret).await.problem(), "not-found");
        assert_eq!(read(caller, &secret).await.problem(), "not-found");
    }
    let expected = [pair(&owner, "owner"), pair(&ada, "developer")];
    assert_eq!(people(&ada).await, expected);
    let mine: Value = ada.get("/api/projects").await.json();
    assert_eq!(mine["projects"][0]["slug"], "game");
    assert_eq!(mine["projects"][0]["role"], "developer");
}

#[tokio::test]
async fn an_invitation_ends_when_it_is_withdrawn_or_a_week_has_passed() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let ada = Caller::account(&app).await;
    let (made, secret) = invitation(&owner, "viewer").await;
    let path = format!("{INVITATIONS}/{}", made["id"].as_str().unwrap());
    assert_eq!(send(owner.ask(Method::DELETE, &path)).await.status, 200);
    assert_eq!(accept(&ada, &secret).await.problem(), "not-found");
    let again = send(owner.ask(Method::DELETE, &path)).await;
    assert_eq!(again.problem(), "not-found");
    let (_, secret) = invitation(&owner, "viewer").await;
    app.clock.advance(7 * DAY);
    let ada = Caller::with_cookie(&app, Some(&ada.cookie)).await;
    assert_eq!(read(&ada, &secret).await.problem(), "not-found");
    assert_eq!(accept(&ada, &secret).await.problem(), "not-found");
}

#[tokio::test]
async fn what_could_not_be_meant_is_refused() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    for role in [json!("owner"), json!("admin"), json!(""), json!(null)] {
        let answer = owner.post(INVITATIONS, json!({ "role": role })).await;
        assert_eq!(answer.problem(), "invalid-request", "{role}");
    }
    let own = format!("{PEOPLE}/{}", owner.sub);
    let answer = owner.put(&own, json!({ "role": "viewer" })).await;
    assert_eq!(answer.problem(), "not-allowed");
    assert_eq!(remove(&owner, &owner).await.problem(), "not-allowed");
    let heir = json!({ "sub": owner.sub });
    let answer = owner.put(HANDOVER, heir).await;
    assert_eq!(answer.problem(), "invalid-request");
    for _ in 0..20 {
        invitation(&owner, "viewer").await;
    }
    let answer = owner.post(INVITATIONS, json!({ "role": "viewer" })).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.problem(), "quota-exceeded");
}

#[tokio::test]
async fn a_role_holds_from_the_next_request_on() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let ada = owner.invite("viewer").await;
    let files = || archive(&[("index.html", b"x")]);
    let deploy = async || ada.deploy("dev", files()).await;
    assert_eq!(deploy().await.problem(), "not-allowed");
    let path = format!("{PEOPLE}/{}", ada.sub);
    let changed = owner.put(&path, json!({ "role": "developer" })).await;
    assert_eq!(changed.json::<Value>()["role"], "developer");
    assert_eq!(deploy().await.status, StatusCode::CREATED);
    let shown: Value = ada.get("/api/projects/game").await.json();
    let deployment = &shown["environments"]["dev"]["deployment"];
    assert_eq!(deployment["deployed_by"]["sub"], ada.sub.to_string());
    assert_eq!(shown["role"], "developer");
    // The owner sees who did it.
    let events = app.events(AuditQuery::of(owner.sub, 1)).await;
    assert_eq!(events[0].kind, AuditKind::Deployed);
    assert_eq!(events[0].actor, Actor::Member(ada.sub));
    owner.put(&path, json!({ "role": "viewer" })).await;
    assert_eq!(deploy().await.problem(), "not-allowed");
    assert_eq!(ada.get("/api/projects/game").await.status, 200);
    assert_eq!(remove(&owner, &ada).await.status, 200);
    assert_eq!(ada.get("/api/projects/game").await.problem(), "not-allowed");
    let mine: Value = ada.get("/api/projects").await.json();
    assert_eq!(mine["projects"], json!([]));
}

#[tokio::test]
async fn who_was_removed_or_may_do_less_does_not_come_back_by_another_link() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let ada = owner.invite("developer").await;
    let (_, first) = invitation(&owner, "developer").await;
    let path = format!("{PEOPLE}/{}", ada.sub);
    let lowered = owner.put(&path, json!({ "role": "viewer" })).await;
    let lowered: Value = lowered.json();
    assert_eq!(lowered["invitations_withdrawn"], 1);
    assert_eq!(accept(&ada, &first).await.problem(), "not-found");
    let (_, second) = invitation(&owner, "viewer").await;
    let (_, third) = invitation(&owner, "developer").await;
    let removed: Value = remove(&owner, &ada).await.json();
    assert_eq!(removed["sub"], ada.sub.to_string());
    assert_eq!(removed["invitations_withdrawn"], 2);
    for secret in [&second, &third] {
        assert_eq!(accept(&ada, secret).await.problem(), "not-found");
    }
    let listed: Value = owner.get(INVITATIONS).await.json();
    assert_eq!(listed["invitations"], json!([]));
    let events = app.events_of(AuditKind::InvitationWithdrawn).await;
    assert_eq!(events.len(), 3);
    // An invitation that is made afterwards admits the same person.
    let (_, new) = invitation(&owner, "viewer").await;
    assert_eq!(accept(&ada, &new).await.status, 200);
    let (_, open) = invitation(&owner, "viewer").await;
    let left: Value = remove(&ada, &ada).await.json();
    assert_eq!(left["invitations_withdrawn"], 0);
    assert_eq!(read(&ada, &open).await.status, 200);
}

#[tokio::test]
async fn the_owner_learns_what_a_removed_developer_has_set() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let ada = owner.invite("developer").await;
    let webhook = async |caller: &Caller<'_>| {
        let wanted = json!({ "url": "https://hooks.example/alerts" });
        let set = caller.put("/api/projects/game/webhook", wanted).await;
        assert_eq!(set.status, 200, "{set:?}");
    };
    webhook(&ada).await;
    let backend = json!({ "url": "http://127.0.0.1:4990" });
    let path = "/api/projects/game/environments/prod/backend";
    assert_eq!(ada.put(path, backend).await.status, 200);
    let outlets = async || {
        let list: Value = owner.get(PEOPLE).await.json();
        list["outlets"].clone()
    };
    let by_ada = json!({ "sub": ada.sub, "username": ada.claims().username });
    let of_prod = json!({ "outlet": "backend-prod", "set_by": by_ada });
    let of_webhook = json!({ "outlet": "webhook", "set_by": by_ada });
    assert_eq!(outlets().await, json!([of_webhook, of_prod]));
    let removed: Value = remove(&owner, &ada).await.json();
    assert_eq!(removed["left"], json!(["webhook", "backend-prod"]));
    assert_eq!(outlets().await, json!([of_webhook, of_prod]), "it stays");
    webhook(&owner).await;
    let backend = json!({ "url": null });
    assert_eq!(owner.put(path, backend).await.status, 200);
    let by_owner = json!({ "sub": owner.sub, "username": owner.claims().username });
    let expected = json!([{ "outlet": "webhook", "set_by": by_owner }]);
    assert_eq!(outlets().await, expected);
}

#[tokio::test]
async fn a_member_may_leave_and_remove_nobody_else() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let (ada, ben) = (
        owner.invite("developer").await,
        owner.invite("viewer").await,
    );
    assert_eq!(remove(&ada, &ben).await.problem(), "not-allowed");
    assert_eq!(remove(&ada, &owner).await.problem(), "not-allowed");
    assert_eq!(remove(&ben, &ben).await.status, 200);
    assert_eq!(ben.get(PEOPLE).await.problem(), "not-allowed");
    let expected = [pair(&owner, "owner"), pair(&ada, "developer")];
    assert_eq!(people(&owner).await, expected);
    // An administrator may remove somebody, and invites nobody.
    let admin = Caller::admin(&app).await;
    let answer = admin.post(INVITATIONS, json!({ "role": "viewer" })).await;
    assert_eq!(answer.problem(), "not-allowed");
    assert_eq!(remove(&admin, &ada).await.status, 200);
    let events = app.events_of(AuditKind::MemberRemoved).await;
    let actors: Vec<_> = events.iter().map(|event| event.actor).collect();
    assert_eq!(actors, [Actor::Admin(admin.sub), Actor::Member(ben.sub)]);
}

#[tokio::test]
async fn a_project_is_handed_on_with_what_its_owner_made_ended() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let ada = owner.invite("developer").await;
    let (_, secret) = invitation(&owner, "developer").await;
    let body = json!({ "name": "ci", "scopes": ["logs"] });
    let token: Value = owner.post("/api/projects/game/tokens", body).await.json();
    let token = owner.with_token(token["secret"].as_str().unwrap());
    assert_eq!(token.get("/api/projects/game/logs").await.status, 200);
    assert_eq!(offer(&ada, &owner).await.problem(), "not-allowed");
    let stranger = Caller::account(&app).await;
    assert_eq!(offer(&owner, &stranger).await.problem(), "not-found");
    let offered: Value = offer(&owner, &ada).await.json();
    assert_eq!(offered["sub"], ada.sub.to_string());
    // Nothing has changed yet.
    let expected = [pair(&owner, "owner"), pair(&ada, "developer")];
    assert_eq!(people(&owner).await, expected);
    assert_eq!(token.get("/api/projects/game/logs").await.status, 200);
    assert_eq!(take_on(&owner).await.problem(), "not-found");
    let handed: Value = take_on(&ada).await.json();
    assert_eq!(handed["owner"], ada.sub.to_string());
    assert_eq!(handed["role"], "owner");
    let expected = [pair(&ada, "owner"), pair(&owner, "developer")];
    assert_eq!(people(&owner).await, expected);
    assert_eq!(offer(&owner, &ada).await.problem(), "not-allowed");
    assert_eq!(accept(&stranger, &secret).await.problem(), "not-found");
    let refused = token.get("/api/projects/game/logs").await;
    assert_eq!(refused.problem(), "not-signed-in");
    assert_eq!(offer(&ada, &owner).await.status, 200);
    assert_eq!(take_on(&owner).await.status, 200);
}

#[tokio::test]
async fn an_offer_is_shown_to_whom_it_concerns_and_ends_when_either_wants_it() {
    let app = TestApp::start().await;
    let owner = Caller::with_project(&app).await;
    let (ada, ben) = (
        owner.invite("developer").await,
        owner.invite("viewer").await,
    );
    let admin = Caller::admin(&app).await;
    let shown = async |caller: &Caller<'_>| {
        let list: Value = caller.get(PEOPLE).await.json();
        list["handover"].clone()
    };
    let end = async |caller: &Caller<'_>| send(caller.ask(Method::DELETE, HANDOVER)).await;
    assert_eq!(shown(&owner).await, Value::Null);
    for (ends, kind) in [
        (&owner, AuditKind::HandoverWithdrawn),
        (&ada, AuditKind::HandoverDeclined),
        (&admin, AuditKind::HandoverWithdrawn),
    ] {
        let offered: Value = offer(&owner, &ada).await.json();
        for caller in [&owner, &ada, &admin] {
            assert_eq!(shown(caller).await, offered);
        }
        assert_eq!(shown(&ben).await, Value::Null);
        assert_eq!(end(&ben).await.problem(), "not-found");
        assert_eq!(take_on(&ben).await.problem(), "not-allowed");
        assert_eq!(take_on(&admin).await.problem(), "not-found");
        let ended: Value = end(ends).await.json();
        assert_eq!(ended, offered);
        assert_eq!(app.events_of(kind).await[0].other, Some(ada.sub));
        assert_eq!(take_on(&ada).await.problem(), "not-found");
    }
    offer(&owner, &ada).await;
    app.clock.advance(7 * DAY);
    let ada = Caller::with_cookie(&app, Some(&ada.cookie)).await;
    assert_eq!(shown(&ada).await, Value::Null);
    assert_eq!(take_on(&ada).await.problem(), "not-found");
}

#[tokio::test]
async fn whoever_owns_as_many_projects_as_an_account_may_takes_on_no_other() {
    let app = TestApp::with(|config| config.projects_per_account = 1).await;
    let owner = Caller::with_project(&app).await;
    let ada = owner.invite("developer").await;
    let made = ada.post("/api/projects", json!({ "slug": "other" })).await;
    assert_eq!(made.status, StatusCode::CREATED);
    // What counts is how many there are when it is accepted.
    assert_eq!(offer(&owner, &ada).await.status, 200);
    let refused = take_on(&ada).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.problem(), "quota-exceeded");
    let expected = [pair(&owner, "owner"), pair(&ada, "developer")];
    assert_eq!(people(&owner).await, expected);
}

#[tokio::test]
async fn a_suspended_member_does_nothing_and_the_game_stays() {
    let app = TestApp::start().await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    let ada = owner.invite("developer").await;
    app.suspend(ada.sub, None).await;
    app.learn_who_may_play().await;
    let refused = ada.get("/api/projects/game").await;
    assert_eq!(refused.problem(), "account-suspended");
    let heir = json!({ "sub": ada.sub });
    let answer = owner.put(HANDOVER, heir).await;
    assert_eq!(answer.problem(), "not-allowed");
    let (_, secret) = invitation(&owner, "viewer").await;
    assert_eq!(accept(&ada, &secret).await.problem(), "account-suspended");
    let shown: Value = owner.get("/api/projects/game").await.json();
    assert_eq!(shown["standing"]["state"], "live");
}
