//! What the program says about a newer version of itself.

use serde_json::json;

use crate::platform::Platform;
use crate::support::Home;

const SELF: &str = "GET - /api/projects";

/// A platform with a call that can be made, and a user who is signed in to it.
async fn platform_and_home() -> (Platform, Home) {
    let platform = Platform::start().await;
    platform.say(SELF, &[(200, json!({ "projects": [] }))]);
    let home = Home::signed_in(&platform).await;
    (platform, home)
}

#[tokio::test]
async fn a_newer_version_is_named_once_a_day_and_never_to_a_program() {
    let (platform, home) = platform_and_home().await;
    platform.hands_out("999.0.0");
    let json = home.run(&["projects", "list", "--json"]).await.succeeded();
    assert!(!json.stderr.contains("999"), "{json:?}");

    let first = home.run(&["projects", "list"]).await.succeeded();
    let said = format!(
        "note: {}/cli has platform 999.0.0. This is {}.",
        platform.origin(),
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(first.stderr.matches(&said).count(), 1, "{first:?}");
    assert!(!first.stdout.contains("999"), "{first:?}");
    let second = home.run(&["projects", "list"]).await.succeeded();
    assert!(!second.stderr.contains("999"), "{second:?}");

    // Nothing was requested for it.
    let calls = platform.seen("/api/projects").len();
    assert_eq!((calls, platform.seen("/cli/version.json").len()), (3, 0));
    // Another platform is another matter.
    let (other, mut elsewhere) = platform_and_home().await;
    other.hands_out("999.0.1");
    elsewhere.shares_cache_of(&home);
    let there = elsewhere.run(&["projects", "list"]).await.succeeded();
    assert!(there.stderr.contains("999.0.1"), "{there:?}");
}

#[tokio::test]
async fn a_version_that_is_not_newer_is_not_named() {
    let (platform, home) = platform_and_home().await;
    for version in [env!("CARGO_PKG_VERSION"), "0.0.9", "0.1.0-rc.1", "new"] {
        platform.hands_out(version);
        let outcome = home.run(&["projects", "list"]).await.succeeded();
        assert!(!outcome.stderr.contains("note:"), "{version} {outcome:?}");
    }
}

#[tokio::test]
async fn a_command_that_fails_names_it_as_well() {
    let (platform, home) = platform_and_home().await;
    platform.hands_out("999.0.0");
    platform.say(SELF, &[(200, json!("not a list"))]);
    let outcome = home.run(&["projects", "list"]).await.ended_with(1);
    assert!(outcome.stderr.contains("999.0.0"), "{outcome:?}");
}
