//! What others wrote is shown on a terminal, and not obeyed: values of `platform.toml`, file names, and what
//! a server answers.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::{Home, Outcome, outcome};

/// Sets the title, clears the screen (also in eight bits), turns the direction of writing, and begins a line.
const HOSTILE: &str = "a\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\u{85}\r\nerror: b";

/// Runs the program as on a terminal: its own colours stay.
async fn on_terminal(home: &Home, arguments: &[&str]) -> Outcome {
    let mut command = home.command(arguments);
    command.env("CLICOLOR_FORCE", "1");
    outcome(command).await
}

/// Asserts that nothing but the program's own styles and line breaks would steer a terminal.
#[track_caller]
fn assert_shown(outcome: &Outcome, what: &str) {
    for text in [&outcome.stdout, &outcome.stderr] {
        let mut text = text.clone();
        for style in ["0", "1", "2", "4", "31", "32", "33"] {
            text = text.replace(&format!("\u{1b}[{style}m"), "");
        }
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(steers), "{what}: {text:?}");
        assert!(!text.contains("\nerror: b"), "{what}: {text:?}");
    }
}

fn toml(key: &str, value: &str) -> String {
    let escaped: String = value
        .chars()
        .map(|c| format!("\\U{:08x}", u32::from(c)))
        .collect();
    format!("{key} = \"{escaped}\"\n")
}

#[tokio::test]
async fn a_strangers_folder_does_not_steer_the_terminal() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("folder/index.html", "<title>x</title>");
    home.write("folder/.env", "SECRET=1");
    // A name with a control character is refused, this one is warned of.
    home.write("folder/id_rsa\u{202e}.pem", "");
    let (folder, hostile) = (home.path("folder"), home.path(HOSTILE));
    std::fs::rename(folder, hostile).unwrap();
    let shared = "https://games.example".to_owned();
    for (manifest, fails) in [
        (toml("dist", HOSTILE), false),
        (toml("dist", &format!("no{HOSTILE}")), true),
        (toml("slug", HOSTILE), true),
        (toml("origin", &format!("{shared}/{HOSTILE}")), true),
        (format!("\"{}\" = 1", HOSTILE.replace('\n', "")), true),
        (format!("slug = {HOSTILE}"), true),
    ] {
        home.write("platform.toml", &manifest);
        for arguments in [&["check"][..], &["deploy", "--yes"], &["dev"], &["runtime"]] {
            if arguments[0] == "dev" && !fails {
                continue;
            }
            let mut command = home.command(arguments);
            command
                .env_remove("PLATFORM_ORIGIN")
                .env("CLICOLOR_FORCE", "1");
            assert_shown(
                &outcome(command).await,
                &format!("{arguments:?} {manifest:?}"),
            );
        }
    }
    std::fs::remove_file(home.path("platform.toml")).unwrap();
    let checked = on_terminal(&home, &["check", HOSTILE]).await;
    assert!(checked.stdout.contains("id_rsa"), "{checked:?}");
    assert_shown(&checked, "check");
    for arguments in [
        &["deploy", "-p", "game", HOSTILE][..],
        &["check", "--json", HOSTILE],
        &["projects", "create", HOSTILE],
        &["errors", "show", "-p", "game", HOSTILE],
        &[HOSTILE],
        &["logs", "--level", HOSTILE],
    ] {
        assert_shown(
            &on_terminal(&home, arguments).await,
            &format!("{arguments:?}"),
        );
    }
}

#[tokio::test]
async fn answers_of_a_server_do_not_steer_the_terminal() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let environment = json!({
        "url": HOSTILE, "backend": {"url": HOSTILE, "paths": [HOSTILE]},
        "variables": {"AUTH_ISSUER": HOSTILE, "AUTH_AUDIENCE": HOSTILE, "AUTH_JWKS_URL": HOSTILE},
        "deployments": [{
            "id": HOSTILE, "created_at": HOSTILE, "files": 1, "bytes": 1, "message": HOSTILE,
            "deployed_by": {"sub": HOSTILE, "username": HOSTILE}, "revision": HOSTILE,
        }],
        "warnings": [],
    });
    let path = "GET - /api/projects/game/environments/dev";
    let problem = platform.problem("not-allowed", 403, HOSTILE);
    let token = json!({"access_token": HOSTILE, "token_type": "Bearer", "expires_in": 1800,
                       "sub": HOSTILE, "username": HOSTILE});
    let cases: [(&str, u16, Value, &[&str]); 7] = [
        (
            path,
            200,
            environment.clone(),
            &["backend", "show", "-p", "game"],
        ),
        (
            path,
            200,
            environment.clone(),
            &["backend", "variables", "-p", "game"],
        ),
        (
            path,
            200,
            environment.clone(),
            &["backend", "variables", "--json", "-p", "game"],
        ),
        (path, 200, environment, &["deployments", "-p", "game"]),
        (
            "GET - /api/projects",
            403,
            problem.clone(),
            &["projects", "list"],
        ),
        (
            "GET - /api/projects",
            403,
            problem,
            &["projects", "list", "--json"],
        ),
        (
            "POST - /api/projects/game/test-tokens",
            200,
            token,
            &["test-token", "-p", "game"],
        ),
    ];
    for (call, status, answer, arguments) in cases {
        platform.say(call, &[(status, answer)]);
        let outcome = on_terminal(&home, arguments).await;
        let printed = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(printed.contains("title"), "{arguments:?}: {printed}");
        assert_shown(&outcome, &format!("{arguments:?}"));
    }
}
