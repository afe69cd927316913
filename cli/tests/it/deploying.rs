//! From the template to a deployed game.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::{Home, closed_port, last_line};

const PAGE: &str = "<!doctype html><head><script defer src=\"/__platform/runtime.js\"></script>";

fn project(platform: &Platform, slug: &str) -> Value {
    let environment = |prefix: &str| {
        json!({"url": format!("http://{prefix}{slug}.platform.localhost:{}", platform.port),
               "deployment": null, "players": 2})
    };
    json!({"slug": slug, "owner": "me", "created_at": "2026-01-01T00:00:00Z",
           "environments": {"dev": environment("dev-"), "prod": environment("")}})
}

/// The content of an archive.
fn unpacked(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut read = tar::Archive::new(GzDecoder::new(archive));
    let entries = read.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        assert!(entry.header().entry_type().is_file());
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (name, content)
    });
    entries.collect()
}

#[tokio::test]
async fn a_deploy_sends_the_folder_and_prints_the_address() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    // Large and hard to compress, so that it is sent in many pieces.
    let mut state = 1_u32;
    let noise: Vec<u8> = (0..3_000_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    home.write("game/platform.toml", "slug = \"game\"\ndist = \"build\"\n");
    home.write("game/build/index.html", PAGE);
    home.write("game/build/assets/noise.bin", &noise);
    home.write("game/build/.env", "SECRET=1");
    let path = "/api/projects/game/environments/dev/deployment";
    let answer = json!({
        "id": "1", "url": "http://dev-game.platform.localhost", "files": 2, "bytes": 3_000_000,
        "warnings": [{"code": "runtime-async", "message": "The tag is async."}],
    });
    platform.say(&format!("PUT - {path}"), &[(201, answer.clone())]);
    platform.has("game", "dev");
    // From the parent folder, the folder's own platform.toml counts.
    let outcome = home.run(&["deploy", "game/build"]).await.succeeded();
    assert_eq!(outcome.stdout, "http://dev-game.platform.localhost\n");
    assert!(
        outcome
            .stderr
            .contains("warning: The tag is async. (runtime-async)"),
        "{outcome:?}"
    );
    let build = home.path("game/build").canonicalize().unwrap();
    let content = format!("Deploying 2 files (3.00 MB) of {} to ", build.display());
    assert!(outcome.stderr.contains(&content), "{outcome:?}");
    let sent = platform.seen(path);
    assert_eq!(sent[0].headers["content-type"], "application/gzip");
    let files = unpacked(&sent[0].body);
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["assets/noise.bin", "index.html"]
    );
    assert_eq!(files["assets/noise.bin"], noise);

    let mut command = home.command(&["deploy", "--json"]);
    command.current_dir(home.path("game/build/assets"));
    let outcome = crate::support::outcome(command).await.succeeded();
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.stdout).unwrap(),
        answer
    );
    assert_eq!(platform.seen(path)[1].body, sent[0].body);
}

#[tokio::test]
async fn a_deploy_with_a_refused_token_is_sent_whole_again() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    let path = "/api/projects/game/environments/prod/deployment";
    let refused = platform.problem("not-signed-in", 401, "Please sign in first.");
    let answer = json!({"id": "1", "url": "http://game.platform.localhost", "warnings": []});
    platform.say(&format!("PUT - {path}"), &[(401, refused), (201, answer)]);
    platform.has("game", "prod");
    let arguments = &["deploy", "-p", "game", "--env", "prod", "--yes"];
    home.run(arguments).await.succeeded();
    let sent = platform.seen(path);
    assert_eq!(unpacked(&sent[1].body)["index.html"], PAGE.as_bytes());
}

