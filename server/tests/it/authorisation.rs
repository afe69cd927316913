//! Who may make which call of the API, and how often: every call with every kind of caller.

use std::collections::BTreeSet;

use platform_protocol::claims::GameTokenClaims;
use platform_server::domain::audit::{Actor, AuditKind, AuditQuery};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::caller::{Caller, archive};
use crate::support::{NOW, TestApp, read, send};

/// The callers, in the order of the table's columns. Those from the suspended administrator on use
/// an administrator's tokens, or tokens derived from one; then come deploy tokens of the owner, and at
/// the end the project's members.
const CALLERS: [&str; 19] = [
    "anonymous",
    "guest",
    "other player",
    "owner",
    "admin",
    "suspended admin",
    "game token",
    "ended token",
    "nonsense",
    "admin who signed in long ago",
    "admin's device",
    "admin who signed out",
    "deploy token for dev",
    "deploy token for prod",
    "deploy token for logs",
    "revoked deploy token",
    "deploy token of another project",
    "viewer",
    "developer",
];

/// The result for each caller: success, or this problem.
type Row = [Option<&'static str>; 19];

const NO_TOKEN: Option<&str> = Some("not-signed-in");
const NO: Option<&str> = Some("not-allowed");
const MISSING: Option<&str> = Some("not-found");
const SUSPENDED: Option<&str> = Some("account-suspended");
const STEP_UP: Option<&str> = Some("step-up-required");

/// Everybody may call it, with any token.
const EVERYBODY: Row = [None; 19];
/// Everybody with a console token.
const ANYONE: Row = with_token([None, None, None, None]);
/// Everybody with an account.
const ACCOUNTS: Row = with_token([NO, None, None, None]);
/// The project's owner and administrators.
const OWNER: Row = guarded([NO, NO, None, None]);
/// The same, and the project's developers.
const WRITE: Row = scoped(OWNER, DEVELOPER, None);
/// The same, and the project's viewers.
const READ: Row = scoped(WRITE, VIEWER, None);
/// Those who may change the project, and deploy tokens with the scope `deploy-dev`.
const DEPLOY_DEV: Row = scoped(WRITE, 12, None);
/// The same with deploy tokens with the scope `deploy-prod`.
const DEPLOY_PROD: Row = scoped(WRITE, 13, None);
/// Those who may read the project, and deploy tokens with the scope `logs`.
const LOGS: Row = scoped(READ, 14, None);
/// Those who may read the project, and deploy tokens with the scope `deploy-dev`.
const PREVIEWS: Row = scoped(READ, 12, None);
/// The project's owner alone, for as long as the result lasts.
const OWNER_ALONE: Row = guarded([NO, NO, None, NO]);
/// Administrators.
const ADMIN: Row = guarded([NO, NO, NO, None]);
/// The resource does not exist, for everybody who may ask.
const NOTHING: Row = with_token([MISSING; 4]);
/// The project has no such resource, which only its owner and administrators learn.
const NOT_THERE: Row = guarded([NO, NO, MISSING, MISSING]);
/// The project has no such resource, which its owner alone learns.
const NOT_THE_OWNERS: Row = guarded([NO, NO, MISSING, NO]);
/// The project has no such resource, where everybody may ask who may read its logs.
const NO_LOG: Row = scoped(
    scoped(scoped(NOT_THERE, 14, MISSING), VIEWER, MISSING),
    DEVELOPER,
    MISSING,
);
/// The project is not offered to anybody, which everybody learns who may read it.
const NO_OFFER: Row = scoped(scoped(NOT_THERE, VIEWER, MISSING), DEVELOPER, MISSING);
/// The project is not offered to anybody, where those may accept who may change it.
const NO_OFFER_TO_ACCEPT: Row = scoped(NOT_THERE, DEVELOPER, MISSING);
/// The resource does not exist, for everybody with an account.
const NOTHING_FOR_ACCOUNTS: Row = with_token([NO, MISSING, MISSING, MISSING]);
/// The project has no such resource, where everybody may ask who may deploy to dev.
const NO_PREVIEW: Row = scoped(scoped(NOT_THERE, 12, MISSING), DEVELOPER, MISSING);
/// The player does not exist, which only administrators learn.
const NOBODY: Row = guarded([NO, NO, NO, MISSING]);

/// The column of the project's viewer.
const VIEWER: usize = 17;
/// The column of the project's developer.
const DEVELOPER: usize = 18;

/// Sets the results for guest, other player, owner and administrator; members get that of the other
/// player, and everybody else is refused.
const fn with_token([guest, other, owner, admin]: [Option<&'static str>; 4]) -> Row {
    [
        NO_TOKEN, guest, other, owner, admin, SUSPENDED, NO_TOKEN, NO_TOKEN, NO_TOKEN, admin,
        admin, NO_TOKEN, NO, NO, NO, NO_TOKEN, NO, other, other,
    ]
}

/// The same, with this result for the deploy token in the column `column`.
const fn scoped(mut row: Row, column: usize, result: Option<&'static str>) -> Row {
    row[column] = result;
    row
}

/// The same for calls in which an administrator may do more than others: without a recent sign-in
/// in a browser, an administrator has to sign in again.
const fn guarded(row: [Option<&'static str>; 4]) -> Row {
    let mut row = with_token(row);
    row[9] = STEP_UP;
    row[10] = STEP_UP;
    row
}

/// The body of a call.
enum Body {
    Nothing,
    Archive,
    Json(Value),
}

fn json(value: Value) -> Body {
    Body::Json(value)
}

/// A call: method, path as in the description, body, results.
type Call = (Method, &'static str, Body, Row);

macro_rules! project {
    ($rest:literal) => {
        concat!("/api/projects/{slug}", $rest)
    };
}

const NO_SUCH_TOKEN: &str = project!("/tokens/{token}");
const NO_GROUP: &str = project!("/error-groups/{group}");

/// Returns every call for previews.
fn of_previews() -> Vec<Call> {
    const ONE: &str = project!("/previews/{name}");
    let none = || Body::Nothing;
    vec![
        (Method::GET, project!("/previews"), none(), PREVIEWS),
        // None exists yet: who may remove one would remove it for all others.
        (Method::DELETE, ONE, none(), NO_PREVIEW),
        (Method::PUT, ONE, Body::Archive, DEPLOY_DEV),
        (
            Method::GET,
            project!("/previews/{name}/qr"),
            none(),
            PREVIEWS,
        ),
    ]
}

/// Returns every call about the domains of an environment.
fn of_domains() -> Vec<Call> {
    const ALL: &str = "/api/projects/{slug}/environments/{environment}/domains";
    const NO_DOMAIN: &str = "/api/projects/{slug}/environments/{environment}/domains/{domain}";
    const VERIFY: &str = "/api/projects/{slug}/environments/{environment}/domains/{domain}/verify";
    let claim = json(json!({ "domain": "{caller}.example" }));
    let lead = json(json!({ "canonical": true }));
    let none = || Body::Nothing;
    vec![
        (Method::GET, ALL, none(), READ),
        (Method::POST, ALL, claim, WRITE),
        (Method::PUT, NO_DOMAIN, lead, NO_OFFER_TO_ACCEPT),
        (Method::POST, VERIFY, none(), NO_OFFER_TO_ACCEPT),
        (Method::DELETE, NO_DOMAIN, none(), NO_OFFER_TO_ACCEPT),
    ]
}

/// Returns every call about the caller's own games.
fn of_players() -> Vec<Call> {
    const FAVOURITE: &str = "/api/me/favourites/{slug}";
    let none = || Body::Nothing;
    vec![
        (Method::GET, "/api/me/games", none(), ANYONE),
        (Method::PUT, "/api/me/favourites/demo", none(), ANYONE),
        // It is not in production yet.
        (Method::PUT, FAVOURITE, none(), NOTHING),
        (Method::DELETE, FAVOURITE, none(), ANYONE),
    ]
}

/// Returns every call about how a project is listed.
fn of_listings() -> Vec<Call> {
    const LISTING: &str = project!("/listing");
    let set = json(json!({ "listed": true, "own": { "author": "of-{caller}" } }));
    vec![
        (Method::GET, LISTING, Body::Nothing, READ),
        (Method::PUT, LISTING, set, WRITE),
    ]
}

/// Returns every call except those of administration.
fn of_projects(deployment: &str) -> Vec<Call> {
    let (get, post) = (Method::GET, Method::POST);
    let none = || Body::Nothing;
    let create = json(json!({ "slug": "of-{caller}" }));
    let test_user = json(json!({ "number": 1 }));
    let pane = json(json!({ "pane": 1, "number": 1 }));
    let new_token = json(json!({ "name": "of-{caller}", "scopes": ["logs"] }));
    let mut calls = vec![
        (get.clone(), "/api/openapi.json", none(), EVERYBODY),
        (get.clone(), "/api/ranking", none(), EVERYBODY),
        (get.clone(), "/api/projects", none(), ANYONE),
        (post.clone(), "/api/projects", create, ACCOUNTS),
        (get.clone(), project!(""), none(), READ),
        (get.clone(), "/api/projects/none", none(), NOTHING),
        (post.clone(), project!("/test-tokens"), test_user, WRITE),
        (post.clone(), project!("/panes"), pane, WRITE),
        (get.clone(), project!("/logs"), none(), LOGS),
        (get.clone(), project!("/logs/stream"), none(), LOGS),
        (get.clone(), project!("/players"), none(), READ),
        (get.clone(), project!("/players/chart"), none(), READ),
        (get.clone(), project!("/errors"), none(), LOGS),
        (get.clone(), project!("/error-groups"), none(), LOGS),
        (get.clone(), NO_GROUP, none(), NO_LOG),
        (
            Method::PUT,
            NO_GROUP,
            json(json!({ "state": "open" })),
            scoped(NOT_THERE, DEVELOPER, MISSING),
        ),
        (
            Method::DELETE,
            NO_GROUP,
            none(),
            scoped(NOT_THERE, DEVELOPER, MISSING),
        ),
        (Method::DELETE, project!("/error-groups"), none(), WRITE),
        (get, project!("/tokens"), none(), OWNER),
        (post.clone(), project!("/tokens"), new_token, OWNER_ALONE),
        (Method::DELETE, NO_SUCH_TOKEN, none(), NOT_THERE),
    ];
    calls.extend(of_people());
    calls.extend(of_previews());
    calls.extend(of_listings());
    calls.extend(of_domains());
    calls.extend(of_webhook());
    calls.extend(of_players());
    calls.extend(of_environments(deployment));
    calls.extend([
        // An owner cannot undo what an administrator took down. The last caller in each row leaves
        // the project as it was.
        (post.clone(), project!("/disable"), json(json!({})), OWNER),
        (post.clone(), project!("/enable"), none(), ADMIN),
        (Method::DELETE, project!(""), none(), OWNER),
        (post, project!("/restore"), none(), ADMIN),
    ]);
    calls
}

/// Returns every call about the webhook of a project.
fn of_webhook() -> Vec<Call> {
    let webhook = project!("/webhook");
    let none = || Body::Nothing;
    let wanted = json(json!({ "url": "http://127.0.0.1:4990/{caller}" }));
    vec![
        (Method::PUT, webhook, wanted, WRITE),
        (Method::GET, webhook, none(), READ),
        (Method::POST, project!("/webhook/test"), none(), WRITE),
        (Method::GET, project!("/webhook/deliveries"), none(), READ),
        (
            Method::POST,
            project!("/webhook/deliveries/{delivery}/replay"),
            none(),
            NO_OFFER_TO_ACCEPT,
        ),
        (Method::DELETE, webhook, none(), WRITE),
    ]
}

/// Returns every call about the people of a project.
fn of_people() -> Vec<Call> {
    const NOBODY_OF_IT: &str = project!("/people/{sub}");
    const NO_INVITATION: &str = project!("/invitations/{invitation}");
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    let none = || Body::Nothing;
    let viewer = || json(json!({ "role": "viewer" }));
    let heir = json(json!({ "sub": "00000000-0000-4000-8000-000000000000" }));
    let secret = || json(json!({ "secret": "platform_in_none" }));
    let invitations = project!("/invitations");
    let (handover, accept) = (project!("/handover"), project!("/handover/accept"));
    vec![
        (get.clone(), project!("/people"), none(), READ),
        (put.clone(), NOBODY_OF_IT, viewer(), NOT_THE_OWNERS),
        (delete.clone(), NOBODY_OF_IT, none(), NOT_THERE),
        (put, handover, heir, NOT_THE_OWNERS),
        (delete.clone(), handover, none(), NO_OFFER),
        (post.clone(), accept, none(), NO_OFFER_TO_ACCEPT),
        (get, invitations, none(), OWNER),
        (post.clone(), invitations, viewer(), OWNER_ALONE),
        (delete, NO_INVITATION, none(), NOT_THERE),
        (post.clone(), "/api/invitations/read", secret(), NOTHING),
        (
            post,
            "/api/invitations/accept",
            secret(),
            NOTHING_FOR_ACCOUNTS,
        ),
    ]
}

/// Returns every call for one environment of a project.
fn of_environments(deployment: &str) -> Vec<Call> {
    macro_rules! environment {
        ($rest:literal) => {
            concat!("/api/projects/{slug}/environments/{environment}", $rest)
        };
    }
    const FILE: &str = environment!("/deployments/{deployment}/file?path=index.html");
    const NO_FILE: &str = environment!("/deployments/{deployment}/file?path=none");
    let (get, put, post) = (Method::GET, Method::PUT, Method::POST);
    // Setting a value that is already set records no event.
    let backend = json(json!({ "url": "http://127.0.0.1:4990", "paths": ["/{caller}/"] }));
    let isolation = json(json!({ "cross_origin_isolated": false }));
    let tracing = json(json!({ "trace_requests": false }));
    let frames = json(json!({ "ancestors": ["https://{caller}.example"] }));
    let rollback = json(json!({ "deployment": deployment }));
    let none = || Body::Nothing;
    vec![
        (get.clone(), environment!(""), none(), READ),
        (get.clone(), FILE, none(), LOGS),
        (get, NO_FILE, none(), NO_LOG),
        (
            put.clone(),
            environment!("/deployment"),
            Body::Archive,
            DEPLOY_DEV,
        ),
        (
            put.clone(),
            "/api/projects/{slug}/environments/prod/deployment",
            Body::Archive,
            DEPLOY_PROD,
        ),
        (post, environment!("/rollback"), rollback, WRITE),
        (put.clone(), environment!("/backend"), backend, WRITE),
        (put.clone(), environment!("/isolation"), isolation, WRITE),
        (put.clone(), environment!("/tracing"), tracing, WRITE),
        (put, environment!("/frames"), frames, WRITE),
    ]
}

/// Returns every call of administration.
fn of_administration(owner: &Caller<'_>) -> Vec<Call> {
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    let reason = json!({ "reason": "Why." });
    let to = json(json!({ "owner": owner.sub }));
    let none = || Body::Nothing;
    macro_rules! player {
        ($rest:literal) => {
            concat!("/api/admin/players/{player}", $rest)
        };
    }
    macro_rules! nobody {
        ($rest:literal) => {
            concat!(
                "/api/admin/players/00000000-0000-4000-8000-000000000000",
                $rest
            )
        };
    }
    vec![
        (get.clone(), "/api/admin/players?query=otter", none(), ADMIN),
        (get.clone(), player!(""), none(), ADMIN),
        (get.clone(), nobody!(""), none(), NOBODY),
        (
            put.clone(),
            player!("/suspension"),
            json(reason.clone()),
            ADMIN,
        ),
        (put.clone(), nobody!("/suspension"), json(reason), NOBODY),
        (delete.clone(), player!("/suspension"), none(), ADMIN),
        (delete, nobody!("/suspension"), none(), NOBODY),
        (post.clone(), player!("/end-sessions"), none(), ADMIN),
        (post.clone(), nobody!("/end-sessions"), none(), NOBODY),
        (get.clone(), "/api/admin/events", none(), ADMIN),
        (get.clone(), "/api/admin/keys", none(), ADMIN),
        (post.clone(), "/api/admin/keys/rotate", none(), ADMIN),
        // If the key existed, all tokens of the table would become invalid.
        (post, "/api/admin/keys/{kid}/revoke", none(), NOBODY),
        (get.clone(), "/api/admin/guests", none(), ADMIN),
        (get.clone(), "/api/admin/nodes", none(), ADMIN),
        (get, "/api/admin/projects", none(), ADMIN),
        (put, "/api/admin/projects/{slug}/owner", to, ADMIN),
    ]
}

/// Returns an expired token like the caller's.
fn ended(caller: &Caller<'_>) -> String {
    let state = &caller.app.running.state;
    let now = u64::try_from(state.platform.clock.now() / 1_000).unwrap();
    let claims = GameTokenClaims {
        exp: now - 3_600,
        iat: now - 4_500,
        jti: state.platform.entropy.uuid_v4().to_string(),
        ..caller.claims()
    };
    state.auth.keys.sign(&claims).unwrap()
}

/// Returns the expected response to a successful call.
fn done(method: &Method, path: &str) -> (StatusCode, &'static str) {
    let makes = (method == Method::POST
        && (path == "/api/projects"
            || path.ends_with("/tokens")
            || path.ends_with("/domains")
            || path.ends_with("/invitations")))
        || path.ends_with("/deployment")
        || path.ends_with("/previews/rings");
    let status = if makes {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let media_type = match path.rsplit('/').next() {
        Some("stream") => "text/event-stream",
        Some("chart") => "image/svg+xml",
        Some(file) if file.starts_with("file?") => "application/octet-stream",
        _ => "application/json",
    };
    (status, media_type)
}

/// Makes a call, and checks everything in its response that depends on the caller.
async fn judge(
    request: RequestBuilder,
    cell: &str,
    (done, media_type): (StatusCode, &str),
    expected: Option<&str>,
) {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    // A stream has no end, so only refusals are read completely.
    let problem = if status.is_success() {
        assert_eq!(status, done, "{cell}");
        None
    } else {
        Some(read(response).await.problem())
    };
    assert_eq!(problem.as_deref(), expected, "{cell}: {status}");
    let refused = match expected {
        Some("not-signed-in") => StatusCode::UNAUTHORIZED,
        Some("not-found") => StatusCode::NOT_FOUND,
        Some(_) => StatusCode::FORBIDDEN,
        None => done,
    };
    assert_eq!(status, refused, "{cell}");
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap());
    // RFC 6750 §3
    let challenge = (status == StatusCode::UNAUTHORIZED).then_some("Bearer");
    assert_eq!(header("www-authenticate"), challenge, "{cell}");
    assert_eq!(header("cache-control"), Some("no-store"), "{cell}");
    if problem.is_none() {
        assert_eq!(header("content-type"), Some(media_type), "{cell}");
    }
}

#[tokio::test]
async fn every_call_is_answered_by_who_makes_it() {
    let app = TestApp::start().await;
    let (guest, other) = (Caller::guest(&app).await, Caller::account(&app).await);
    let (owner, admin) = (Caller::account(&app).await, Caller::admin(&app).await);
    let (suspended, target) = (Caller::admin(&app).await, Caller::account(&app).await);
    owner.create("game").await;
    let files = archive(&[("index.html", b"x")]);
    let deployed: Value = owner.deploy("dev", files.clone()).await.json();
    app.suspend(suspended.sub, None).await;
    app.learn_who_may_play().await;
    let (long_ago, signed_out) = (Caller::admin(&app).await, Caller::admin(&app).await);
    let sub = long_ago.sub.simple();
    app.sql(&format!(
        "UPDATE sessions SET authenticated_at = 0 WHERE player = X'{sub}'"
    ));
    assert_eq!(app.end_sessions(signed_out.sub).await, 1);
    let mut browser = crate::device::account(&app, "Ada").await;
    Caller::of(&app, &browser).await.grant().await;
    let device = crate::device::signed_in(&app, &mut browser).await.token();
    let game = app.post_token().header("cookie", &admin.cookie);
    let (id, revoked) = deploy_token(&owner, "game", "all").await;
    let path = format!("/api/projects/game/tokens/{id}");
    assert_eq!(send(owner.ask(Method::DELETE, &path)).await.status, 200);
    owner.create("other-game").await;
    let tokens = [
        String::new(),
        guest.token.clone(),
        other.token.clone(),
        owner.token.clone(),
        admin.token.clone(),
        suspended.token.clone(),
        send(game).await.token(),
        ended(&admin),
        "nonsense.of.all".to_owned(),
        long_ago.token.clone(),
        device,
        signed_out.token.clone(),
        deploy_token(&owner, "game", "deploy-dev").await.1,
        deploy_token(&owner, "game", "deploy-prod").await.1,
        deploy_token(&owner, "game", "logs").await.1,
        revoked,
        deploy_token(&owner, "other-game", "deploy-dev").await.1,
        owner.invite("viewer").await.token,
        owner.invite("developer").await.token,
    ];
    let mut calls = of_projects(deployed["id"].as_str().unwrap());
    calls.extend(of_administration(&owner));

    let mut described = described(&app).await;
    for (method, path, body, row) in &calls {
        let template = path.split('?').next().unwrap();
        described.remove(&format!("{method} {template}"));
        let path = path
            .replace("{slug}", "game")
            .replace("{environment}", "dev")
            .replace("{name}", "rings")
            .replace("{domain}", "none.example")
            .replace("{deployment}", deployed["id"].as_str().unwrap())
            .replace("{token}", "00000000-0000-7000-8000-000000000000")
            .replace("{sub}", "00000000-0000-4000-8000-000000000000")
            .replace("{invitation}", "00000000-0000-7000-8000-000000000000")
            .replace("{player}", &target.sub.to_string());
        for ((caller, token), expected) in CALLERS.iter().zip(&tokens).zip(row) {
            let mut request = app.request(method.clone(), "", &path);
            if !token.is_empty() {
                request = request.bearer_auth(token);
            }
            request = with_body(request, body, caller, &files);
            let cell = format!("{method} {path} by {caller}");
            judge(request, &cell, done(method, &path), *expected).await;
        }
    }
    assert_eq!(described, BTreeSet::new(), "these calls are in no row");
    look_at_events(&app, [&target, &owner], &admin).await;
}

/// Adds the body of a call, which may name the caller.
fn with_body(request: RequestBuilder, body: &Body, caller: &str, files: &[u8]) -> RequestBuilder {
    match body {
        Body::Nothing => request,
        Body::Archive => request
            .header("content-type", "application/gzip")
            .body(files.to_vec()),
        Body::Json(value) => {
            let name = caller.replace([' ', '\''], "-");
            let text = value.to_string().replace("{caller}", &name);
            request
                .header("content-type", "application/json")
                .body(text)
        }
    }
}

/// Creates a deploy token with this scope, or with all of them, and returns its id and its text.
async fn deploy_token(owner: &Caller<'_>, slug: &str, scope: &str) -> (String, String) {
    let scopes = match scope {
        "all" => vec!["deploy-dev", "deploy-prod", "logs"],
        scope => vec![scope],
    };
    let body = json!({ "name": scope, "scopes": scopes });
    let path = format!("/api/projects/{slug}/tokens");
    let answer = owner.post(&path, body).await;
    assert_eq!(answer.status, 201);
    let created: Value = answer.json();
    let text = |member: &str| created[member].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

/// Checks the events that the administrator's calls added to the audit log.
async fn look_at_events(app: &TestApp, [target, owner]: [&Caller<'_>; 2], admin: &Caller<'_>) {
    let events = app.events(AuditQuery::of(target.sub, 100)).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["sessions-ended", "unsuspended", "suspended"]);
    let by = Actor::Admin(admin.sub);
    assert!(events.iter().all(|event| event.actor == by), "{events:?}");
    // The owner sees what the administrator did to the game, and from where.
    let mut events = app.events(AuditQuery::of(owner.sub, 100)).await;
    events.retain(|event| event.actor == by);
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    let standings = [
        AuditKind::ProjectRestored,
        AuditKind::ProjectDeleted,
        AuditKind::ProjectEnabled,
        AuditKind::ProjectDisabled,
    ];
    let changes = [
        AuditKind::SettingChanged,
        AuditKind::BackendChanged,
        AuditKind::Deployed,
        AuditKind::Deployed,
        AuditKind::WebhookSet,
        AuditKind::DomainAdded,
        AuditKind::SettingChanged,
        AuditKind::PreviewDeployed,
        AuditKind::TestTokenGiven,
    ];
    assert_eq!(kinds, [&standings[..], &changes].concat());
    for event in events {
        assert_eq!(event.subject.as_deref(), Some("game"));
        assert_eq!(event.network.as_deref(), Some("127.0.0.1"));
        assert!(
            event.request.is_some() && (event.detail.is_some() || standings.contains(&event.kind)),
            "{event:?}"
        );
    }
}

/// Returns method and path of every call in the description.
async fn described(app: &TestApp) -> BTreeSet<String> {
    let description: Value = send(app.get("", "/api/openapi.json")).await.json();
    let paths = description["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods
                .filter(|key| ["get", "put", "post", "delete", "patch"].contains(&key.as_str()))
                .map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect()
}

#[tokio::test]
async fn a_suspension_of_this_moment_takes_an_administrators_rights() {
    let app = TestApp::start().await;
    let admin = Caller::admin(&app).await;
    assert_eq!(admin.get("/api/admin/keys").await.status, 200);
    // As with a command in another process: nothing in memory knows about it yet.
    app.suspend(admin.sub, None).await;
    let answer = admin.get("/api/admin/keys").await;
    assert_eq!(answer.problem(), "account-suspended");
    app.unsuspend(admin.sub).await;
    assert_eq!(admin.get("/api/admin/keys").await.status, 200);
    let store = &app.running.state.platform.store;
    let revoked = store
        .revoke_admin(admin.sub, Actor::Operator.into(), NOW)
        .await;
    assert!(revoked.unwrap());
    assert_eq!(admin.get("/api/admin/keys").await.problem(), "not-allowed");
}

#[tokio::test]
async fn the_settings_name_administrators_and_no_guest_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let app = TestApp::in_directory(directory, |_| {}).await;
    let (guest, account) = (Caller::guest(&app).await, Caller::account(&app).await);
    assert_eq!(
        account.get("/api/admin/keys").await.problem(),
        "not-allowed"
    );
    let named = vec![guest.sub, account.sub];
    let cookies = [guest.cookie.clone(), account.cookie.clone()];
    let app = app.restart(|config| config.admins = named).await;
    for (cookie, status) in cookies.iter().zip([403, 200]) {
        let caller = Caller::with_cookie(&app, Some(cookie)).await;
        assert_eq!(caller.get("/api/admin/keys").await.status, status);
    }
}

#[tokio::test]
async fn calls_are_limited_for_each_player() {
    let app = TestApp::start().await;
    let owner = Caller::account(&app).await;
    let other = Caller::account(&app).await;
    let mut refused = None;
    for count in 1..=201 {
        let answer = owner.get("/api/projects").await;
        if answer.status != 200 {
            refused = Some((count, answer));
            break;
        }
    }
    let (count, answer) = refused.unwrap();
    assert_eq!(count, 201, "two hundred at once are let through");
    assert_eq!(answer.problem(), "too-many-requests");
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(other.get("/api/projects").await.status, 200);
    // A caller who waits as long as the response said may continue, with twenty calls a second.
    app.clock.advance(1_000);
    for _ in 0..20 {
        assert_eq!(owner.get("/api/projects").await.status, 200);
    }
    assert_eq!(owner.get("/api/projects").await.status, 429);
    // Requests without a token are not counted, and slow down nobody else.
    for _ in 0..300 {
        let stranger = send(app.get("", "/api/projects")).await;
        assert_eq!(stranger.status, 401);
    }
}
