//! The program sends its log lines as well, up to the last one.

use std::process::Command;

use super::collector::Collector;
use super::{TRACE, answers, parent};
use crate::program::{Server, one_line, program};

/// Adds settings of a receiver.
fn sending(command: &mut Command, collector: &Collector) {
    command
        .env("PLATFORM_OTLP_ENDPOINT", &collector.endpoint)
        .env("PLATFORM_OTLP_HEADERS", "x-key=word%201,x-team=games")
        .env("PLATFORM_TRACE_SAMPLE", "0")
        .env("PLATFORM_TRUSTED_PROXIES", "127.0.0.1")
        .env("PLATFORM_LOG", "debug")
        // A key for somebody else.
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-other=word,x-team=others")
        .env("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=node-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_are_sent_with_the_trace_of_their_request_and_to_the_last() {
    let mut collector = Collector::start().await;
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path());
    sending(&mut command, &collector);
    let server = Server::start(&mut command);
    let headers = format!(
        "traceparent: {}\r\nAuthorization: Bearer a.b.c\r\n",
        parent(TRACE, true)
    );
    let answer = server.ask("GET /api/projects", "platform.localhost", &headers);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    // A share of 0 traces what a trusted proxy wants, and nothing else.
    let untraced = server.ask("GET /", "demo.platform.localhost", "");
    assert!(untraced.starts_with("HTTP/1.1 200"), "{untraced}");
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("answered"), "{log}");

    let span = collector
        .span("the request's", |span| answers(span, "GET /api/projects"))
        .await;
    assert!(!collector.has(|span| answers(span, "GET (files)")));
    let refused = collector.log("refused a token").await;
    assert_eq!(refused.trace_id, span.trace_id);
    assert_eq!(refused.span_id, span.span_id);
    assert!(refused.time_unix_nano > 0, "when it was");
    collector.log("stopping").await;
    let sent = collector.everything();
    // Lines about single requests have their host and path.
    assert!(!super::contains(&sent, "answered"));
    assert!(!super::contains(&sent, "a.b.c"));
    assert_eq!(
        collector.of_sender("service.name").as_deref(),
        Some("platform-server")
    );
    assert_eq!(
        collector.of_sender("service.instance.id").as_deref(),
        Some("node-1")
    );
    let headers = collector.headers();
    assert_eq!(
        (&headers["x-key"], &headers["x-team"]),
        (&"word 1".parse().unwrap(), &"games".parse().unwrap())
    );
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert!(!headers.contains_key("x-other"));
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_have_nothing_of_a_player() {
    let collector = Collector::start().await;
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path());
    sending(&mut command, &collector);
    command.env("PLATFORM_LOG", "info");
    let server = Server::start(&mut command);
    let origin = format!("Origin: http://demo.platform.localhost:{}\r\n", server.port);
    let from = "X-Forwarded-For: 203.0.113.77\r\nUser-Agent: Ada-Lovelace\r\n";
    let begun = format!("{origin}{from}Content-Length: 0\r\n");
    let answer = server.ask("POST /token", "auth.platform.localhost", &begun);
    let value = |before: &str, end: char| {
        let (_, rest) = answer.split_once(before).unwrap();
        rest.split(end).next().unwrap().to_owned()
    };
    let session = value("platform-session=", ';');
    let token = value("\"access_token\":\"", '"');
    let secret = "c2VjcmV0LW9mLWEtcGxheWVy";
    let held = format!(
        "{origin}{from}Cookie: platform-session={session}; other={secret}\r\n\
         Authorization: Bearer {token}\r\nX-Request-Id: {secret}\r\n"
    );
    for (request, host) in [
        ("POST /token", "auth"),
        (
            "GET /c2VjcmV0LW9mLWEtcGxheWVy?code=c2VjcmV0LW9mLWEtcGxheWVy",
            "demo",
        ),
        ("GET /callback/none?code=c2VjcmV0LW9mLWEtcGxheWVy", "auth"),
        ("GET /profile?c2VjcmV0LW9mLWEtcGxheWVy", "auth"),
        ("GET /api/c2VjcmV0LW9mLWEtcGxheWVy", "demo"),
        ("GET /", "c2vjcmv0lw9mlwetcgxhewvy"),
        ("POST /__platform/logs", "demo"),
    ] {
        let host = format!("{host}.platform.localhost");
        server.ask(request, &host, &held);
    }
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    collector.log("stopping").await;
    let sent = collector.everything();
    let claims: Vec<&str> = token.split('.').collect();
    for hidden in [
        secret,
        &secret.to_lowercase(),
        &session,
        claims[1],
        claims[2],
        "203.0.113",
        "Lovelace",
    ] {
        assert!(!super::contains(&sent, hidden), "{hidden} was sent");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_of_a_start_that_fails_are_sent() {
    let collector = Collector::start().await;
    let directory = tempfile::tempdir().unwrap();
    let no_folder = directory.path().join("no-folder");
    std::fs::write(&no_folder, "").unwrap();
    let mut command = program(directory.path());
    sending(&mut command, &collector);
    command
        .env("PLATFORM_LOG", "warn")
        .env("PLATFORM_ORIGIN", "https://play.example")
        .env(
            "PLATFORM_FILES_URL",
            format!("file://{}/files", no_folder.display()),
        );
    let output = Server::try_start(&mut command).err().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    let cause = said.lines().last().unwrap();
    let cause = cause.strip_prefix("platform-server: ").unwrap();
    let ends = collector.log("the server ends").await;
    assert!(format!("{ends:?}").contains(cause), "{ends:?}: {cause}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_nothing_is_sent() {
    let collector = Collector::start().await;
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path());
    // OpenTelemetry's own variable does not turn it on.
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    let server = Server::start(&mut command);
    let origin = format!("Origin: http://demo.platform.localhost:{}\r\n", server.port);
    let answer = server.ask("POST /token", "auth.platform.localhost", &origin);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(collector.is_empty());
}

#[test]
fn a_wrong_setting_stops_the_start_with_one_line() {
    for (name, value) in [
        ("PLATFORM_OTLP_ENDPOINT", "grpc://user:word@collector:4317"),
        ("PLATFORM_OTLP_HEADERS", "x-key"),
        ("PLATFORM_OTLP_HEADERS", "x-key=word"),
        ("PLATFORM_TRACE_SAMPLE", "5%"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = program(directory.path());
        let output = Server::try_start(command.env(name, value)).err().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let line = one_line(&output);
        assert!(
            line.contains(name) || line.contains("otlp_headers"),
            "{line}"
        );
        assert!(!line.contains("word"), "{line}");
    }
}
