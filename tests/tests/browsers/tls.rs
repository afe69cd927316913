//! The server program with TLS of its own, without a proxy in front.

use platform_tests::browser::{Engine, Stage};
use platform_tests::https::{HttpsServer, host};
use platform_tests::shared;

platform_tests::browser_tests![the_demo_plays_over_https_of_the_server_itself];

async fn the_demo_plays_over_https_of_the_server_itself(stage: Stage) {
    if shared::leave_out("the_demo_plays_over_https_of_the_server_itself") {
        return;
    }
    let engine = stage.engine();
    // A name of its own: a browser could remember that it needs https.
    let platform = host(engine, "tls");
    let secure = HttpsServer::start(engine, &platform, &platform).await;
    stage
        .open(&format!("https://demo.{platform}:{}/", secure.port))
        .await;
    // The game's backend trusts public certificates alone, so it is left out.
    let me = stage.run("return platform.player()").await;
    assert_eq!(me["isGuest"], true);
    let protocol = "return performance.getEntriesByType('resource')\
                    .find(entry => entry.name.endsWith('/runtime.js')).nextHopProtocol";
    let expected = match engine {
        Engine::Chromium | Engine::Firefox => "h2",
        // It uses HTTP/1.1 where a proxy is in between.
        Engine::WebKit => "http/1.1",
    };
    assert_eq!(stage.run(protocol).await, expected);
    stage.reload().await;
    let again = stage.run("return platform.player()").await;
    assert_eq!(again["id"], me["id"], "the browser keeps the session");
    secure.server.stop().await;
}