#[tokio::test]
async fn production_is_not_deployed_to_unasked() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    let outcome = home
        .run(&["deploy", "-p", "game", "--env", "prod"])
        .await
        .ended_with(2);
    assert!(last_line(&outcome.stderr).contains("--yes"), "{outcome:?}");
    assert!(
        platform
            .seen("/api/projects/game/environments/prod/deployment")
            .is_empty()
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_question_before_production_names_the_folder() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    platform.has("game", "prod");
    // A terminal without an answer.
    let program = home.command(&[]).as_std().get_program().to_owned();
    let program = program.to_str().unwrap();
    let mut command = tokio::process::Command::new("/usr/bin/script");
    command
        .args([
            "-qec",
            &format!("{program} deploy -p game --env prod"),
            "/dev/null",
        ])
        .env_clear()
        .env("HOME", home.path(""))
        .env("XDG_CONFIG_HOME", home.path("config"))
        .env("PLATFORM_ORIGIN", platform.origin())
        .env("NO_COLOR", "1")
        .current_dir(home.path(""))
        .stdin(std::process::Stdio::null());
    let outcome = crate::support::outcome(command).await;
    let dist = home.path("dist").canonicalize().unwrap();
    let question = format!("Deploy 1 file (73 B) of {} to production", dist.display());
    assert!(outcome.stdout.contains(&question), "{outcome:?}");
    assert!(
        outcome.stdout.contains("Nothing was deployed"),
        "{outcome:?}"
    );
    assert!(
        platform
            .seen("/api/projects/game/environments/prod/deployment")
            .is_empty()
    );
}

#[tokio::test]
async fn what_cannot_be_deployed_is_not_sent() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("empty/readme.txt", "");
    home.write("reserved/index.html", PAGE);
    home.write("reserved/__platform/runtime.js", "");
    for (folder, part) in [
        ("none", "Build the game first"),
        ("empty", "has no index.html"),
        ("reserved", "__platform"),
    ] {
        let outcome = home
            .run(&["deploy", folder, "-p", "game"])
            .await
            .ended_with(1);
        assert!(outcome.stderr.contains(part), "{outcome:?}");
    }
    assert!(
        platform
            .seen("/api/projects/game/environments/dev/deployment")
            .is_empty()
    );
}

#[cfg(unix)]
#[tokio::test]
async fn settings_that_came_with_a_game_deploy_nothing_from_outside_of_it() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("private/index.html", "secret");
    platform.has("game", "dev");
    home.write("game/build/index.html", PAGE);
    std::os::unix::fs::symlink("../private", home.path("game/link")).unwrap();
    let path = "/api/projects/game/environments/dev/deployment";
    let answer = json!({"id": "1", "url": "http://dev-game.platform.localhost", "warnings": []});
    platform.say(
        &format!("PUT - {path}"),
        &[(201, answer.clone()), (201, answer)],
    );
    let run = async |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.current_dir(home.path("game"));
        crate::support::outcome(command).await
    };
    let absolute = home.path("private").display().to_string();
    for dist in [
        "../private",
        absolute.as_str(),
        "link",
        "build/../../private",
        "..",
    ] {
        let settings = format!("slug = \"game\"\ndist = \"{dist}\"\n");
        home.write("game/platform.toml", settings);
        for command in ["deploy", "check"] {
            let outcome = run(&[command]).await.ended_with(2);
            let told = last_line(&outcome.stderr);
            assert!(
                told.contains("is outside the game's folder"),
                "{dist}: {told}"
            );
            assert!(
                told.contains("name the folder on the command line"),
                "{told}"
            );
        }
    }
    assert!(platform.seen(path).is_empty());

    // The link is the folder that is used if the settings name none.
    std::fs::rename(home.path("game/link"), home.path("game/dist")).unwrap();
    home.write("game/platform.toml", "slug = \"game\"\n");
    run(&["deploy"]).await.ended_with(2);
    // A folder that is named explicitly is accepted.
    run(&["deploy", "dist"]).await.succeeded();
    assert_eq!(
        unpacked(&platform.seen(path)[0].body)["index.html"],
        b"secret"
    );
    home.write(
        "game/platform.toml",
        "slug = \"game\"\ndist = \"build/../build\"\n",
    );
    run(&["deploy"]).await.succeeded();
    assert_eq!(
        unpacked(&platform.seen(path)[1].body)["index.html"],
        PAGE.as_bytes()
    );
}

#[tokio::test]
async fn a_refused_deploy_says_why() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    let problem = platform.problem("deployment-invalid", 422, "Two files have one name.");
    let call = "PUT - /api/projects/game/environments/dev/deployment";
    platform.say(call, &[(422, problem)]);
    platform.has("game", "dev");
    let outcome = home.run(&["deploy", "-p", "game"]).await.ended_with(1);
    assert_eq!(
        last_line(&outcome.stderr),
        "error: Two files have one name. (request req-1)"
    );
}

