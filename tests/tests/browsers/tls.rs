//! The server program with TLS of its own, without a proxy in front.

use platform_tests::browser::{Engine, Stage};
use platform_tests::server::Server;
use platform_tests::shared;
use tempfile::TempDir;

platform_tests::browser_tests![the_demo_plays_over_https_of_the_server_itself];

/// Returns the host of the platform, of which no other test is: a browser could remember that it needs https.
fn platform(stage: &Stage) -> &'static str {
    match stage.engine() {
        Engine::Chromium | Engine::Firefox => "tls.localhost",
        // It takes each name under `localhost` for a site of its own, and its proxy resolves this one.
        Engine::WebKit => "tls.example",
    }
}

async fn the_demo_plays_over_https_of_the_server_itself(stage: Stage) {
    if shared::leave_out("the_demo_plays_over_https_of_the_server_itself") {
        return;
    }
    let platform = platform(&stage);
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let names = [platform.to_owned(), format!("*.{platform}")];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (certificate, key) = (data.path().join("tls.pem"), data.path().join("tls.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let port = free_port();
    let settings = format!(
        "origin = \"https://{platform}:{port}\"\nlisten = \"127.0.0.1:{port}\"\ntls = \"files\"\n\
         tls_certificates = {certificate:?}\ntls_keys = {key:?}\n"
    );
    let listen = format!("127.0.0.1:{port}");
    if stage.engine() == Engine::WebKit {
        // Only a platform under `localhost` makes the demo, which stays.
        Server::start(data.path()).await.stop().await;
    }
    let server = Server::start_set(data.path(), &settings, &[("PLATFORM_LISTEN", &listen)]).await;
    stage
        .open(&format!("https://demo.{platform}:{port}/"))
        .await;
    // The game's backend trusts public certificates alone, so it is left out.
    let me = stage.run("return platform.player()").await;
    assert_eq!(me["isGuest"], true);
    let protocol = "return performance.getEntriesByType('resource')\
                    .find(entry => entry.name.endsWith('/runtime.js')).nextHopProtocol";
    let expected = match stage.engine() {
        Engine::Chromium | Engine::Firefox => "h2",
        // It uses HTTP/1.1 where a proxy is in between.
        Engine::WebKit => "http/1.1",
    };
    assert_eq!(stage.run(protocol).await, expected);
    stage.reload().await;
    let again = stage.run("return platform.player()").await;
    assert_eq!(again["id"], me["id"], "the browser keeps the session");
    server.stop().await;
}

/// Returns a port that nobody listens on: the origin contains it before the server has started.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
