//! The image of `deploy/Containerfile`, built and run by a real engine without rights and without another image:
//! alone, and as the service of `deploy/compose.yaml` behind Caddy, with PostgreSQL and Redis.

mod alone;
#[cfg(feature = "cluster")]
mod compose;
mod engine;

use self::alone::{ip, is_alone, run_alone};
use self::engine::{Engine, IMAGE};
use crate::containers::DATA;
use crate::program::{Server, guest, subject, token};

/// The name of the container.
const NAME: &str = "platform";

#[test]
fn the_image_is_built_from_nothing_and_its_volume_keeps_players() {
    if !is_alone() {
        let test = "in_containers::the_image_is_built_from_nothing_and_its_volume_keeps_players";
        return run_alone(test);
    }
    ip("link set lo up");
    let engine = Engine::with_image();
    let said = engine.image("{{.Config.Entrypoint}} {{.Config.Cmd}} {{.Config.User}}");
    assert_eq!(said, "[/usr/bin/platform-server] [serve] 65532:65532");
    let start = || {
        let mut run = engine.run(NAME);
        run.args(["--read-only", "--cap-drop=ALL"])
            .arg("--security-opt=no-new-privileges:true")
            .arg(format!("--volume=data:{DATA}"))
            // There is no other server to which visitors could be sent meanwhile.
            .arg("--env=PLATFORM_SHUTDOWN_DELAY_SECONDS=0")
            .arg(IMAGE);
        Server::start(&mut run)
    };
    let server = start();
    engine.assert_may_do_little(NAME);
    assert!(engine.is_healthy(NAME));
    for path in ["/", "/__platform/runtime.js"] {
        let page = server.ask(&format!("GET {path}"), "demo.platform.localhost", "");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    }
    let (sub, cookie) = guest(&server);
    assert!(engine.operate(NAME, &["keys", "list"]).contains("signing"));
    // The engine passes the signal on.
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");

    let server = start();
    assert_eq!(subject(&token(&server, &cookie)), sub);
    engine.stop(NAME);
    let (_, log, code) = server.wait();
    assert_eq!(code, Some(0), "{log}");
}

#[cfg(feature = "cluster")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_is_played_in_the_services_of_compose() {
    use platform_test_postgres::TestDatabase;

    use crate::proxy::echo;
    use crate::tls_visitor::{host, subject_in};

    if !is_alone() {
        return run_alone("in_containers::the_demo_is_played_in_the_services_of_compose");
    }
    let compose = compose::Compose::read();
    let engine = Engine::with_image();
    let database = TestDatabase::new();
    compose.postgres(&database).await;
    let _redis = compose.redis();
    let server = compose.platform(&engine);
    engine.assert_may_do_little(NAME);
    let (_caddy, visitor) = compose.caddy_with_certificates().await;

    visitor.opens_pages().await;
    let (sub, cookie) = visitor.comes_back().await;
    // Caddy is trusted to say who a visitor is, and no visitor is.
    let addresses = "SELECT string_agg(DISTINCT address, ' ') FROM players";
    assert_eq!(database.ask(addresses), Some(compose.gateway()));
    let token = owner(&engine, &database, &visitor).await;
    visitor.streams_logs(&token).await;
    let backend =
        serde_json::json!({ "url": format!("http://{}", echo().await), "paths": ["/ws/"] });
    let request = "PUT /api/projects/demo/environments/prod/backend";
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let set = visitor.send(request, "", &bearer, &backend).await;
    assert!(set.starts_with("HTTP/1.1 200"), "{set}");
    visitor.echoes_over_a_web_socket().await;
    visitor.is_redirected(&host("demo")).await;
    // Everything is reached, Redis too.
    let ready = engine.operate(NAME, &["ready"]);
    assert_eq!(ready, "{\"ready\":true,\"degraded\":[]}\n");

    engine.stop(NAME);
    let (_, log, code) = server.wait();
    assert_eq!(code, Some(0), "{log}");
    let server = compose.platform(&engine);
    let again = visitor.token("demo", &cookie).await;
    assert_eq!(subject_in(&again), sub);
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
}

/// Makes a visitor an account, to which the operator gives the demo. Returns a token of the console.
#[cfg(feature = "cluster")]
async fn owner(
    engine: &Engine,
    database: &platform_test_postgres::TestDatabase,
    visitor: &crate::tls_visitor::Visitor,
) -> String {
    use crate::tls_visitor::{access_token, cookie_of, subject_in};

    let guest = visitor.token("", "").await;
    let (sub, cookie) = (subject_in(&guest), cookie_of(&guest));
    // As after a recent sign-in.
    database.run(&format!(
        "UPDATE players SET linked = true WHERE id = '{sub}';
         UPDATE sessions SET authenticated_at = (extract(epoch FROM now()) * 1000)::bigint
         WHERE player = '{sub}'"
    ));
    let given = engine.operate(NAME, &["project", "transfer", "demo", &sub]);
    assert!(given.contains("demo belongs to"), "{given}");
    access_token(&visitor.token("", &cookie).await)
}