#[tokio::test]
async fn nothing_is_said_to_begin_where_it_cannot() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    let outcome = home.run(&["deploy", "-p", "not-there"]).await.ended_with(1);
    assert!(
        outcome.stderr.contains("platform projects create"),
        "{outcome:?}"
    );
    assert!(!outcome.stderr.contains("Deploying"), "{outcome:?}");

    let (_closed, port) = closed_port();
    let stopped = format!("http://platform.localhost:{port}");
    let kept = std::fs::read_to_string(home.credentials()).unwrap();
    let moved = kept.replace(&platform.origin(), &stopped);
    std::fs::write(home.credentials(), moved).unwrap();
    let arguments = &["deploy", "-p", "game", "--origin", &stopped];
    let outcome = home.run(arguments).await.ended_with(1);
    assert!(outcome.stderr.contains("cannot be reached"), "{outcome:?}");
    assert!(!outcome.stderr.contains("Deploying"), "{outcome:?}");
}

#[tokio::test]
async fn sources_are_warned_of_before_they_are_sent() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("game/index.html", PAGE);
    home.write("game/package.json", "{}");
    home.write("game/dist/index.html", PAGE);
    let outcome = home.run(&["check", "game"]).await.succeeded();
    assert!(
        outcome.stdout.starts_with("looks-like-sources: game looks"),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("game/dist"), "{outcome:?}");
    let outcome = home
        .run(&["check", "game", "--strict", "--json"])
        .await
        .ended_with(1);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(found["warnings"][0]["code"], "looks-like-sources");
    home.run(&["check", "game/dist", "--strict"])
        .await
        .succeeded();

    platform.has("game", "dev");
    let answer = json!({"id": "1", "url": "http://dev-game.platform.localhost", "warnings": []});
    platform.say(
        "PUT - /api/projects/game/environments/dev/deployment",
        &[(201, answer)],
    );
    let outcome = home
        .run(&["deploy", "game", "-p", "game"])
        .await
        .succeeded();
    let warned = outcome.stderr.find("(looks-like-sources)").unwrap();
    assert!(
        warned < outcome.stderr.find("Deploying").unwrap(),
        "{outcome:?}"
    );
    let outcome = home
        .run(&["deploy", "game/dist", "-p", "game"])
        .await
        .succeeded();
    assert!(!outcome.stderr.contains("looks-like"), "{outcome:?}");
}

#[tokio::test]
async fn a_folder_with_settings_is_a_project_of_which_the_built_game_is_sent() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("game/platform.toml", "slug = \"game\"\ndist = \"built\"\n");
    home.write("game/index.html", PAGE);
    home.write("game/package.json", "{}");
    home.write("game/built/index.html", PAGE);
    platform.has("game", "dev");
    let answer = json!({"id": "1", "url": "http://dev-game.platform.localhost", "warnings": []});
    platform.say(
        "PUT - /api/projects/game/environments/dev/deployment",
        &[(201, answer)],
    );
    let project = "game is a project: this is about its folder built, as its platform.toml says.";
    let outcome = home.run(&["deploy", "game"]).await.succeeded();
    for said in [project, "1 file ", "/game/built to "] {
        assert!(outcome.stderr.contains(said), "{said}: {outcome:?}");
    }
    let checked = home.run(&["check", "game", "--strict"]).await.succeeded();
    assert!(checked.stderr.starts_with(project), "{checked:?}");

    // A folder without settings is what is sent, as is a project whose settings name itself.
    let outcome = home.run(&["deploy", "game/built"]).await.succeeded();
    assert!(!outcome.stderr.contains("is a project"), "{outcome:?}");
    home.write("game/platform.toml", "slug = \"game\"\ndist = \".\"\n");
    let outcome = home.run(&["deploy", "game"]).await.succeeded();
    assert!(!outcome.stderr.contains("is a project"), "{outcome:?}");

    // Without `dist`, the folder that build tools write to.
    home.write("game/platform.toml", "slug = \"game\"\n");
    home.run(&["check", "game", "--strict"]).await.ended_with(1);
    home.write("game/dist/index.html", PAGE);
    let checked = home.run(&["check", "game", "--strict"]).await.succeeded();
    assert!(checked.stderr.contains("its folder dist"), "{checked:?}");
}

