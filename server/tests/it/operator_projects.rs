//! Projects without an owner and their deploy tokens, which the operator makes on the server: what a platform has
//! where nobody can sign in yet.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;

use crate::caller::archive;
use crate::operator::run;
use crate::program::{Server, program};

const PAGE: &[u8] =
    b"<!doctype html><head><script defer src=\"/__platform/runtime.js\"></script></head>";

/// Begins a deploy of so many bytes to production with this token.
fn begin_deploy(
    server: &Server,
    slug: &str,
    token: &str,
    (length, more): (usize, &str),
) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let head = format!(
        "PUT /api/projects/{slug}/environments/prod/deployment HTTP/1.1\r\n\
         Host: platform.localhost:{}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/gzip\r\nContent-Length: {length}\r\n{more}\r\n",
        server.port,
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Deploys a page to production with this token. Returns status line and body of the response.
fn deploy(server: &Server, slug: &str, token: &str) -> (String, Value) {
    let body = archive(&[("index.html", PAGE)]);
    let end = (body.len(), "Connection: close\r\n");
    let mut stream = begin_deploy(server, slug, token, end);
    stream.write_all(&body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap().to_owned();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// The token in what a command printed.
fn token(said: &str) -> &str {
    let (_, rest) = said.split_once("PLATFORM_TOKEN=").unwrap();
    rest.split(' ').next().unwrap()
}

/// Runs a command that must succeed.
fn ran(data: &Path, arguments: &[&str]) -> String {
    let (code, said) = run(data, arguments);
    assert_eq!(code, Some(0), "{said}");
    said
}

#[test]
fn a_project_of_the_operator_is_deployed_with_the_token_that_its_command_prints() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let said = ran(data, &["project", "create", "first-game", "--deploy-token"]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("first-game is a project"), "{said}");
    assert!(lines[1].contains("“operator” of first-game"), "{said}");
    let secret = token(&said);
    let command = format!(
        "PLATFORM_TOKEN={secret} platform deploy <folder> --project first-game --origin \
         http://platform.localhost:8787 --env prod --yes"
    );
    // The operator's command is not told on which free port this server listens.
    let shown = lines[2].replace(":0 ", ":8787 ");
    assert_eq!(shown, command);
    let (status, deployed) = deploy(&server, "first-game", secret);
    assert!(status.contains(" 201 "), "{status} {deployed}");
    assert_eq!(deployed["warnings"], serde_json::json!([]));
    let page = server.ask("GET /", "first-game.platform.localhost", "");
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    // It is for this project alone.
    let (status, _) = deploy(&server, "demo", secret);
    assert!(status.contains(" 403 "), "{status}");
    // Nobody is named as the one who deployed it, but the token is.
    let store = rusqlite::Connection::open(data.join("platform.db")).unwrap();
    let made: (Option<Vec<u8>>, String) = store
        .query_row(
            "SELECT deployed_by, deploy_token FROM deployments WHERE deploy_token IS NOT NULL",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(made, (None, "operator".to_owned()));
    let events = ran(data, &["events"]);
    for part in ["project-created", "deploy-token-created"] {
        let line = events.lines().find(|line| line.contains(part)).unwrap();
        assert!(line.contains("operator"), "{line}");
        assert!(!line.contains(secret), "{line}");
    }
    assert!(ran(data, &["project", "list"]).contains("first-game  the platform, since "));
    server.stop("-TERM");
}

#[test]
fn tokens_of_the_operator_are_listed_and_revoked_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let said = ran(data, &["project", "create", "first-game"]);
    assert!(
        said.contains("`project token create first-game <name>`"),
        "{said}"
    );
    assert!(!said.contains("PLATFORM_TOKEN"), "{said}");
    let create = ["project", "token", "create", "first-game"];
    let said = ran(data, &[&create[..], &["ci", "--days", "2"]].concat());
    let secret = token(&said).to_owned();
    let list = || ran(data, &["project", "token", "list", "first-game"]);
    assert!(
        list().starts_with("ci  deploy-dev, deploy-prod, valid until "),
        "{}",
        list()
    );
    assert!(deploy(&server, "first-game", &secret).0.contains(" 201 "));
    let revoke = ["project", "token", "revoke", "first-game", "ci"];
    assert_eq!(
        ran(data, &revoke),
        "the deploy token “ci” of first-game is revoked\n"
    );
    let (status, problem) = deploy(&server, "first-game", &secret);
    assert!(status.contains(" 401 "), "{status}");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("was revoked on"),
        "{problem}"
    );
    assert_eq!(list(), "");
    assert!(run(data, &revoke).1.contains("has no deploy token ci"));
    ran(data, &[&create[..], &["ci"]].concat());
    for (arguments, part) in [
        (
            &[&create[..], &["ci"]].concat()[..],
            "already has a deploy token “ci”",
        ),
        (
            &["project", "create", "first-game"],
            "the name first-game is taken",
        ),
        (
            &["project", "token", "create", "none", "ci"],
            "no project none",
        ),
        (&["project", "token", "list", "none"], "no project none"),
        (
            &["project", "token", "revoke", "none", "ci"],
            "no project none",
        ),
    ] {
        let (code, said) = run(data, arguments);
        assert_eq!(code, Some(1), "{arguments:?}");
        assert!(said.contains(part), "{said}");
    }
    for arguments in [
        &["project", "create", "A"][..],
        &["project", "create", "auth"],
        &[&create[..], &["ci", "--days", "366"]].concat(),
        &[&create[..], &[" "]].concat(),
    ] {
        let output = program(data).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    server.stop("-TERM");
}

#[test]
fn tokens_of_the_operator_do_not_wait_for_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let [one, two, three] = ["game-1", "game-2", "game-3"].map(|slug| {
        let said = ran(data, &["project", "create", slug, "--deploy-token"]);
        (slug, token(&said).to_owned())
    });
    // As many as one account may have under way.
    let held = [one, two].map(|(slug, token)| {
        let waits = (1_000, "Expect: 100-continue\r\n");
        let mut stream = begin_deploy(&server, slug, &token, waits);
        let mut asked = [0; 25];
        stream.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream
    });
    let (status, answer) = deploy(&server, three.0, &three.1);
    assert_eq!(status, "HTTP/1.1 201 Created", "{answer}");
    drop(held);
}

#[test]
fn a_token_of_the_operator_allows_what_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    ran(data, &["project", "create", "game-1"]);
    let create = ["project", "token", "create", "game-1"];
    let mut wrong = program(data);
    let wrong = wrong.args(create).args(["ci", "--scope", "all"]);
    let wrong = wrong.output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("deploy-dev, deploy-prod, logs"), "{said}");
    let logs = ["logs", "--scope", "logs", "--scope", "logs"];
    ran(data, &[&create[..], &logs].concat());
    ran(data, &[&create[..], &["ci"]].concat());
    let list = ran(data, &["project", "token", "list", "game-1"]);
    assert!(list.contains("logs  logs, valid until "), "{list}");
    assert!(
        list.contains("ci  deploy-dev, deploy-prod, valid"),
        "{list}"
    );
    server.stop("-TERM");
}
