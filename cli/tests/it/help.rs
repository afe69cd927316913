//! The output of `--help`, kept as snapshots, and the completions.

use crate::support::Home;

#[tokio::test]
async fn help_is_a_result_and_changes_only_on_purpose() {
    let home = Home::at("http://platform.localhost:1");
    for command in [
        "",
        "login",
        "logout",
        "whoami",
        "token",
        "tokens",
        "tokens create",
        "tokens list",
        "tokens revoke",
        "init",
        "people",
        "people list",
        "people invite",
        "people invitations",
        "people withdraw",
        "people role",
        "people remove",
        "people leave",
        "people hand-on",
        "people take-on",
        "people end-offer",
        "projects",
        "projects create",
        "projects list",
        "deploy",
        "previews",
        "previews list",
        "previews delete",
        "deployments",
        "rollback",
        "backend",
        "backend set",
        "backend remove",
        "backend show",
        "backend variables",
        "frames",
        "frames set",
        "frames show",
        "domains",
        "domains add",
        "domains list",
        "domains verify",
        "domains canonical",
        "domains remove",
        "dev",
        "runtime",
        "test-token",
        "logs",
        "errors",
        "errors show",
        "errors resolve",
        "check",
        "completions",
    ] {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.push("--help");
        let outcome = home.run(&arguments).await.succeeded();
        assert_eq!(outcome.stderr, "");
        let name = format!("help {command}").trim().replace(' ', "-");
        insta::assert_snapshot!(name, outcome.stdout);
    }
}

#[tokio::test]
async fn every_shell_gets_its_completions() {
    let home = Home::at("http://platform.localhost:1");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let outcome = home.run(&["completions", shell]).await.succeeded();
        assert!(outcome.stdout.contains("test-token"), "{shell}");
    }
    home.run(&["completions", "tcsh"]).await.ended_with(2);
}
