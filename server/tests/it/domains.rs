//! Domains of games' own: claiming, proving by DNS records, serving, the canonical address, and losing
//! them again.

use platform_protocol::names::Environment;
use platform_server::clock::Clock as _;
use platform_server::domain::audit::{Actor, AuditKind};
use platform_server::domain::custom_domain::{CustomDomain, DomainState};
use platform_server::domain::takedown::Change;
use platform_server::projects::domains::look_at_domains;
use platform_server::projects::domains::records::{Permission, Records};
use platform_test_dns::{A, AAAA, RData, TestDns};
use platform_test_ports::ReservedPort;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::caller::{Caller, archive};
use crate::operations;
use crate::support::{Answer, TestApp, send};

const ALL: &str = "/api/projects/game/environments/prod/domains";
const PAGE: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
const HOUR: i64 = 60 * 60 * 1_000;
const DAY: i64 = 24 * HOUR;

/// A platform that asks this name server.
async fn app_of(dns: &TestDns) -> TestApp {
    let resolver = vec![dns.address];
    TestApp::with(|config| config.resolver = resolver).await
}

/// Writes both records that this domain needs, as the API describes them.
pub(crate) fn prove(dns: &TestDns, domain: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let record = &domain["record"];
    dns.text(&text(&record["name"]), &text(&record["value"]));
    dns.alias(&text(&domain["domain"]), &text(&domain["target"]));
}

async fn claim(owner: &Caller<'_>, path: &str, domain: &str) -> Answer {
    owner.post(path, json!({ "domain": domain })).await
}