#[tokio::test]
async fn bundled_scripts_without_maps_get_one_hint_at_the_end() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    home.write("dist/assets/index-Aa1Bb2Cc.js", "a();".repeat(500));
    home.write("dist/assets/other.js", "a();".repeat(500));
    home.write("dist/assets/written.js", "a();\n".repeat(500));
    platform.has("game", "dev");
    let answer = json!({"id": "1", "url": "http://dev-game.platform.localhost", "warnings": []});
    let path = "/api/projects/game/environments/dev/deployment";
    platform.say(&format!("PUT - {path}"), &[(201, answer)]);
    let hint = "hint: assets/index-Aa1Bb2Cc.js and 1 other script have no source map";
    let outcome = home.run(&["deploy", "-p", "game"]).await.succeeded();
    assert_eq!(outcome.stdout, "http://dev-game.platform.localhost\n");
    let said = last_line(&outcome.stderr);
    assert!(
        said.starts_with(hint) && said.contains("sourcemap: true"),
        "{said}"
    );
    assert_eq!(outcome.stderr.matches("source map").count(), 1);
    // It is no warning.
    let checked = home.run(&["check", "--strict"]).await.succeeded();
    assert!(checked.stderr.contains(hint), "{checked:?}");
    assert_eq!(checked.stdout, "");

    for name in ["index-Aa1Bb2Cc", "other"] {
        let script = format!(
            "{}\n//# sourceMappingURL={name}.js.map\n",
            "a();".repeat(500)
        );
        home.write(&format!("dist/assets/{name}.js"), script);
    }
    let outcome = home.run(&["deploy", "-p", "game"]).await.succeeded();
    assert!(!outcome.stderr.contains("hint"), "{outcome:?}");
}

#[tokio::test]
async fn what_should_not_be_public_is_warned_of_by_name() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    for (file, text) in [
        ("game/index.html", PAGE),
        ("game/secrets.env", "KEY=1"),
        ("game/keys/id_rsa", "key"),
        ("game/server/main.rs", "fn main() {}"),
        // These are left out in any case.
        ("game/.npmrc", "//registry/:_authToken=1"),
        ("game/.git/config", ""),
    ] {
        home.write(file, text);
    }
    let outcome = home.run(&["check", "game", "--json"]).await.succeeded();
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(found["warnings"][0]["code"], "private-file");
    let message = found["warnings"][0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("keys/id_rsa, secrets.env should probably not be public"),
        "{message}"
    );
    assert_eq!(found["warnings"][1]["code"], "source-file");
    home.run(&["check", "game", "--strict"]).await.ended_with(1);

    platform.has("game", "prod");
    let answer = json!({
        "id": "1", "url": "http://game.platform.localhost",
        "warnings": [{"code": "private-file", "message": "the same again"}],
    });
    let path = "/api/projects/game/environments/prod/deployment";
    platform.say(&format!("PUT - {path}"), &[(201, answer)]);
    let line = ["deploy", "game", "-p", "game", "--env", "prod"];
    home.run(&line).await.ended_with(2);
    assert_eq!(platform.seen(path).len(), 0, "production wants a word");
    let outcome = home
        .run(&[&line[..], &["--yes"]].concat())
        .await
        .succeeded();
    let warned = outcome.stderr.find("(private-file)").unwrap();
    assert!(
        warned < outcome.stderr.find("Deploying").unwrap(),
        "{outcome:?}"
    );
    assert_eq!(
        outcome.stderr.matches("private-file").count(),
        1,
        "{outcome:?}"
    );
}

#[tokio::test]
async fn projects_are_made_and_listed() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let game = project(&platform, "game");
    platform.say("POST - /api/projects", &[(201, game.clone())]);
    let outcome = home.run(&["projects", "create", "game"]).await.succeeded();
    let dev = format!(
        "game     dev         2  http://dev-game.platform.localhost:{}",
        platform.port
    );
    assert!(outcome.stdout.contains(&dev), "{outcome:?}");
    let sent = &platform.seen("/api/projects")[0];
    assert_eq!(
        (sent.method.as_str(), &sent.body[..]),
        ("POST", &b"{\"slug\":\"game\"}"[..])
    );

    let list = json!({"projects": [game]});
    platform.say(
        "GET - /api/projects",
        &[(200, list.clone()), (200, list.clone())],
    );
    let outcome = home.run(&["projects", "list"]).await.succeeded();
    assert!(outcome.stdout.contains("(not deployed)"), "{outcome:?}");
    let outcome = home.run(&["projects", "list", "--json"]).await.succeeded();
    assert_eq!(
        serde_json::from_str::<Value>(&outcome.stdout).unwrap(),
        list
    );
}

