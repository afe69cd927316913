//! Which sites may show a game in a frame.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::Home;

fn environment(ancestors: &Value) -> Value {
    json!({ "url": "http://game.platform.localhost", "frame_ancestors": ancestors })
}

#[tokio::test]
async fn who_may_show_a_game_in_a_frame_is_set_for_an_environment() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let path = "/api/projects/game/environments/prod/frames";
    let two = json!(["https://a.example", "https://b.example"]);
    for (count, (arguments, ancestors, told)) in [
        (
            &[
                "--allow",
                "https://a.example",
                "--allow",
                "https://b.example",
            ][..],
            two,
            "No site but https://a.example, https://b.example and the platform may show",
        ),
        (
            &["--none"],
            json!("platform"),
            "No site but the platform may show",
        ),
        (&["--any"], json!("any"), "Every site may show"),
    ]
    .into_iter()
    .enumerate()
    {
        platform.say(&format!("PUT - {path}"), &[(200, environment(&ancestors))]);
        let line = ["frames", "set", "--env", "prod", "--yes", "-p", "game"];
        let outcome = home.run(&[&line[..], arguments].concat()).await.succeeded();
        assert_eq!(outcome.stdout, "");
        assert!(outcome.stderr.contains(told), "{outcome:?}");
        let sent: Value = serde_json::from_slice(&platform.seen(path)[count].body).unwrap();
        assert_eq!(sent, json!({ "ancestors": ancestors }));
    }
}

#[tokio::test]
async fn who_may_show_a_game_in_a_frame_is_printed() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let ancestors = json!(["https://a.example"]);
    let call = "GET - /api/projects/game/environments/dev";
    platform.say(call, &[(200, environment(&ancestors))]);
    let shown = home
        .run(&["frames", "show", "-p", "game"])
        .await
        .succeeded();
    assert_eq!(
        shown.stdout,
        "No site but https://a.example and the platform may show \
         http://game.platform.localhost in a frame.\n"
    );
    let line = ["frames", "show", "-p", "game", "--json"];
    let shown = home.run(&line).await.succeeded();
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown, ancestors);
}

#[tokio::test]
async fn frames_are_set_to_one_thing_and_productions_are_asked_about() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    for arguments in [
        &[][..],
        &["--any", "--none"],
        &["--allow", "https://a.example", "--none"],
        &["--none", "--env", "prod"],
    ] {
        let line = [&["frames", "set", "-p", "game"][..], arguments].concat();
        let outcome = home.run(&line).await.ended_with(2);
        assert_eq!(outcome.stdout, "");
    }
    for environment in ["dev", "prod"] {
        let path = format!("/api/projects/game/environments/{environment}/frames");
        assert!(platform.seen(&path).is_empty());
    }
}

#[tokio::test]
async fn what_the_platform_says_against_an_origin_is_shown() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let problem = platform.problem("invalid-request", 400, "An origin is https://<host>.");
    let path = "/api/projects/game/environments/dev/frames";
    platform.say(&format!("PUT - {path}"), &[(400, problem)]);
    let line = ["frames", "set", "--allow", "portal.example", "-p", "game"];
    let outcome = home.run(&line).await.ended_with(1);
    assert!(outcome.stderr.contains("An origin is https://<host>."));
}