/// Claims a domain for production of the project `game`.
async fn claimed(owner: &Caller<'_>, domain: &str) -> Value {
    let answer = claim(owner, ALL, domain).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

async fn verify(owner: &Caller<'_>, path: &str, domain: &str) -> Answer {
    let path = format!("{path}/{domain}/verify");
    send(owner.ask(Method::POST, &path)).await
}

/// Claims a domain and proves it.
async fn active(owner: &Caller<'_>, dns: &TestDns, domain: &str) -> Value {
    let claimed = claimed(owner, domain).await;
    prove(dns, &claimed);
    let verified: Value = verify(owner, ALL, domain).await.json();
    assert_eq!(verified["state"], "active", "{verified}");
    verified
}

fn at(app: &TestApp, domain: &str, path: &str) -> reqwest::RequestBuilder {
    let host = format!("{domain}:{}", app.port());
    app.request_host(Method::GET, &host, path)
        .header("accept", PAGE)
}

async fn page(app: &TestApp, domain: &str) -> Answer {
    send(at(app, domain, "/")).await
}

async fn problem(app: &TestApp, domain: &str) -> String {
    let host = format!("{domain}:{}", app.port());
    send(app.request_host(Method::GET, &host, "/"))
        .await
        .problem()
}

/// The domains of the project `game`, as the store has them.
async fn kept(app: &TestApp) -> Vec<CustomDomain> {
    let store = &app.running.state.platform.store;
    store.list_domains("game").await.unwrap()
}

async fn look(app: &TestApp) -> usize {
    look_at_domains(&app.running.state.projects).await.unwrap()
}

#[tokio::test]
async fn a_domain_is_claimed_proven_served_and_removed() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    let domain = claimed(&owner, "Play.Example.").await;
    let token = domain["record"]["value"].as_str().unwrap().to_owned();
    assert!(token.starts_with("platform-verify="), "{token}");
    for (member, expected) in [
        ("domain", json!("play.example")),
        ("state", json!("pending")),
        ("detail", Value::Null),
        ("canonical", json!(false)),
        ("target", json!("game.platform.localhost")),
        ("url", json!(format!("http://play.example:{}", app.port()))),
        (
            "record",
            json!({ "name": "_platform.play.example", "type": "TXT", "value": token }),
        ),
    ] {
        assert_eq!(domain[member], expected, "{member}");
    }
    let again = claim(&owner, ALL, "play.example").await;
    assert_eq!(again.problem(), "domain-taken");

    let verified = async || -> Value { verify(&owner, ALL, "play.example").await.json() };
    let detail = verified().await["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("no TXT record at _platform.play.example"));
    assert!(detail.contains("leads nowhere yet"), "{detail}");
    dns.text("_platform.play.example", &token);
    dns.add("play.example", RData::A(A::new(203, 0, 113, 9)));
    let found = verified().await;
    let detail = found["detail"].as_str().unwrap();
    assert!(detail.starts_with("play.example leads to 203.0.113.9"));
    assert_eq!(found["state"], "pending");
    assert_eq!(problem(&app, "play.example").await, "unknown-host");

    dns.remove("play.example");
    dns.alias("play.example", "game.platform.localhost");
    let found = verified().await;
    assert_eq!(
        (&found["state"], &found["detail"]),
        (&json!("active"), &Value::Null)
    );
    assert_eq!(page(&app, "play.example").await.text(), "x");
    assert_eq!(page(&app, "PLAY.example").await.text(), "x");
    for other in ["www.play.example", "play.example.", "example"] {
        assert_eq!(problem(&app, other).await, "unknown-host", "{other}");
    }
    let list: Value = owner.get(ALL).await.json();
    assert_eq!(list, json!({ "domains": [found], "most": 10 }));
    let dev: Value = owner.get(&ALL.replace("prod", "dev")).await.json();
    assert_eq!(dev["domains"], json!([]));

    let removed = send(owner.ask(Method::DELETE, &format!("{ALL}/play.example"))).await;
    assert_eq!(
        (removed.status, removed.body.len()),
        (StatusCode::NO_CONTENT, 0)
    );
    assert_eq!(problem(&app, "play.example").await, "unknown-host");
    // The record that was left behind proves nothing.
    let anew = claimed(&owner, "play.example").await;
    assert_ne!(anew["record"]["value"], token);
    let found = verified().await;
    assert_eq!(found["state"], "pending");
    let detail = found["detail"].as_str().unwrap();
    assert!(detail.contains(&token), "{detail}");
    let kinds = [
        (AuditKind::DomainAdded, 2),
        (AuditKind::DomainActivated, 1),
        (AuditKind::DomainRemoved, 1),
    ];
    for (kind, count) in kinds {
        let events = app.events_of(kind).await;
        assert_eq!(events.len(), count, "{kind:?}");
        assert_eq!(events[0].detail.as_deref(), Some("prod play.example"));
    }
}

#[tokio::test]
async fn a_game_has_its_own_session_at_its_domain() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    active(&owner, &dns, "play.example").await;
    let origin = format!("http://play.example:{}", app.port());
    // The auth service's cookie never comes from there.
    let refused = app
        .request(Method::POST, "auth", "/token")
        .header("origin", &origin);
    assert_eq!(send(refused).await.problem(), "unknown-origin");
    let host = format!("play.example:{}", app.port());
    let token = app
        .request_host(Method::POST, &host, "/__platform/token")
        .header("origin", &origin);
    let answer = send(token).await;
    assert_eq!(answer.claims().aud, "game:game");
    let visit = at(&app, "play.example", "/level?a=b")
        .header("sec-fetch-mode", "navigate")
        .header("sec-fetch-dest", "document");
    let visit = send(visit).await;
    assert_eq!(visit.status, 302);
    let to = url::form_urlencoded::byte_serialize(origin.as_bytes()).collect::<String>();
    let location = visit.header("location").unwrap();
    assert!(
        location.contains(&format!("/continue?to={to}&state=")),
        "{location}"
    );
    // A sign-in returns there.
    let login = app.get("auth", "/login").query(&[("redirect", &origin)]);
    assert_eq!(send(login).await.status, 200);
}

