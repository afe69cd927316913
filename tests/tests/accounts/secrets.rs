//! What the log and the store must not contain: codes, tokens, cookies, states, the client's
//! secret, and the player's identity at the provider.

use std::path::Path;

use platform_protocol::paths;
use platform_tests::hostile_provider::{CLIENT_ID, CLIENT_SECRET, HostileProvider};
use platform_tests::person::Person;
use platform_tests::platform::Site;
use platform_tests::server::Server;
use platform_tests::shared;
use reqwest::Url;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scene::PROVIDER;

const SUBJECT: &str = "subject-at-the-provider-7c1f";

/// The secrets that the tests have seen, each with its kind.
#[derive(Default)]
struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    fn add(&mut self, what: &'static str, secret: &str) {
        if secret.len() > 8 {
            self.0.push((what, secret.to_owned()));
        }
    }

    fn add_address(&mut self, address: &str) {
        let url = Url::parse(address).unwrap();
        for (name, value) in url.query_pairs() {
            let what = match &*name {
                "code" => "a code",
                "state" => "a state",
                "nonce" => "a nonce",
                "code_challenge" => "a challenge",
                _ => continue,
            };
            self.add(what, &value);
        }
    }

    fn add_jar(&mut self, person: &Person) {
        for value in person.jar.values() {
            self.add("a cookie", value);
        }
    }

    fn demand_absent(&self, text: &[u8], place: &str) {
        for (what, secret) in &self.0 {
            let found = text
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{place} has {what}: {secret}");
        }
    }
}

/// One sign-in in all its steps.
async fn sign_in(
    site: &Site,
    provider: &HostileProvider,
    behaviour: &Value,
    secrets: &mut Secrets,
) {
    let (mut person, _) = Person::guest(site).await;
    secrets.add_jar(&person);
    let game = person.game();
    let form = person.login_form(PROVIDER, &game).await;
    secrets.add("a form's token", form.field("csrf").unwrap());
    secrets.add_jar(&person);
    let begun = person.begin(PROVIDER, &game).await;
    secrets.add_address(&begun);
    let callback = person.authorize(&begun, SUBJECT).await;
    secrets.add_address(&callback);
    provider.behave(behaviour).await;
    person.follow(&callback).await;
    person.follow(&callback).await;
    provider.behave(&json!({})).await;
    secrets.add_jar(&person);
    let answer = person.token().await;
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    let token = answer["access_token"].as_str().unwrap();
    secrets.add("a game token", token);
    secrets.add("a token's signature", token.rsplit('.').next().unwrap());
    person
        .open(&format!("{}?redirect={game}", paths::PROFILE))
        .await;
    person.sign_out().await;
}