#[tokio::test]
async fn a_new_game_goes_into_an_empty_folder_with_its_own_settings() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.run(&["init", "games/My_Game"]).await.succeeded();
    let settings = std::fs::read_to_string(home.path("games/My_Game/platform.toml")).unwrap();
    assert!(settings.contains("slug = \"my-game\""), "{settings}");
    assert!(
        settings.contains(&format!("origin = \"{}\"", platform.origin())),
        "{settings}"
    );
    assert!(home.path("games/My_Game/platform.d.ts").is_file());

    home.write("full/mine.txt", "kept");
    let outcome = home.run(&["init", "full"]).await.ended_with(1);
    assert!(outcome.stderr.contains("--force"), "{outcome:?}");
    assert!(!home.path("full/platform.toml").exists());
    home.run(&["init", "full", "--force", "-p", "other"])
        .await
        .succeeded();
    assert!(home.path("full/platform.toml").is_file() && home.path("full/mine.txt").is_file());
}

#[tokio::test]
async fn a_check_names_the_warnings_without_a_platform() {
    let home = Home::at("http://platform.localhost:1");
    home.write("good/index.html", PAGE);
    home.write(
        "bad/index.html",
        "<!doctype html><head></head><body></body>",
    );
    home.write("none/readme.txt", "");
    assert_eq!(
        home.run(&["check", "good", "--strict"])
            .await
            .succeeded()
            .stdout,
        ""
    );
    let outcome = home.run(&["check", "bad"]).await.succeeded();
    assert!(
        outcome.stdout.starts_with("runtime-not-loaded: "),
        "{outcome:?}"
    );
    let outcome = home
        .run(&["check", "bad", "--strict", "--json"])
        .await
        .ended_with(1);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(found["warnings"][0]["code"], "runtime-not-loaded");
    home.run(&["check", "none"]).await.ended_with(1);
    home.run(&["check", "absent"]).await.ended_with(1);
}

#[tokio::test]
async fn an_administrator_says_so_before_a_command_is_about_somebody_elses_project() {
    use base64::Engine as _;
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.write("dist/index.html", PAGE);
    let claims = json!({
        "iss": platform.auth_url(), "sub": "0198c2d4-0000-7000-8000-000000000001",
        "username": "ada", "scope": "projects administration",
    });
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims.to_string());
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("PLATFORM_TOKEN", format!("e30.{claims}.c2ln"));
        crate::support::outcome(command)
    };
    let of = |owner: &str, name: &str| {
        let project = json!({"slug": "game", "owner": owner, "owner_username": name});
        platform.say("GET - /api/projects/game", &[(200, project)]);
    };
    let path = "/api/projects/game/environments/prod/deployment";
    let answer = json!({"id": "1", "url": "http://game.platform.localhost", "warnings": []});
    platform.say(&format!("PUT - {path}"), &[(201, answer)]);
    platform.has("game", "prod");
    let deploy = ["deploy", "dist", "-p", "game", "--env", "prod", "--yes"];

    of("0198c2d4-0000-7000-8000-000000000002", "heron");
    let refused = run(&deploy).await.ended_with(1);
    for part in ["belongs to heron", "--as-administrator"] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    for other in [
        &["test-token", "-p", "game"][..],
        &["rollback", "-p", "game"],
        &["logs", "-p", "game"],
        &["deployments", "-p", "game"],
        &["backend", "remove", "-p", "game"],
        &["frames", "set", "--none", "-p", "game"],
        &["projects", "disable", "game"],
        &["projects", "enable", "game"],
        &["projects", "delete", "game", "--yes"],
        &["projects", "restore", "game"],
    ] {
        let refused = run(other).await.ended_with(1);
        assert!(refused.stderr.contains("belongs to heron"), "{refused:?}");
    }
    assert!(platform.seen(path).is_empty());
    let disabling = "/api/projects/game/disable";
    assert!(platform.seen(disabling).is_empty());
    let environment = json!({"url": "http://game.platform.localhost", "deployment": null});
    let environments = json!({"dev": environment, "prod": environment});
    let disabled = json!({"slug": "game", "standing": {"state": "disabled", "by": "platform"},
                          "environments": environments});
    platform.say(&format!("POST - {disabling}"), &[(200, disabled)]);
    let disable = ["projects", "disable", "game", "--as-administrator"];
    let done = run(&disable).await.succeeded();
    assert!(done.stderr.contains("belongs to heron"), "{done:?}");
    assert_eq!(platform.seen(disabling).len(), 1);
    let all = [&deploy[..], &["--as-administrator"]].concat();
    let done = run(&all).await.succeeded();
    assert!(done.stderr.contains("belongs to heron"), "{done:?}");
    assert_eq!(platform.seen(path).len(), 1);
    // The caller's own project needs no option.
    of("0198c2d4-0000-7000-8000-000000000001", "ada");
    run(&deploy).await.succeeded();
    assert_eq!(platform.seen(path).len(), 2);
}

