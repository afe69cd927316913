//! The exit statuses, and the messages of failures.

use serde_json::{Value, json};

use crate::platform::{Platform, Said};
use crate::support::{Home, closed_port, last_line, outcome};

#[tokio::test]
async fn wrong_usage_exits_2_before_anything_is_sent() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.write("dist/index.html", "");
    home.write("broken/platform.toml", "slug = 5\n");
    for arguments in [
        &[][..],
        &["unknown"],
        &["test-token", "0", "-p", "game"],
        &["test-token", "11", "-p", "game"],
        &["test-token", "x", "-p", "game"],
        &["test-token"],
        &["runtime"],
        &["runtime", "--project", "No Slug"],
        &["runtime", "--project", "auth"],
        &["runtime", "-p", "game", "--origin", "http://games.example"],
        &["runtime", "-p", "game", "--origin", "games.example"],
        &["runtime", "-p", "game", "--timeout", "0"],
        &["projects"],
        &["projects", "create", "dev-game"],
        &["deploy", "-p", "game", "--env", "staging"],
        &["deploy", "-p", "game", "--env", "prod"],
        &["logs", "-p", "game", "--level", "fatal"],
        &["check", "broken"],
        &["init", "ab"],
    ] {
        let outcome = home.run(arguments).await;
        assert_eq!(outcome.code, 2, "{arguments:?} {outcome:?}");
        assert_eq!(outcome.stdout, "", "{arguments:?}");
        assert!(!outcome.stderr.is_empty());
    }
    assert!(platform.seen("/").is_empty() && platform.seen("/api/projects").is_empty());
}

#[tokio::test]
async fn nobody_signed_in_exits_3_and_says_how_to() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.write("dist/index.html", "");
    for arguments in [
        &["whoami"][..],
        &["projects", "list"],
        &["projects", "create", "game"],
        &["deploy", "-p", "game"],
        &["test-token", "-p", "game"],
        &["logs", "-p", "game"],
    ] {
        let outcome = home.run(arguments).await.ended_with(3);
        assert!(outcome.stderr.contains("platform login"), "{outcome:?}");
        assert_eq!(outcome.stdout, "");
    }
    let outcome = home
        .run(&["test-token", "-p", "game", "--json"])
        .await
        .ended_with(3);
    let problem: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        problem["type"],
        format!("{}/problems/not-signed-in", platform.auth_url())
    );
    assert_eq!(problem["status"], 401);
}

#[tokio::test]
async fn a_failure_is_one_sentence_with_the_requests_id() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let call = "POST - /api/projects";
    let taken = platform.problem("slug-taken", 409, "This project name is taken.");
    platform.say(call, &[(409, taken.clone())]);
    let outcome = home
        .run(&["projects", "create", "game"])
        .await
        .ended_with(1);
    assert_eq!(
        outcome.stderr,
        "error: This project name is taken. (request req-1)\n"
    );
    let outcome = home
        .run(&["projects", "create", "game", "--json"])
        .await
        .ended_with(1);
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.stdout).unwrap(),
        taken
    );

    let internal = platform.problem("internal", 500, "Something went wrong on our side.");
    platform.say(call, &[(500, internal)]);
    let outcome = home
        .run(&["projects", "create", "game"])
        .await
        .ended_with(1);
    assert!(
        outcome.stderr.contains("to the platform's operator"),
        "{outcome:?}"
    );

    let page = Said {
        status: 502,
        content_type: "text/html",
        body: "<h1>\u{1b}[2J".into(),
    };
    platform.say_raw(call, vec![page]);
    let outcome = home
        .run(&["projects", "create", "game"])
        .await
        .ended_with(1);
    assert!(outcome.stderr.contains("502 Bad Gateway"), "{outcome:?}");
    assert!(outcome.stderr.contains("(request req-head)"), "{outcome:?}");

    platform.say(call, &[(200, json!({"other": "form"}))]);
    let outcome = home
        .run(&["projects", "create", "game"])
        .await
        .ended_with(1);
    assert!(outcome.stderr.contains("not understood"), "{outcome:?}");

    platform.say(call, &[(302, json!({}))]);
    home.run(&["projects", "create", "game"])
        .await
        .ended_with(1);
}