#[tokio::test]
async fn names_that_cannot_be_a_domain_are_refused() {
    let port = ReservedPort::take().unwrap();
    let app = TestApp::with(|config| {
        config.listen = port.address();
        let games = format!("http://all.games.localhost:{}", port.number());
        config.games_origin = Some(games.parse().unwrap());
    });
    let app = app.await;
    let owner = Caller::with_project(&app).await;
    for name in [
        "platform.localhost",
        "auth.platform.localhost",
        "game.platform.localhost",
        "all.games.localhost",
        "x.y.ALL.games.localhost.",
        "games.localhost",
        "localhost",
        "co.uk",
        "*.play.example",
        "192.0.2.1",
        "[::1]",
        "play.example:443",
        "https://play.example",
        "play.example/",
        "_platform.play.example",
        "p\u{430}ypal.example",
        "",
    ] {
        let answer = claim(&owner, ALL, name).await;
        assert_eq!(answer.problem(), "invalid-domain", "{name}");
        assert_eq!(answer.status, 422);
    }
    for body in [
        json!({}),
        json!({ "domain": 1 }),
        json!({ "domain": "a.example", "x": 1 }),
    ] {
        assert_eq!(owner.post(ALL, body).await.problem(), "invalid-request");
    }
    let local = claimed(&owner, "play.localhost").await;
    assert_eq!(local["target"], "game.all.games.localhost");
    for number in 1..10 {
        claimed(&owner, &format!("g{number}.example")).await;
    }
    let more = claim(&owner, ALL, "more.example").await;
    assert_eq!(more.problem(), "quota-exceeded");
    for path in ["x.example", "..", "%2e%2e", "g1.example/verify/x", "%FF"] {
        let answer = send(owner.ask(Method::DELETE, &format!("{ALL}/{path}"))).await;
        assert!(
            answer.status == 404 || answer.status == 405,
            "{path}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn a_domain_goes_to_the_project_that_proves_it_first() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    let other = Caller::account(&app).await;
    assert_eq!(other.create("other").await.status, 201);
    let all = ALL.replace("/game/", "/other/");
    let squatted = claimed(&owner, "play.example").await;
    let claimed: Value = claim(&other, &all, "play.example").await.json();
    assert_ne!(squatted["record"]["value"], claimed["record"]["value"]);
    prove(&dns, &claimed);
    let first: Value = verify(&owner, ALL, "play.example").await.json();
    assert_eq!(first["state"], "pending");
    let verified: Value = verify(&other, &all, "play.example").await.json();
    assert_eq!(verified["state"], "active");
    // Even with its record the other project does not get it now.
    prove(&dns, &squatted);
    let late = verify(&owner, ALL, "play.example").await;
    assert_eq!(
        (late.status.as_u16(), late.problem()),
        (409, "domain-taken".into())
    );
    let third = Caller::account(&app).await;
    assert_eq!(third.create("third").await.status, 201);
    let late = claim(&third, &ALL.replace("/game/", "/third/"), "play.example").await;
    assert_eq!(late.problem(), "domain-taken");
}

#[tokio::test]
async fn a_domain_whose_records_are_gone_is_taken_off_after_72_hours() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    let domain = active(&owner, &dns, "play.example").await;
    assert_eq!(look(&app).await, 0, "it is not due");
    app.clock.advance(DAY);
    assert_eq!(look(&app).await, 1);
    assert_eq!(kept(&app).await[0].state, DomainState::Active);

    app.clock.advance(DAY);
    dns.remove("play.example");
    look(&app).await;
    let failing = kept(&app).await.remove(0);
    assert_eq!(failing.state, DomainState::Failing);
    assert!(failing.detail.unwrap().contains("leads nowhere yet"));
    assert_eq!(page(&app, "play.example").await.text(), "x");
    app.clock.advance(72 * HOUR - 1);
    look(&app).await;
    assert_eq!(page(&app, "play.example").await.text(), "x");
    app.clock.advance(1);
    look(&app).await;
    assert_eq!(problem(&app, "play.example").await, "unknown-host");
    let off = kept(&app).await.remove(0);
    assert_eq!(off.state, DomainState::Pending);
    assert_ne!(
        off.token.record(),
        domain["record"]["value"].as_str().unwrap()
    );
    assert_eq!(app.events_of(AuditKind::DomainTakenOff).await.len(), 1);

    // Its records as they were before do not bring it back.
    dns.alias("play.example", "game.platform.localhost");
    let owner = owner.sign_in_again().await;
    let verified: Value = verify(&owner, ALL, "play.example").await.json();
    assert_eq!(verified["state"], "pending");
    app.clock.advance(7 * DAY);
    look(&app).await;
    assert_eq!(kept(&app).await, []);
}

#[tokio::test]
async fn name_servers_that_fail_take_nothing_off_at_once() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    active(&owner, &dns, "play.example").await;
    dns.fail(true);
    app.clock.advance(DAY);
    look(&app).await;
    let unclear = kept(&app).await.remove(0);
    assert_eq!(unclear.state, DomainState::Active);
    let detail = unclear.detail.unwrap();
    assert!(detail.contains("could not be read"), "{detail}");
    dns.fail(false);
    app.clock.advance(HOUR);
    look(&app).await;
    assert_eq!(kept(&app).await[0].detail, None);
}

