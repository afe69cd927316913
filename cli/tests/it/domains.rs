//! Domains of an environment's own: claiming, verifying, removing.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::{Home, last_line};

const ALL: &str = "/api/projects/game/environments/prod/domains";
const PROD: [&str; 4] = ["--env", "prod", "-p", "game"];

fn domain(state: &str, detail: Option<&str>) -> Value {
    json!({
        "domain": "play.example", "url": "https://play.example", "state": state, "detail": detail,
        "canonical": false, "target": "game.games.example",
        "record": {
            "name": "_platform.play.example", "type": "TXT", "value": "platform-verify=00",
        },
        "created_at": "2020-01-31T12:00:00Z", "since": "2020-01-31T12:00:00Z", "looked_at": null,
    })
}

#[tokio::test]
async fn a_domain_is_claimed_and_its_records_are_printed() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(&format!("POST - {ALL}"), &[(201, domain("pending", None))]);
    let line = [&["domains", "add", "play.example"][..], &PROD].concat();
    let told = home.run(&line).await.succeeded();
    assert_eq!(
        told.stdout,
        "  _platform.play.example  TXT    platform-verify=00\n  \
         play.example            CNAME  game.games.example\n"
    );
    let next = "platform domains verify play.example --env prod";
    assert!(told.stderr.contains(next), "{told:?}");
    let sent: Value = serde_json::from_slice(&platform.seen(ALL)[0].body).unwrap();
    assert_eq!(sent, json!({ "domain": "play.example" }));
    let told = home.run(&[&line[..], &["--json"]].concat()).await;
    let printed: Value = serde_json::from_str(&told.succeeded().stdout).unwrap();
    assert_eq!(printed, domain("pending", None));

    let problem = platform.problem("domain-taken", 409, "This domain is in use.");
    platform.say(&format!("POST - {ALL}"), &[(409, problem)]);
    let told = home.run(&line).await.ended_with(1);
    assert!(told.stderr.contains("This domain is in use."), "{told:?}");
}

#[tokio::test]
async fn a_domain_is_verified_or_it_is_said_what_is_missing() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let path = format!("{ALL}/play.example/verify");
    let missing = domain("pending", Some("There is no TXT record."));
    platform.say(&format!("POST - {path}"), &[(200, missing.clone())]);
    let line = [&["domains", "verify", "play.example"][..], &PROD].concat();
    let told = home.run(&line).await.ended_with(1);
    assert!(told.stderr.contains("There is no TXT record."), "{told:?}");
    let told = home.run(&[&line[..], &["--json"]].concat()).await;
    let printed: Value = serde_json::from_str(&told.ended_with(1).stdout).unwrap();
    assert_eq!(printed, missing);
    platform.say(&format!("POST - {path}"), &[(200, domain("active", None))]);
    let told = home.run(&line).await.succeeded();
    assert!(told.stderr.contains("https://play.example"), "{told:?}");
}

#[tokio::test]
async fn domains_are_listed_made_canonical_and_removed() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let list = json!({ "domains": [], "most": 10 });
    platform.say(&format!("GET - {ALL}"), &[(200, list)]);
    let all = [&["domains", "list"][..], &PROD].concat();
    assert_eq!(home.run(&all).await.succeeded().stdout, "");
    let list = json!({ "domains": [domain("active", None)], "most": 10 });
    platform.say(&format!("GET - {ALL}"), &[(200, list)]);
    let told = home.run(&all).await.succeeded();
    assert!(
        told.stdout.starts_with("play.example is active"),
        "{told:?}"
    );
    let told = home
        .run(&[&all[..], &["--json"]].concat())
        .await
        .succeeded();
    let printed: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(printed, json!({ "domains": [domain("active", None)] }));

    let path = format!("{ALL}/play.example");
    for (count, (off, canonical)) in [(&[][..], true), (&["--off"], false)]
        .into_iter()
        .enumerate()
    {
        platform.say(&format!("PUT - {path}"), &[(200, domain("active", None))]);
        let line = ["domains", "canonical", "play.example", "--yes"];
        let line = [&line[..], off, &PROD].concat();
        home.run(&line).await.succeeded();
        let sent: Value = serde_json::from_slice(&platform.seen(&path)[count].body).unwrap();
        assert_eq!(sent, json!({ "canonical": canonical }));
    }
    platform.say(&format!("DELETE - {path}"), &[(204, Value::Null)]);
    let line = [&["domains", "remove", "play.example", "--yes"][..], &PROD].concat();
    let told = home.run(&line).await.succeeded();
    assert!(last_line(&told.stderr).contains("Removed play.example"));
    assert_eq!(platform.seen(&path)[2].method, "DELETE");
}

#[tokio::test]
async fn productions_domains_are_asked_about_and_a_name_is_no_path() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    for line in [
        &["domains", "remove", "play.example"][..],
        &["domains", "canonical", "play.example"],
        &["domains", "remove", "../backend", "--yes"],
        &["domains", "verify", ".."],
        &["domains", "verify", "play.example/verify"],
    ] {
        home.run(&[line, &PROD].concat()).await.ended_with(2);
    }
    assert!(platform.seen(ALL).is_empty());
}