#[tokio::test]
async fn what_the_platform_says_does_not_steer_the_terminal() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let problem = platform.problem("not-allowed", 403, "No\u{1b}[2J\r\nway.");
    platform.say("GET - /api/projects", &[(403, problem)]);
    let outcome = home.run(&["projects", "list"]).await.ended_with(1);
    assert_eq!(outcome.stderr.matches('\n').count(), 1, "{outcome:?}");
}

#[tokio::test]
async fn a_refused_connection_names_the_platform() {
    let (_closed, port) = closed_port();
    let origin = format!("http://platform.localhost:{port}");
    let home = Home::at(&origin);
    let outcome = home.run(&["runtime", "-p", "game"]).await.ended_with(1);
    assert!(
        outcome
            .stderr
            .contains(&format!("{origin} cannot be reached")),
        "{outcome:?}"
    );
    assert_eq!(outcome.stderr.lines().count(), 1);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let platform = Platform::start().await;
    let silent = Said {
        status: 0,
        content_type: "",
        body: String::new(),
    };
    platform.say_raw("GET dev-game /__platform/runtime.js", vec![silent]);
    let home = Home::of(&platform);
    let outcome = home
        .run(&["runtime", "-p", "game", "--timeout", "1"])
        .await
        .ended_with(1);
    assert!(outcome.stderr.contains("within 1 seconds"), "{outcome:?}");
}

#[tokio::test]
async fn the_runtime_comes_from_the_dev_address_as_it_is() {
    let platform = Platform::start().await;
    let script = Said {
        status: 200,
        content_type: "text/javascript; charset=utf-8",
        body: "// \u{80}\u{ff} runtime".into(),
    };
    platform.say_raw("GET dev-game /__platform/runtime.js", vec![script.clone()]);
    let home = Home::of(&platform);
    let outcome = home.run(&["runtime", "-p", "game"]).await.succeeded();
    assert_eq!(
        (outcome.stdout, outcome.stderr),
        (script.body, String::new())
    );
    let seen = &platform.seen("/__platform/runtime.js")[0];
    assert_eq!(
        seen.host,
        format!("dev-game.platform.localhost:{}", platform.port)
    );
    assert!(!seen.headers.contains_key("authorization"));
    let page = Said {
        status: 200,
        content_type: "text/html",
        body: "<p>".into(),
    };
    platform.say_raw("GET dev-game /__platform/runtime.js", vec![page]);
    assert_eq!(
        home.run(&["runtime", "-p", "game"])
            .await
            .ended_with(1)
            .stdout,
        ""
    );
}

#[tokio::test]
async fn settings_come_from_options_then_the_environment_then_the_file() {
    let platform = Platform::start().await;
    let home = Home::at("http://unused.localhost:1");
    home.write(
        "game/platform.toml",
        format!(
            "slug = \"from-file\"\norigin = \"{}\"\nlisten = \"x\"\n",
            platform.origin()
        ),
    );
    home.write("game/src/deep/file", "");
    let script = Said {
        status: 200,
        content_type: "text/javascript",
        body: "1".into(),
    };
    for label in ["from-file", "from-variable", "from-option"] {
        let call = format!("GET dev-{label} /__platform/runtime.js");
        platform.say_raw(&call, vec![script.clone()]);
    }
    let run = async |variable: Option<&str>, arguments: &[&str]| {
        let mut command = home.command(arguments);
        command
            .current_dir(home.path("game/src/deep"))
            .env_remove("PLATFORM_ORIGIN");
        if let Some(slug) = variable {
            command.env("PLATFORM_PROJECT", slug);
        }
        outcome(command).await.succeeded();
        platform
            .seen("/__platform/runtime.js")
            .last()
            .unwrap()
            .host
            .clone()
    };
    assert!(run(None, &["runtime"]).await.starts_with("dev-from-file."));
    let variable = Some("from-variable");
    assert!(
        run(variable, &["runtime"])
            .await
            .starts_with("dev-from-variable.")
    );
    let option = &["runtime", "-p", "from-option"];
    assert!(run(variable, option).await.starts_with("dev-from-option."));
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_failure() {
    let home = Home::at("http://platform.localhost:1");
    let mut command = home.command(&["completions", "bash"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer);
    let outcome = outcome(command).await.succeeded();
    assert_eq!(last_line(&outcome.stderr), "");
}
