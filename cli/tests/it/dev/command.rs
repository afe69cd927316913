//! The command that `platform dev` starts, and ends.

use http::Method;

use super::{BOUND, Dev, PAGE, scene, until};

/// Whether a process runs.
fn runs(id: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{id}/stat"));
    // An ended process that nobody has waited for is none.
    state.is_ok_and(|state| !state.contains(") Z "))
}

#[tokio::test]
async fn a_started_server_is_found_wherever_it_listens() {
    let (_platform, home) = scene().await;
    let program = env!("CARGO_BIN_EXE_platform");
    home.write("inner/index.html", PAGE);
    // It does not listen on PORT, like most tools.
    let inner = [program, "dev", "inner", "-p", "game", "--port", "0"];
    let mut dev = Dev::start(&home, &[&["--"][..], &inner].concat()).await;
    // The first address was that of the inner one, whose output is passed on.
    let inner = dev.port;
    let _ = dev.block().await;
    loop {
        let line = tokio::time::timeout(BOUND, dev.lines.next_line()).await;
        let line = line.unwrap().unwrap().unwrap();
        if let Some(address) = line.strip_prefix("  Game     http://localhost:") {
            dev.port = address.trim_end_matches('/').parse().unwrap();
            break;
        }
    }
    assert_ne!(dev.port, inner);
    let block = dev.block().await;
    let found = format!("passed on to http://localhost:{inner} ({program} dev inner");
    assert!(block.contains(&found), "{block}");
    let page = dev.send(Method::GET, "/", &[("sec-fetch-dest", "document")]);
    let page = page.await.body;
    assert!(page.starts_with(PAGE), "{page}");
    let (code, _) = dev.end().await;
    assert_eq!(code, Some(0));
    let gone = std::net::TcpStream::connect(("127.0.0.1", inner));
    assert!(gone.is_err(), "the inner one has ended as well");
}

#[tokio::test]
async fn the_command_knows_its_port_and_how_to_verify_players() {
    let (platform, home) = scene().await;
    let script = "echo $PORT $AUTH_ISSUER $AUTH_AUDIENCE $AUTH_JWKS_URL > said; read nothing";
    let mut dev = Dev::start(&home, &["dist", "--", "sh", "-c", script]).await;
    let said = until("the command to run", async || {
        let said = std::fs::read_to_string(home.path("said")).ok()?;
        said.ends_with('\n').then_some(said)
    });
    let said = said.await;
    let (port, rest) = said.split_once(' ').unwrap();
    let port: u16 = port.parse().unwrap();
    assert_ne!(port, dev.port);
    let issuer = platform.auth_url();
    let expected = format!("{issuer} game:dev-game {issuer}/.well-known/jwks.json\n");
    assert_eq!(rest, expected);
    assert_eq!(dev.get("/").await.body, PAGE, "the folder is served");
    // Standard input is open: `read` waits.
    assert!(dev.child.try_wait().unwrap().is_none());
    let (code, _) = dev.end().await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn everything_that_the_command_started_ends_with_it() {
    // A process in the background, which a shell protects from Ctrl-C.
    let background = "sleep 1000 & echo $! > first; sleep 1000 & echo $! > second; wait";
    // One that ignores every request to end.
    let stubborn = "sleep 1000 & echo $! > first; \
                    (trap '' INT TERM HUP; while :; do sleep 1; done) & echo $! > second; wait";
    for (signal, script) in [("INT", stubborn), ("TERM", background), ("HUP", background)] {
        let (_platform, home) = scene().await;
        let mut dev = Dev::start(&home, &["dist", "--", "sh", "-c", script]).await;
        let ids = until("the processes run", async || {
            let read = |name| std::fs::read_to_string(home.path(name)).ok();
            let ids = [read("first")?, read("second")?];
            ids.iter().all(|id| id.ends_with('\n')).then_some(ids)
        });
        let ids = ids.await.map(|id| id.trim().to_owned());
        assert!(ids.iter().all(|id| runs(id)), "{ids:?}");
        dev.signal(signal);
        let (code, said) = dev.ended().await;
        assert_eq!(code, Some(0), "{signal}: {said}");
        until("every process has ended", async || {
            (!ids.iter().any(|id| runs(id))).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_program_ends_when_the_command_does() {
    let (_platform, home) = scene().await;
    let line = ["dev", "-p", "game", "--port", "0", "--"];
    let run = async |command: &[&str]| home.run(&[&line[..], command].concat()).await;
    let left = run(&["sh", "-c", "sleep 1000 & echo $! > left; exit 7"]).await;
    let left = left.ended_with(1);
    assert!(
        left.stderr.contains("has ended with the exit status 7"),
        "{left:?}"
    );
    let id = std::fs::read_to_string(home.path("left")).unwrap();
    until("what it left behind has ended", async || {
        (!runs(id.trim())).then_some(())
    })
    .await;
    let done = run(&["true"]).await.ended_with(0);
    assert!(done.stderr.contains("`true` has ended."), "{done:?}");
    let missing = run(&["no-such-program"]).await.ended_with(1);
    assert!(
        missing.stderr.contains("npx no-such-program"),
        "{missing:?}"
    );
}