#[tokio::test]
async fn a_domain_may_lead_to_the_addresses_that_the_operator_names() {
    let dns = TestDns::start().await;
    let resolver = vec![dns.address];
    let app = TestApp::with(|config| {
        config.resolver = resolver;
        config.domain_addresses = vec!["192.0.2.0/24".parse().unwrap()];
    });
    let app = app.await;
    let owner = Caller::with_project(&app).await;
    let domain = claimed(&owner, "play.example").await;
    let record = domain["record"]["value"].as_str().unwrap();
    dns.text("_platform.play.example", "v=spf1 -all");
    dns.text("_platform.play.example", record);
    dns.add("play.example", RData::A(A::new(192, 0, 2, 7)));
    let stray = AAAA("2001:db8::1".parse().unwrap());
    dns.add("play.example", RData::AAAA(stray));
    let verified: Value = verify(&owner, ALL, "play.example").await.json();
    let detail = verified["detail"].as_str().unwrap();
    assert!(detail.contains("leads to 2001:db8::1"), "{detail}");
    dns.remove("play.example");
    dns.add("play.example", RData::A(A::new(192, 0, 2, 7)));
    let verified: Value = verify(&owner, ALL, "play.example").await.json();
    assert_eq!(verified["state"], "active");
}

#[tokio::test]
async fn the_other_addresses_redirect_to_the_canonical_one() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    active(&owner, &dns, "play.example").await;
    let second = claimed(&owner, "second.example").await;
    let path = format!("{ALL}/play.example");
    let lead = async |path: &str, canonical: bool| {
        owner.put(path, json!({ "canonical": canonical })).await
    };
    let refused = lead(&format!("{ALL}/second.example"), true).await;
    assert_eq!(refused.problem(), "invalid-request");
    prove(&dns, &second);
    assert_eq!(verify(&owner, ALL, "second.example").await.status, 200);
    let set: Value = lead(&path, true).await.json();
    assert_eq!(set["canonical"], true);

    let canonical = format!("http://play.example:{}", app.port());
    for host in ["game.platform.localhost", "second.example"] {
        for method in [Method::GET, Method::HEAD, Method::POST] {
            let host = format!("{host}:{}", app.port());
            let moved = send(app.request_host(method, &host, "/level/2?a=%2F&b")).await;
            assert_eq!(moved.status, 308, "{host}");
            let to = format!("{canonical}/level/2?a=%2F&b");
            assert_eq!(moved.header("location"), Some(to.as_str()));
            assert_eq!(moved.header("cache-control"), Some("no-store"));
        }
        // What belongs to a page that is open there stays.
        let host = format!("{host}:{}", app.port());
        let runtime = app.request_host(Method::GET, &host, "/__platform/runtime.js");
        assert_eq!(send(runtime).await.status, 200);
        let part = app.request_host(Method::GET, &host, "/index.html");
        assert_eq!(
            send(part.header("sec-fetch-mode", "no-cors")).await.status,
            200
        );
    }
    assert_eq!(page(&app, "play.example").await.text(), "x");
    owner
        .deploy("dev", archive(&[("index.html", b"dev")]))
        .await;
    assert_eq!(send(app.get("dev-game", "/")).await.text(), "dev");

    // To a domain that fails nobody is sent.
    dns.remove("play.example");
    let failing: Value = verify(&owner, ALL, "play.example").await.json();
    assert_eq!(
        (&failing["state"], &failing["canonical"]),
        (&json!("failing"), &json!(true))
    );
    assert_eq!(send(app.get("game", "/")).await.status, 200);
    dns.alias("play.example", "game.platform.localhost");
    verify(&owner, ALL, "play.example").await;
    assert_eq!(send(app.get("game", "/")).await.status, 308);
    assert_eq!(lead(&path, false).await.status, 200);
    assert_eq!(send(app.get("game", "/")).await.status, 200);
    let details: Vec<_> = app
        .events_of(AuditKind::DomainCanonical)
        .await
        .into_iter()
        .filter_map(|event| event.detail)
        .collect();
    assert_eq!(details, ["prod play.example off", "prod play.example"]);
}