#[tokio::test]
async fn a_device_that_may_not_administer_is_told_so() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    let detail = "The project game belongs to heron, not to you. A device cannot administer.";
    let refused = platform.problem("step-up-required", 403, detail);
    let environment = "GET - /api/projects/game/environments/dev";
    platform.say(environment, &[(403, refused)]);
    let refused = home
        .run(&["deploy", "dist", "-p", "game"])
        .await
        .ended_with(1);
    assert!(refused.stderr.contains("belongs to heron"), "{refused:?}");
    assert!(
        platform
            .seen("/api/projects/game/environments/dev/deployment")
            .is_empty()
    );
}

#[tokio::test]
async fn a_deploy_says_what_it_is() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    home.write("dist/index.html", PAGE);
    let path = "/api/projects/game/environments/dev/deployment";
    let answer = json!({"id": "1", "short_id": "3f2a9c1b", "url": "http://dev-game.platform.localhost",
                        "warnings": []});
    platform.say(&format!("PUT - {path}"), &[(201, answer)]);
    platform.has("game", "dev");
    let arguments = &["deploy", "-p", "game", "--message", "Fix the rings & more"];
    let outcome = home.run(arguments).await.succeeded();
    assert!(
        outcome.stderr.contains("It is the deployment 3f2a9c1b"),
        "{outcome:?}"
    );
    let sent = &platform.seen(path)[0];
    let query = sent.path.split_once('?').unwrap().1;
    assert!(
        query.starts_with("message=Fix+the+rings+%26+more"),
        "{query}"
    );
}

#[tokio::test]
async fn a_folder_without_a_page_is_a_problem_of_its_own_for_programs() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    home.write("game/readme.txt", "");
    for folder in ["game", "none", "game/readme.txt"] {
        let outcome = home.run(&["check", folder, "--json"]).await.ended_with(1);
        let problem: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(problem["type"], "urn:platform:deployment-invalid");
        assert_eq!(problem.get("status"), None, "no server answered: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(outcome.stderr.contains(detail), "{outcome:?}");
    }
    let outcome = home.run(&["check", "game", "--json"]).await;
    assert!(outcome.stdout.contains("has no index.html"), "{outcome:?}");
}

#[tokio::test]
async fn a_script_that_uses_platform_too_early_is_named_before_a_deploy() {
    let platform = Platform::start().await;
    let home = Home::of(&platform);
    let page = format!("{PAGE}\n<script src=start.js async></script>");
    home.write("game/index.html", page);
    home.write("game/start.js", "platform.fetch('/api/me');");
    let outcome = home.run(&["check", "game"]).await.succeeded();
    assert!(
        outcome.stdout.starts_with("runtime-after-scripts: "),
        "{outcome:?}"
    );
    assert!(
        outcome.stdout.contains("\"start.js\" in line 2 with async"),
        "{outcome:?}"
    );
    home.write("game/start.js", "onload = () => platform.fetch('/api/me');");
    let outcome = home.run(&["check", "game"]).await.succeeded();
    assert_eq!(outcome.stdout, "");
}
