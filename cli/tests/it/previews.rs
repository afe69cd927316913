//! Previews: the name that a deploy gives to one, and listing and removing them.

use serde_json::{Value, json};

use crate::platform::Platform;
use crate::support::{Home, Outcome, last_line, outcome};

const ALL: &str = "/api/projects/game/previews";

/// A home with a built game.
async fn with_game(platform: &Platform) -> Home {
    let home = Home::signed_in(platform).await;
    home.write("dist/index.html", "<!doctype html><title>x</title>");
    platform.say(&format!("GET - {ALL}"), &[(200, json!({"previews": []}))]);
    home
}

/// Sets the response to a deploy of this preview.
fn accepts(platform: &Platform, name: &str) -> Value {
    let answer = json!({
        "id": "1", "short_id": "3f2a9c1b", "preview": name, "warnings": [],
        "url": format!("http://{name}--game.platform.localhost:{}", platform.port),
    });
    platform.say(&format!("PUT - {ALL}/{name}"), &[(201, answer.clone())]);
    answer
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program finds git where this test finds it"
)]
async fn deploy(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let all = [&["deploy", "-p", "game"], arguments].concat();
    let mut command = home.command(&all);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(variables.iter().copied());
    outcome(command).await
}

/// Runs git in the home.
fn git(home: &Home, arguments: &[&str]) {
    let who = ["-c", "user.name=otter", "-c", "user.email=o@example.org"];
    let done = std::process::Command::new("git")
        .args(who)
        .args(arguments)
        .current_dir(home.path(""))
        .env("HOME", home.path(""))
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
async fn a_preview_is_deployed_at_its_own_address() {
    let platform = Platform::start().await;
    let home = with_game(&platform).await;
    let answer = accepts(&platform, "new-rings");
    let arguments = ["--preview", "new-rings", "--message", "Rings"];
    let told = deploy(&home, &arguments, &[]).await.succeeded();
    let url = answer["url"].as_str().unwrap();
    assert_eq!(told.stdout, format!("{url}\n"));
    assert!(told.stderr.contains(&format!(" to {url}")), "{told:?}");
    assert!(told.stderr.contains("14 days"), "{told:?}");
    let path = format!("{ALL}/new-rings");
    assert_eq!(
        platform.seen(&path)[0].path,
        format!("{path}?message=Rings")
    );
    let json = deploy(&home, &["--preview", "new-rings", "--json"], &[]).await;
    let printed: Value = serde_json::from_str(&json.succeeded().stdout).unwrap();
    assert_eq!(printed, answer);
}

#[tokio::test]
async fn a_preview_without_a_name_is_named_after_the_branch() {
    let platform = Platform::start().await;
    let home = with_game(&platform).await;
    // A pipeline without a branch in its work tree names it in a variable.
    for (variables, name) in [
        (&[("GITHUB_REF_NAME", "main")][..], "main"),
        (
            &[
                ("GITHUB_HEAD_REF", "fix/Rings"),
                ("GITHUB_REF_NAME", "7/merge"),
            ],
            "fix-rings",
        ),
        (&[("CI_COMMIT_REF_NAME", "v1.2")], "v1-2"),
    ] {
        accepts(&platform, name);
        deploy(&home, &["--preview"], variables).await.succeeded();
        assert_eq!(platform.seen(&format!("{ALL}/{name}")).len(), 1, "{name}");
    }
    let none = deploy(&home, &["--preview"], &[]).await.ended_with(2);
    assert!(
        last_line(&none.stderr).contains("--preview NAME"),
        "{none:?}"
    );
    git(&home, &["init", "--quiet", "-b", "feature/Lights_2"]);
    git(
        &home,
        &["commit", "--quiet", "--allow-empty", "-m", "first"],
    );
    accepts(&platform, "feature-lights-2");
    let variables = &[("GITHUB_REF_NAME", "main")];
    deploy(&home, &["--preview"], variables).await.succeeded();
    let sent = platform.seen(&format!("{ALL}/feature-lights-2"));
    assert_eq!(sent.len(), 1);
}

#[tokio::test]
async fn a_name_that_is_not_possible_is_refused_before_anything_is_sent() {
    let platform = Platform::start().await;
    let home = with_game(&platform).await;
    let told = deploy(&home, &["--preview", "New/Rings"], &[]).await;
    let told = told.ended_with(2);
    let line = last_line(&told.stderr);
    assert!(line.ends_with("Possible would be: new-rings"), "{told:?}");
    assert!(platform.seen(ALL).is_empty());
    let both = ["--preview", "new-rings", "--env", "prod", "--yes"];
    deploy(&home, &both, &[]).await.ended_with(2);
}

#[tokio::test]
async fn previews_are_listed_and_removed() {
    let platform = Platform::start().await;
    let home = with_game(&platform).await;
    let none = home.run(&["previews", "list", "-p", "game"]).await;
    assert_eq!(none.succeeded().stdout, "");
    let preview = json!({
        "name": "new-rings", "url": "http://new-rings--game.platform.localhost:1",
        "deployment": {"created_at": "2020-01-31T12:00:00Z"},
        "created_at": "2020-01-01T00:00:00Z", "used_on": "2020-02-01",
        "expires_at": "2020-02-16T00:00:00Z",
    });
    let list = json!({"previews": [preview.clone()], "most": 20});
    platform.say(&format!("GET - {ALL}"), &[(200, list)]);
    let told = home.run(&["previews", "list", "-p", "game"]).await;
    let told = told.succeeded().stdout;
    let line = last_line(&told);
    for part in [
        "new-rings ",
        "  2020-01-31  2020-02-01  2020-02-16  ",
        "http://new-rings--game.",
    ] {
        assert!(line.contains(part), "{told}");
    }
    let json = home
        .run(&["previews", "list", "-p", "game", "--json"])
        .await;
    let printed: Value = serde_json::from_str(&json.succeeded().stdout).unwrap();
    assert_eq!(printed, json!({"previews": [preview.clone()]}));
    let path = format!("{ALL}/new-rings");
    platform.say(&format!("DELETE - {path}"), &[(200, preview.clone())]);
    let delete = ["previews", "delete", "new-rings", "-p", "game", "--json"];
    let removed = home.run(&delete).await.succeeded();
    let printed: Value = serde_json::from_str(&removed.stdout).unwrap();
    assert_eq!(printed, preview);
    assert_eq!(platform.seen(&path)[0].method, "DELETE");
    let hostile = ["previews", "delete", "../tokens", "-p", "game"];
    home.run(&hostile).await.ended_with(2);
}