#[tokio::test]
async fn a_game_that_is_taken_down_is_down_at_its_domain() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    active(&owner, &dns, "play.example").await;
    let path = "/api/projects/game/disable";
    assert_eq!(owner.post(path, json!({})).await.status, 200);
    assert_eq!(problem(&app, "play.example").await, "project-disabled");
    assert_eq!(
        send(owner.ask(Method::POST, "/api/projects/game/enable"))
            .await
            .status,
        200
    );
    assert_eq!(page(&app, "play.example").await.text(), "x");
    let (store, now) = (&app.running.state.platform.store, app.clock.now());
    let deleted = store.change_standing("game", Change::Delete, Actor::Operator.into(), now);
    deleted.await.unwrap();
    while store.remove_deleted(now, now).await.unwrap().is_some() {}
    app.learn_games().await;
    assert_eq!(problem(&app, "play.example").await, "unknown-host");
}

#[tokio::test]
async fn a_change_by_another_node_is_followed() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "prod").await;
    active(&owner, &dns, "play.example").await;
    let (store, now) = (&app.running.state.platform.store, app.clock.now());
    let name = kept(&app).await[0].name.clone();
    let place = ("game", Environment::Prod, &name);
    assert!(
        store
            .remove_domain(place, Actor::Own.into(), now)
            .await
            .unwrap()
    );
    app.learn_games().await;
    assert_eq!(problem(&app, "play.example").await, "unknown-host");
}

#[tokio::test]
async fn a_game_proves_its_own_domain_to_authorities_and_no_name_of_the_platform() {
    let dns = TestDns::start().await;
    let app = app_of(&dns).await;
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let proofs = [
        "/.well-known/acme-challenge/token",
        "/.well-known/pki-validation/proof.txt",
    ];
    let mut files: Vec<(&str, &[u8])> = vec![("index.html", b"x"), (".well-known/own", b"own")];
    files.extend(proofs.map(|path| (path.trim_start_matches('/'), &b"proof"[..])));
    for environment in ["prod", "dev"] {
        let deployed = owner.deploy(environment, archive(&files)).await;
        assert_eq!(deployed.status, 201, "{deployed:?}");
    }
    let preview = owner
        .ask(Method::PUT, "/api/projects/game/previews/rings")
        .header("content-type", "application/gzip")
        .body(archive(&files));
    assert_eq!(send(preview).await.status, 201);
    active(&owner, &dns, "play.example").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = listener.local_addr().unwrap();
    let answers = axum::Router::new().fallback(async || "proof");
    tokio::spawn(async move { axum::serve(listener, answers).await });
    let set_backend = async || {
        let body = json!({ "url": format!("http://{backend}"), "paths": ["/.well-known/"] });
        let path = "/api/projects/game/environments/prod/backend";
        assert_eq!(owner.put(path, body).await.status, 200);
    };
    let lead = json!({ "canonical": true });
    for step in ["files", "a backend", "a canonical domain"] {
        match step {
            "a backend" => set_backend().await,
            "a canonical domain" => {
                let path = format!("{ALL}/play.example");
                assert_eq!(owner.put(&path, lead.clone()).await.status, 200);
            }
            _ => {}
        }
        for label in [
            "game",
            "dev-game",
            "rings--game",
            "pane-1--dev-game",
            "",
            "auth",
        ] {
            for path in proofs {
                let encoded = path.replace("/.well", "/%2Ewell");
                for path in [path, &encoded, &path.replacen('/', "//", 1)] {
                    let answer = send(app.get(label, path)).await;
                    assert_eq!(answer.status, 404, "{step}: {label} {path}");
                }
            }
        }
        for path in proofs {
            let answer = send(at(&app, "play.example", path)).await;
            assert_eq!(answer.status, 200, "{step}: {path}: {}", answer.text());
        }
        // All else below it is the game's.
        let own = send(app.get("dev-game", "/.well-known/own")).await;
        assert_eq!(own.text(), "own", "{step}");
    }
}

