//! Administration with the API.

use platform_server::domain::audit::Actor;
use platform_server::domain::deletion::{AskDeletion, REGRET_MILLIS};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::support::{Answer, NOW, TestApp, send};

/// Requests a token with this cookie.
async fn mint(app: &TestApp, cookie: &str) -> Answer {
    send(app.post_token().header("cookie", cookie)).await
}

#[tokio::test]
async fn a_player_is_found_and_shown_with_everything_but_the_subject() {
    let app = TestApp::start().await;
    let admin = Caller::admin(&app).await;
    let guest = Caller::guest(&app).await;
    let cookie = app.sign_in("ann-at-example", Some(guest.sub)).await;
    let passing = Caller::guest(&app).await;
    app.sign_in("ann-at-example", Some(passing.sub)).await;
    let claims = mint(&app, &cookie).await.claims();

    let (start, sub) = (claims.username[..4].to_uppercase(), guest.sub.to_string());
    for query in [sub.as_str(), &claims.username, &start] {
        let path = format!("/api/admin/players?query={query}&limit=100");
        let found: Value = admin.get(&path).await.json();
        let players = found["players"].as_array().unwrap();
        let player = players.iter().find(|player| player["sub"] == *sub).unwrap();
        assert_eq!(player["username"], claims.username);
        assert_eq!(player["state"], "account");
    }
    let none: Value = admin
        .get("/api/admin/players?query=nobody-here")
        .await
        .json();
    assert_eq!(none, json!({ "players": [] }));
    for query in [
        "",
        "?query=",
        "?query=%E2%80%8B",
        "?query=a&limit=0",
        "?query=a&more=1",
    ] {
        let answer = admin.get(&format!("/api/admin/players{query}")).await;
        assert_eq!(answer.problem(), "invalid-request", "{query}");
    }

    let answer = admin.get(&format!("/api/admin/players/{sub}")).await;
    assert!(!answer.text().contains("ann-at-example"), "{answer:?}");
    let shown: Value = answer.json();
    assert_eq!(
        (&shown["linked"], &shown["is_admin"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(shown["created_at"], "2026-01-01T00:00:00Z");
    assert_eq!(shown["sessions"].as_array().unwrap().len(), 2);
    let identities = shown["identities"].as_array().unwrap();
    assert_eq!(identities.len(), 1);
    assert_eq!(identities[0]["provider"], "google");
    assert_eq!(identities[0]["hash"].as_str().unwrap().len(), 64);
    assert_eq!(shown["merged_from"][0]["sub"], passing.sub.to_string());
    let events = shown["events"].as_array().unwrap();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["merged", "linked"]);
    assert_eq!(events[0]["actor"], "self");
    let merged: Value = admin
        .get(&format!("/api/admin/players/{}", passing.sub))
        .await
        .json();
    assert_eq!(
        (&merged["state"], &merged["merged_into"]),
        (&json!("merged"), &json!(sub))
    );
    assert_eq!(merged["names"][&sub], claims.username);
    let name = &shown["names"][passing.sub.to_string()];
    assert_eq!(name, &merged["username"], "as it is called now");
    let suspension = format!("/api/admin/players/{}/suspension", passing.sub);
    let refused = admin.put(&suspension, json!({ "reason": null })).await;
    assert_eq!(refused.problem(), "invalid-request");
    for path in ["nobody", "00000000-0000-4000-8000-000000000000"] {
        let answer = admin.get(&format!("/api/admin/players/{path}")).await;
        assert_eq!(answer.problem(), "not-found");
    }
}

#[tokio::test]
async fn a_deletion_that_is_still_to_come_is_shown_until_it_is_taken_back() {
    let app = TestApp::start().await;
    let (admin, player) = (Caller::admin(&app).await, Caller::account(&app).await);
    let path = format!("/api/admin/players/{}", player.sub);
    let shown = async || admin.get(&path).await.json::<Value>()["deletion"].take();
    assert_eq!(shown().await, Value::Null);
    let store = &app.running.state.platform.store;
    let ask = AskDeletion {
        player: player.sub,
        browser: None,
        at: NOW + REGRET_MILLIS,
        by: Actor::Own.into(),
        now: NOW,
    };
    store.ask_for_deletion(ask).await.unwrap();
    let expected = json!({ "asked_at": "2026-01-01T00:00:00Z", "at": "2026-01-15T00:00:00Z" });
    assert_eq!(shown().await, expected);
    let back = store.take_deletion_back(player.sub, Actor::Own.into(), NOW);
    assert!(back.await.unwrap());
    assert_eq!(shown().await, Value::Null);
}

#[tokio::test]
async fn a_player_is_suspended_let_go_and_signed_out() {
    let app = TestApp::start().await;
    let (admin, player) = (Caller::admin(&app).await, Caller::account(&app).await);
    let path = format!("/api/admin/players/{}", player.sub);
    let suspension = format!("{path}/suspension");
    for reason in ["", " ", "two\nlines", "\u{202e}turned", &"x".repeat(501)] {
        let refused = admin.put(&suspension, json!({ "reason": reason })).await;
        assert_eq!(refused.problem(), "invalid-request", "{reason:?}");
    }
    assert_eq!(player.get("/api/projects").await.status, 200);
    let suspended = admin
        .put(&suspension, json!({ "reason": "You broke the rules." }))
        .await;
    assert_eq!(suspended.status, 200, "{suspended:?}");
    let suspended: Value = suspended.json();
    assert_eq!(suspended["state"], "suspended");
    assert_eq!(suspended["reason"], "You broke the rules.");
    assert_eq!(suspended["events"][0]["actor"], "admin");
    assert_eq!(suspended["events"][0]["subject"], "You broke the rules.");
    assert_eq!(suspended["events"][0]["admin"], admin.sub.to_string());
    let refused = mint(&app, &player.cookie).await;
    assert_eq!(refused.problem(), "account-suspended");
    assert!(refused.text().contains("You broke the rules."));
    // A token that was issued before is refused at the next call.
    let refused = player.get("/api/projects").await;
    assert_eq!(refused.problem(), "account-suspended");
    let own = format!("/api/admin/players/{}/suspension", admin.sub);
    let own = admin.put(&own, json!({ "reason": null })).await;
    assert_eq!(own.problem(), "not-allowed");

    for _ in 0..2 {
        let lifted = send(admin.ask(reqwest::Method::DELETE, &suspension)).await;
        assert_eq!(lifted.json::<Value>()["state"], "account");
    }
    assert_eq!(player.get("/api/projects").await.status, 200);
    let ended = admin.post(&format!("{path}/end-sessions"), json!({})).await;
    assert_eq!(ended.json::<Value>(), json!({ "ended": 1 }));
    let gone = mint(&app, &player.cookie).await;
    assert_eq!(gone.problem(), "session-expired");
}

#[tokio::test]
async fn what_administrators_do_is_listed_page_by_page_and_by_kind() {
    let app = TestApp::start().await;
    let (admin, player) = (Caller::admin(&app).await, Caller::account(&app).await);
    let path = format!("/api/admin/players/{}", player.sub);
    let suspension = format!("{path}/suspension");
    let suspended = admin.put(&suspension, json!({ "reason": "Why." })).await;
    assert_eq!(suspended.status, 200);
    let lifted = send(admin.ask(reqwest::Method::DELETE, &suspension)).await;
    assert_eq!(lifted.status, 200);
    let ended = admin.post(&format!("{path}/end-sessions"), json!({})).await;
    assert_eq!(ended.status, 200);

    let events: Value = admin
        .get(&format!("/api/admin/events?player={}&limit=2", admin.sub))
        .await
        .json();
    assert_eq!(events["events"][0]["kind"], "sessions-ended");
    assert_eq!(events["events"][1]["kind"], "unsuspended");
    let before = events["before"].as_i64().unwrap();
    let rest: Value = admin
        .get(&format!(
            "/api/admin/events?player={}&before={before}",
            admin.sub
        ))
        .await
        .json();
    assert_eq!(rest["events"][0]["kind"], "suspended");
    assert_eq!(rest["events"][0]["player"], player.sub.to_string());
    assert_eq!(rest["before"], Value::Null);
    let names = &events["names"];
    assert_eq!(names[admin.sub.to_string()], admin.claims().username);
    assert_eq!(names[player.sub.to_string()], player.claims().username);
    for (query, kinds) in [
        ("kind=suspended", &["suspended"][..]),
        ("actor=operator", &["admin-granted"]),
        (
            "actor=admin",
            &["sessions-ended", "unsuspended", "suspended"],
        ),
        ("actor=self&kind=suspended", &[]),
        ("actor=admin&kind=unsuspended", &["unsuspended"]),
    ] {
        for player in [String::new(), format!("&player={}", admin.sub)] {
            let path = format!("/api/admin/events?{query}{player}");
            let found: Value = admin.get(&path).await.json();
            let found = found["events"].as_array().unwrap().iter();
            let found: Vec<_> = found.map(|event| event["kind"].as_str().unwrap()).collect();
            assert_eq!(found, kinds, "{path}");
        }
    }
    for query in ["player=me", "kind=x", "actor=me", "before=x", "more=1"] {
        let bad = admin.get(&format!("/api/admin/events?{query}")).await;
        assert_eq!(bad.problem(), "invalid-request", "{query}");
    }
}

#[tokio::test]
async fn keys_are_listed_and_rotated_once_at_a_time() {
    let app = TestApp::start().await;
    let admin = Caller::admin(&app).await;
    let keys: Value = admin.get("/api/admin/keys").await.json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    assert_eq!(keys["keys"][0]["state"], "signing");
    let rotated = admin.post("/api/admin/keys/rotate", json!({})).await;
    let rotated: Value = rotated.json();
    let new = &rotated["keys"][1];
    assert_eq!(new["state"], "published");
    assert_eq!(new["signs_from"], "2026-01-01T00:21:00Z");
    let set = send(app.get("auth", "/.well-known/jwks.json")).await;
    assert!(set.text().contains(new["kid"].as_str().unwrap()));
    let again = admin.post("/api/admin/keys/rotate", json!({})).await;
    assert_eq!(again.problem(), "too-many-requests");
    assert_eq!(again.header("retry-after"), Some("1260"));
    let events: Value = admin.get("/api/admin/events?limit=1").await.json();
    let event = &events["events"][0];
    assert_eq!(
        (&event["kind"], &event["subject"]),
        (&json!("key-added"), &new["kid"])
    );
    assert_eq!(event["admin"], admin.sub.to_string());
}

#[tokio::test]
async fn a_server_with_an_embedded_store_is_the_only_node() {
    let app = TestApp::start().await;
    let admin = Caller::admin(&app).await;
    let seen: Value = admin.get("/api/admin/nodes").await.json();
    assert_eq!(seen["shared"], false);
    let nodes = seen["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 1);
    let node = &nodes[0];
    assert_eq!((&node["this"], &node["live"]), (&json!(true), &json!(true)));
    assert_eq!(node["clock_offset"], Value::Null);
    assert_eq!(seen["differing_settings"], json!([]));
    assert_eq!(seen["waits_for_standby"], json!(null));
}

#[tokio::test]
async fn a_revoked_key_verifies_nothing_from_that_moment() {
    let app = TestApp::start().await;
    let admin = Caller::admin(&app).await;
    let keys: Value = admin.get("/api/admin/keys").await.json();
    let old = keys["keys"][0]["kid"].as_str().unwrap().to_owned();
    // The token is cached as verified by now.
    assert_eq!(admin.get("/api/projects").await.status, 200);
    let path = format!("/api/admin/keys/{old}/revoke");
    let left: Value = admin.post(&path, json!({})).await.json();
    let left = left["keys"].as_array().unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["state"], "signing");
    assert_ne!(left[0]["kid"], old);
    let refused = admin.get("/api/projects").await;
    assert_eq!(refused.problem(), "not-signed-in");
    let set = send(app.get("auth", "/.well-known/jwks.json")).await;
    assert!(!set.text().contains(&old), "{}", set.text());

    let again = Caller::with_cookie(&app, Some(&admin.cookie)).await;
    assert_eq!(again.post(&path, json!({})).await.problem(), "not-found");
    let events: Value = again.get("/api/admin/events?limit=2").await.json();
    let kinds = events["events"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds
        .map(|event| (&event["kind"], &event["admin"]))
        .collect();
    let by = json!(admin.sub.to_string());
    assert_eq!(
        kinds,
        [(&json!("key-added"), &by), (&json!("key-revoked"), &by),]
    );
}

#[tokio::test]
async fn guests_are_listed_by_the_addresses_that_hold_them() {
    let app = TestApp::with(|config| config.guests_per_address = 5).await;
    let admin = Caller::admin(&app).await;
    // Each counts once its cookie has come back.
    let first = Caller::guest(&app).await;
    Caller::with_cookie(&app, Some(&first.cookie)).await;
    app.clock.advance(60_000);
    let second = Caller::guest(&app).await;
    let second = Caller::with_cookie(&app, Some(&second.cookie)).await;
    Caller::guest(&app).await;
    let held: Value = admin.get("/api/admin/guests").await.json();
    assert_eq!(held["cap"], 5);
    let address = &held["addresses"][0];
    assert_eq!(address["address"], "127.0.0.1");
    assert_eq!(address["guests"], 2);
    assert_eq!(address["seen_at"], "2026-01-01T00:01:00Z");
    let one: Value = admin
        .get("/api/admin/guests?address=127.0.0.1&limit=2")
        .await
        .json();
    assert_eq!(one["addresses"], json!([]));
    assert_eq!(one["guests"][0]["sub"], second.sub.to_string());
    assert_eq!(one["guests"].as_array().unwrap().len(), 2);
    let nobody: Value = admin
        .get("/api/admin/guests?address=2001:db8::1")
        .await
        .json();
    assert_eq!(nobody["guests"], json!([]));
    let same: Value = admin
        .get("/api/admin/guests?address=::ffff:127.0.0.1&limit=2")
        .await
        .json();
    assert_eq!(same, one, "however it is written");
    let none = admin.get("/api/admin/guests?address=x").await;
    assert_eq!(none.problem(), "invalid-request");
    assert_ne!(one["guests"][1]["sub"], one["guests"][0]["sub"]);
    app.clock.advance(25 * 60 * 60 * 1_000);
    let admin = admin.sign_in_again().await;
    let later: Value = admin.get("/api/admin/guests").await.json();
    assert_eq!(later["addresses"], json!([]), "all are idle");
}

#[tokio::test]
async fn a_project_goes_from_one_owner_to_another() {
    let app = TestApp::start().await;
    let (admin, owner) = (Caller::admin(&app).await, Caller::account(&app).await);
    let (other, guest) = (Caller::account(&app).await, Caller::guest(&app).await);
    owner.create("game").await;
    let list: Value = admin.get("/api/admin/projects").await.json();
    let names = json!({ owner.sub.to_string(): owner.claims().username });
    assert_eq!(list["names"], names);
    let (demo, game) = (&list["projects"][0], &list["projects"][1]);
    assert_eq!(
        (&demo["slug"], &demo["owner"]),
        (&json!("demo"), &Value::Null)
    );
    assert_eq!(
        (&game["slug"], &game["owner"]),
        (&json!("game"), &json!(owner.sub))
    );
    assert_eq!(game["players"], 0);
    let path = "/api/admin/projects/game/owner";
    let nobody = "00000000-0000-4000-8000-000000000000";
    for to in [json!(guest.sub), json!(nobody), json!("me"), Value::Null] {
        let refused = admin.put(path, json!({ "owner": to })).await;
        assert_eq!(refused.problem(), "invalid-request", "{to}");
    }
    let given = admin.put(path, json!({ "owner": other.sub })).await;
    assert_eq!(given.json::<Value>()["owner"], json!(other.sub));
    assert_eq!(
        owner.get("/api/projects/game").await.problem(),
        "not-allowed"
    );
    assert_eq!(other.get("/api/projects/game").await.status, 200);
    let none = admin.put(
        "/api/admin/projects/none/owner",
        json!({ "owner": other.sub }),
    );
    assert_eq!(none.await.problem(), "not-found");
    let events: Value = admin
        .get(&format!("/api/admin/events?player={}", owner.sub))
        .await
        .json();
    let event = &events["events"][0];
    assert_eq!(event["kind"], "project-transferred");
    assert_eq!(
        (&event["subject"], &event["actor"]),
        (&json!("game"), &json!("admin"))
    );
}

#[tokio::test]
async fn a_console_learns_from_the_api_who_administers() {
    let app = TestApp::start().await;
    for (caller, expected) in [
        (Caller::guest(&app).await, false),
        (Caller::account(&app).await, false),
        (Caller::admin(&app).await, true),
    ] {
        let list: Value = caller.get("/api/projects").await.json();
        assert_eq!(list["is_admin"], expected);
    }
}
