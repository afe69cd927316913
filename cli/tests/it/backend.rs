//! A game's own backend: its address, and the variables with which it verifies players.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::Home;

fn environment(backend: &Value) -> Value {
    json!({
        "url": "http://dev-game.platform.localhost", "backend": backend, "players": 0,
        "variables": {
            "AUTH_ISSUER": "http://auth.platform.localhost",
            "AUTH_AUDIENCE": "game:dev-game",
            "AUTH_JWKS_URL": "http://auth.platform.localhost/.well-known/jwks.json",
        },
    })
}

#[tokio::test]
async fn a_backend_is_set_for_an_environment_and_removed() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    for (name, path) in [
        ("dev", "/api/projects/game/environments/dev/backend"),
        ("prod", "/api/projects/game/environments/prod/backend"),
    ] {
        let backend = json!({ "url": "http://127.0.0.1:8788", "paths": ["/api/", "/ws"] });
        platform.say(&format!("PUT - {path}"), &[(200, environment(&backend))]);
        let line = [
            "backend",
            "set",
            "http://127.0.0.1:8788",
            "--env",
            name,
            "--yes",
        ];
        let paths = ["--path", "/api/", "--path", "/ws", "-p", "game"];
        let outcome = home.run(&[&line[..], &paths].concat()).await.succeeded();
        assert_eq!(outcome.stdout, "");
        assert!(outcome.stderr.contains("go to http://127.0.0.1:8788."));
        let sent: Value = serde_json::from_slice(&platform.seen(path)[0].body).unwrap();
        assert_eq!(sent, backend);

        platform.say(
            &format!("PUT - {path}"),
            &[(200, environment(&Value::Null))],
        );
        let line = ["backend", "remove", "--env", name, "--yes", "-p", "game"];
        let outcome = home.run(&line).await.succeeded();
        assert!(outcome.stderr.contains("has no backend."), "{outcome:?}");
        let sent: Value = serde_json::from_slice(&platform.seen(path)[1].body).unwrap();
        assert_eq!(sent, json!({ "url": null }));
    }
}

#[tokio::test]
async fn the_variables_are_printed_as_a_shell_takes_them() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let backend = json!({ "url": "http://127.0.0.1:8788", "paths": ["/api/"] });
    let call = "GET - /api/projects/game/environments/dev";
    platform.say(call, &[(200, environment(&backend))]);
    let run = async |line: &[&str]| {
        let outcome = home.run(&[line, &["-p", "game"]].concat()).await;
        outcome.succeeded().stdout
    };
    assert_eq!(
        run(&["backend", "variables"]).await,
        "AUTH_ISSUER=http://auth.platform.localhost\nAUTH_AUDIENCE=game:dev-game\n\
         AUTH_JWKS_URL=http://auth.platform.localhost/.well-known/jwks.json\n"
    );
    let json: Value =
        serde_json::from_str(&run(&["backend", "variables", "--json"]).await).unwrap();
    assert_eq!(json["AUTH_AUDIENCE"], "game:dev-game");
    assert_eq!(
        run(&["backend", "show"]).await,
        "http://127.0.0.1:8788 /api/\n"
    );
    let json: Value = serde_json::from_str(&run(&["backend", "show", "--json"]).await).unwrap();
    assert_eq!(json, backend);
}

#[tokio::test]
async fn what_the_platform_says_against_an_address_is_shown() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let problem = platform.problem("invalid-request", 400, "That is no address.");
    let path = "/api/projects/game/environments/dev/backend";
    platform.say(&format!("PUT - {path}"), &[(400, problem)]);
    let line = ["backend", "set", "http://nowhere/a", "-p", "game"];
    let outcome = home.run(&line).await.ended_with(1);
    assert!(outcome.stderr.contains("That is no address."));
}

#[tokio::test]
async fn an_address_without_a_scheme_is_answered_with_the_right_command() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    for (arguments, command) in [
        (&["127.0.0.1:5952"][..], "http://127.0.0.1:5952"),
        (&["[::1]:5952"], "http://[::1]:5952"),
        (&["localhost:80"], "http://localhost:80"),
        (
            &["rings.example", "--env", "prod", "--path", "/ws"],
            "https://rings.example --env prod --path /ws",
        ),
    ] {
        let line = [&["backend", "set"], arguments, &["-p", "game"]].concat();
        let outcome = home.run(&line).await.ended_with(2);
        let said = format!("has no scheme: run `platform backend set {command}`.");
        assert!(outcome.stderr.contains(&said), "{outcome:?}");
    }
    assert_eq!(
        platform
            .seen("/api/projects/game/environments/dev/backend")
            .len(),
        0
    );
}

#[tokio::test]
async fn productions_backend_is_asked_about_as_a_deploy_is() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    for line in [
        &["backend", "set", "http://127.0.0.1:8788", "--env", "prod"][..],
        &["backend", "remove", "--env", "prod"],
    ] {
        let line = [line, &["-p", "game"]].concat();
        let outcome = home.run(&line).await.ended_with(2);
        assert!(outcome.stderr.contains("add --yes"), "{outcome:?}");
    }
    let path = "/api/projects/game/environments/prod/backend";
    assert_eq!(platform.seen(path).len(), 0);
}

#[tokio::test]
async fn a_backend_that_was_tried_is_told_of() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let path = "/api/projects/game/environments/dev/backend";
    let backend = json!({ "url": "http://127.0.0.1:8788", "paths": ["/api/"] });
    for (reached, sentence) in [
        (true, "It responded with 404 to GET /api/ in 3 ms."),
        (false, "It cannot be reached: nobody listens there."),
    ] {
        let mut answer = environment(&backend);
        answer["trial"] = json!({ "reached": reached, "sentence": sentence });
        platform.say(&format!("PUT - {path}"), &[(200, answer)]);
        let line = ["backend", "set", "http://127.0.0.1:8788", "-p", "game"];
        let outcome = home.run(&line).await.succeeded();
        assert!(outcome.stderr.contains(sentence), "{outcome:?}");
        assert_eq!(
            outcome.stderr.contains("warning: It cannot"),
            !reached,
            "{outcome:?}"
        );
    }
}