#[tokio::test]
async fn the_operations_listener_says_which_names_may_have_a_certificate() {
    let dns = TestDns::start().await;
    let resolver = vec![dns.address];
    let app = TestApp::with(|config| {
        config.resolver = resolver;
        config.operations_listen = Some("127.0.0.1:0".parse().unwrap());
    });
    let app = app.await;
    let socket = app.running.operations.unwrap();
    let (owner, _) = Caller::with_game(&app, "dev").await;
    let preview = owner
        .ask(Method::PUT, "/api/projects/game/previews/rings")
        .header("content-type", "application/gzip")
        .body(archive(&[("index.html", b"x")]));
    assert_eq!(send(preview).await.status, 201);
    active(&owner, &dns, "play.example").await;
    claimed(&owner, "claimed.example").await;
    let may = async |query: &str| {
        let (status, body) =
            operations::ask(socket, "proxy", &format!("/certificate{query}")).await;
        assert_eq!(body, "", "{query}");
        status
    };
    // Nothing is deployed to production.
    for name in ["game.platform.localhost", "play.example"] {
        assert_eq!(may(&format!("?domain={name}")).await, 404, "{name}");
    }
    let deployed = owner.deploy("prod", archive(&[("index.html", b"x")]));
    assert_eq!(deployed.await.status, 201);
    for (name, status) in [
        ("platform.localhost", 200),
        ("auth.platform.localhost", 200),
        ("game.platform.localhost", 200),
        ("GAME.Platform.localhost", 200),
        ("dev-game.platform.localhost", 200),
        ("rings--game.platform.localhost", 200),
        ("pane-1--dev-game.platform.localhost", 200),
        ("play.example", 200),
        ("claimed.example", 404),
        ("www.play.example", 404),
        ("other.platform.localhost", 404),
        ("other--game.platform.localhost", 404),
        ("pane-5--dev-game.platform.localhost", 404),
        ("x.game.platform.localhost", 404),
        ("platform.localhost.", 404),
        ("platform.localhost:8787", 404),
        ("localhost", 404),
        ("127.0.0.1", 404),
        ("", 404),
        ("%FF", 404),
    ] {
        assert_eq!(may(&format!("?domain={name}")).await, status, "{name}");
    }
    assert_eq!(may("").await, 404);
    assert_eq!(may("?name=play.example").await, 404);
    let path = format!("{ALL}/play.example");
    assert_eq!(send(owner.ask(Method::DELETE, &path)).await.status, 204);
    assert_eq!(may("?domain=play.example").await, 404);
    for label in ["", "game"] {
        assert_eq!(
            send(app.get(label, "/certificate?domain=x")).await.status,
            404
        );
    }
}

#[tokio::test]
async fn caa_records_hold_for_the_names_below_that_have_none() {
    let dns = TestDns::start().await;
    dns.allow("play.example", "one.example");
    dns.allow("own.play.example", "other.example");
    let records = Records::new(vec![dns.address]);
    let permission = |value: &str| Permission {
        tag: "issue".to_owned(),
        value: value.to_owned(),
    };
    for (name, authority) in [
        ("play.example", "one.example"),
        ("a.b.play.example", "one.example"),
        ("a.own.play.example", "other.example"),
    ] {
        let found = records.permissions(name).await.unwrap();
        assert_eq!(found, [permission(authority)], "{name}");
    }
    assert_eq!(
        records.permissions("elsewhere.example").await,
        Ok(Vec::new())
    );
    dns.fail(true);
    records.permissions("play.example").await.unwrap_err();
}