fn bytes(folder: &Path, names: &[&str]) -> Vec<u8> {
    let files = names.iter().map(|name| folder.join(name));
    files
        .flat_map(|file| std::fs::read(file).unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn neither_log_nor_store_has_what_is_secret() {
    let provider = HostileProvider::start().await;
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let settings = format!(
        "log = \"trace\"\n[[identity_provider]]\nid = \"{PROVIDER}\"\nname = \"Hostile\"\n\
         issuer = \"{}\"\nclient_id = \"{CLIENT_ID}\"\nclient_secret = \"{CLIENT_SECRET}\"\n",
        provider.issuer
    );
    let server = Server::start_set(data.path(), &settings, &[]).await;
    let site = Site::from(&server);
    let mut secrets = Secrets::default();
    let echo = json!({ "error": "invalid_grant", "error_description": CLIENT_SECRET }).to_string();
    let behaviours = [
        json!({}),
        json!({ "claims": { "nonce": "wrong" } }),
        json!({ "claims": { "sub": 7 } }),
        json!({ "sign": "flipped" }),
        json!({ "header": { "kid": "unknown" } }),
        json!({ "token": { "members": { "id_token": 7 } } }),
        json!({ "token": { "members": { "token_type": null } } }),
        json!({ "token": { "status": 400, "body": echo } }),
        json!({ "token": { "status": 500 } }),
        json!({ "token": { "drop": true } }),
        json!({ "jwks": { "drop": true }, "header": { "kid": "another" } }),
    ];
    for behaviour in &behaviours {
        sign_in(&site, &provider, behaviour, &mut secrets).await;
    }
    let (log, tables) = (server.log(), server.tables());
    server.stop().await;

    secrets.add("the client's secret", CLIENT_SECRET);
    let seen = provider.seen().await;
    for request in seen["requests"].as_array().unwrap() {
        let form = &request["form"];
        secrets.add("a code", form["code"].as_str().unwrap());
        secrets.add("a verifier", form["code_verifier"].as_str().unwrap());
        let basic = request["authorization"].as_str().unwrap();
        secrets.add("the client's header", basic.trim_start_matches("Basic "));
    }
    assert!(secrets.0.len() > 60, "they came by: {}", secrets.0.len());

    let text = String::from_utf8_lossy(&log);
    assert!(
        text.contains(paths::CALLBACK),
        "the log speaks of callbacks"
    );
    assert!(text.contains("TRACE"), "and says everything");
    secrets.demand_absent(&log, "the log");
    assert!(!text.contains(SUBJECT), "the log knows who it was");

    let store = bytes(data.path(), &["platform.db", "platform.db-wal"]);
    // Several nodes have their store elsewhere.
    assert!(!store.is_empty() || shared::nodes().is_some());
    // While a sign-in is in progress, its nonce and verifier have to be stored.
    let kept = ["a nonce", "a verifier"];
    secrets.0.retain(|(what, _)| !kept.contains(what));
    secrets.add("who it was", SUBJECT);
    secrets.demand_absent(&store, "the store");
    secrets.demand_absent(format!("{tables:?}").as_bytes(), "the tables");
    assert!(!tables.rows("sessions").is_empty(), "the tables are full");
    for (_, secret) in &mut secrets.0 {
        *secret = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    }
    secrets.demand_absent(format!("{tables:?}").as_bytes(), "the bytes of the tables");
}

#[tokio::test]
async fn the_client_says_who_it_is_and_proves_who_began() {
    let provider = HostileProvider::start().await;
    let platform = platform_tests::platform::Platform::start(&[(PROVIDER, &provider)]).await;
    let (mut person, _) = Person::guest(&platform.site).await;
    let game = person.game();
    let begun = Url::parse(&person.begin(PROVIDER, &game).await).unwrap();
    let parameter = |name: &str| {
        let found = begun.query_pairs().find(|(other, _)| other == name);
        found
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    };
    assert_eq!(parameter("response_type"), "code");
    assert_eq!(parameter("client_id"), CLIENT_ID);
    assert_eq!(parameter("code_challenge_method"), "S256");
    assert_eq!(parameter("scope"), "openid", "nothing more is asked for");
    for long in ["state", "nonce", "code_challenge"] {
        assert!(parameter(long).len() >= 43, "{long}: 256 bits");
    }
    let callback = platform
        .site
        .url("auth", &format!("{}{PROVIDER}", paths::CALLBACK));
    assert_eq!(parameter("redirect_uri"), callback);

    let back = person.authorize(begun.as_str(), "alice").await;
    assert_eq!(person.follow(&back).await.see_other(), game);
    let seen = provider.seen().await;
    let request = &seen["requests"][0];
    assert!(
        request["authorization"]
            .as_str()
            .unwrap()
            .starts_with("Basic ")
    );
    assert_eq!(request["form"]["grant_type"], "authorization_code");
    assert_eq!(request["form"]["redirect_uri"], callback.as_str());
    assert!(request["form"]["code_verifier"].as_str().unwrap().len() >= 43);
    assert!(request["form"].get("client_secret").is_none());
    // An endpoint that is never called cannot cause errors.
    assert_eq!(seen["userinfo"], 0);

    // Every sign-in has its own.
    let again = Url::parse(&person.begin(PROVIDER, &game).await).unwrap();
    for name in ["state", "nonce", "code_challenge"] {
        let other = again.query_pairs().find(|(other, _)| other == name);
        assert_ne!(other.unwrap().1, parameter(name), "{name}");
    }
}
