//! The server program itself, as a developer runs it after building it.

use platform_test_ports::ReservedPort;
use platform_tests::browser::Stage;
use platform_tests::server::Server;
use platform_tests::visitor::claims;
use serde_json::json;
use tempfile::TempDir;

platform_tests::browser_tests![a_page_plays_on_when_the_program_was_killed_and_started_again];

async fn a_page_plays_on_when_the_program_was_killed_and_started_again(stage: Stage) {
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let port = ReservedPort::take().unwrap();
    let mut server = Server::start_on(data.path(), &port).await;
    let game = format!("http://demo.platform.localhost:{}/", port.number());
    stage.open(&game).await;
    let me = stage
        .run("return (await platform.fetch('/api/me')).json()")
        .await;
    assert_eq!(me["is_anon"], true);

    server.kill();
    // Firefox reports it with its own message, since it sees no cross-origin response.
    stage.tolerate_log("CORS request did not succeed");
    for call in ["fetch('/api/me')", "getAccessToken({ forceRefresh: true })"] {
        let error = stage.refused(&format!("await platform.{call}")).await;
        assert_eq!(
            (error.name.as_str(), error.status),
            ("PlatformError", Some(0)),
            "{call}"
        );
    }
    let token = stage.run("return platform.getAccessToken()").await;
    assert_eq!(
        claims(token.as_str().unwrap()).sub,
        me["sub"],
        "the token is kept"
    );

    let server = Server::start_on(data.path(), &port).await;
    // More than a second after the failure, or before it: this token is still valid.
    assert_eq!(
        stage
            .run("return (await platform.fetch('/api/me')).json()")
            .await,
        me
    );
    stage.reload().await;
    assert_eq!(
        stage
            .run("return (await platform.fetch('/api/me')).json()")
            .await,
        me
    );
    assert_eq!(
        stage.run("return typeof platform.version").await,
        json!("string")
    );
    server.stop().await;
}
