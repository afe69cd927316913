//! Log records: pages of them, and new ones.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::platform::{Platform, Said};
use crate::support::Home;

const LOGS: &str = "GET - /api/projects/game/logs";
const STREAM: &str = "GET - /api/projects/game/logs/stream";

fn record(id: u64) -> Value {
    json!({"id": id.to_string(), "time": 1_767_225_600_000_u64 + id, "level": "info",
           "source": "console", "message": format!("message {id}")})
}

/// Records with these ids, newest first.
fn page(ids: impl DoubleEndedIterator<Item = u64>) -> Value {
    json!({"records": ids.rev().map(record).collect::<Vec<_>>()})
}

#[tokio::test]
async fn the_newest_records_are_printed_in_their_order_page_by_page() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(
        LOGS,
        &[
            (200, page(51..=150)),
            (200, page(1..=50)),
            (200, page(0..0)),
        ],
    );
    let arguments = &[
        "logs", "-p", "game", "--env", "prod", "--level", "warn", "-n", "500", "--json",
    ];
    let outcome = home.run(arguments).await.succeeded();
    let ids: Vec<u64> = outcome
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["id"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    assert_eq!(ids, (1..=150).collect::<Vec<_>>());
    let seen = platform.seen("/api/projects/game/logs");
    assert!(
        seen[0].path.contains("?env=prod&level=warn&limit=100"),
        "{}",
        seen[0].path
    );
    assert!(seen[1].path.ends_with("&before=51"), "{}", seen[1].path);

    platform.say(LOGS, &[(200, page(1..=1))]);
    let outcome = home
        .run(&["logs", "-p", "game", "-n", "1"])
        .await
        .succeeded();
    assert_eq!(
        outcome.stdout,
        "2026-01-01T00:00:00.001Z info  console message 1\n"
    );
}

/// Follows until this many lines have arrived, and returns their ids.
async fn follow(home: &Home, lines: usize) -> Vec<String> {
    follow_and_hear(home, lines).await.0
}

/// The same, with the messages on standard error.
async fn follow_and_hear(home: &Home, lines: usize) -> (Vec<String>, String) {
    let mut command = home.command(&["logs", "-p", "game", "--follow", "--json"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ids = Vec::new();
    while ids.len() < lines {
        let line = output.next_line().await.unwrap().unwrap();
        let record: Value = serde_json::from_str(&line).unwrap();
        ids.push(record["id"].as_str().unwrap().to_owned());
    }
    child.start_kill().unwrap();
    let ended = child.wait_with_output().await.unwrap();
    (ids, String::from_utf8(ended.stderr).unwrap())
}

#[tokio::test]
async fn without_a_stream_the_platform_is_asked_again_and_nothing_is_printed_twice() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let gone = platform.problem("unavailable", 503, "In a moment.");
    platform.say(
        LOGS,
        &[
            (200, page(1..=2)),
            (200, page(0..0)),
            (200, page(1..=2)),
            (503, gone),
            // Cut short by its size: the rest is on the next page.
            (200, page(4..=5)),
            (200, page(2..=3)),
        ],
    );
    assert_eq!(follow(&home, 5).await, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn a_stream_is_followed_and_taken_up_again_after_the_last_record() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(LOGS, &[(200, page(1..=2)), (200, page(0..0))]);
    let events = |ids: &[u64]| Said {
        status: 200,
        content_type: "text/event-stream",
        body: ids
            .iter()
            .map(|id| format!(": alive\n\nid: {id}\ndata: {}\n\n", record(*id)))
            .collect(),
    };
    platform.say_raw(STREAM, vec![events(&[2, 3]), events(&[4])]);
    assert_eq!(follow(&home, 4).await, ["1", "2", "3", "4"]);
    let seen = platform.seen("/api/projects/game/logs/stream");
    assert_eq!(seen[0].headers["last-event-id"], "2");
    assert_eq!(seen[1].headers["last-event-id"], "3");
    assert_eq!(seen[0].headers["accept"], "text/event-stream");
}

#[tokio::test]
async fn a_stream_whose_token_is_over_goes_on_with_the_next_one_at_once() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(LOGS, &[(200, page(0..0))]);
    let events = |body: String| Said {
        status: 200,
        content_type: "text/event-stream",
        body,
    };
    let first = format!(
        "retry: 1000\n\nid: 1\ndata: {}\n\nevent: dropped\ndata: {{\"records\":7}}\n\n\
         event: later\ndata: {{\"id\":\"9\"}}\n\n\
         event: end\ndata: {{\"reason\":\"token-expired\"}}\n\n",
        record(1)
    );
    let second = format!("id: 2\ndata: {}\n\n", record(2));
    platform.say_raw(STREAM, vec![events(first), events(second)]);
    assert_eq!(follow(&home, 2).await, ["1", "2"]);
    let seen = platform.seen("/api/projects/game/logs/stream");
    assert_eq!(seen[0].headers["last-event-id"], "0");
    assert_eq!(seen[1].headers["last-event-id"], "1");
    let [old, new] = [0, 1].map(|number: usize| seen[number].headers["authorization"].clone());
    assert_ne!(old, new);
}

#[tokio::test]
async fn who_follows_is_told_that_it_waits_and_that_it_goes_on_after_a_break() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    platform.say(LOGS, &[(200, page(0..0))]);
    let events = |id: u64| Said {
        status: 200,
        content_type: "text/event-stream",
        body: format!("id: {id}\ndata: {}\n\n", record(id)),
    };
    let gone = Said {
        status: 503,
        content_type: "application/problem+json",
        body: platform
            .problem("unavailable", 503, "In a moment.")
            .to_string(),
    };
    platform.say_raw(STREAM, vec![events(1), events(2), gone, events(3)]);
    let (ids, said) = follow_and_hear(&home, 3).await;
    assert_eq!(ids, ["1", "2", "3"]);
    let following = format!(
        "Following the logs of http://dev-game.platform.localhost:{}. Press Ctrl-C to stop.",
        platform.port
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert_eq!(lines[0], following);
    assert!(lines[1].contains("In a moment."), "{said}");
    assert_eq!(lines[2], "Connected again.");
}

/// Whether a character could control a terminal, be invisible or change the direction of text.
fn steers(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}'
            | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e01ef}')
}

#[tokio::test]
async fn what_a_hostile_page_has_logged_does_not_steer_the_terminal() {
    let texts = include_str!("../../../tests/hostile_texts.json");
    let texts: Vec<String> = serde_json::from_str(texts).unwrap();
    assert!(texts.iter().flat_map(|text| text.chars()).any(steers));
    let records: Vec<Value> = texts
        .iter()
        .map(|text| {
            json!({"id": text, "time": text, "level": text, "source": text, "message": text,
                   "stack": format!("Error: {text}\n    at {text} ({text}:1:2)"), "url": text,
                   "line": 1, "column": 2, "count": 3, "metadata": {text: [text]},
                   "player": text, "deployment": text, text: text})
        })
        .collect();
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let number = texts.len().to_string();
    for form in [&[][..], &["--json"]] {
        platform.say(LOGS, &[(200, json!({ "records": records }))]);
        let arguments = [&["logs", "-p", "game", "-n", &number], form].concat();
        let outcome = home.run(&arguments).await.succeeded();
        let steering: String = outcome.stdout.chars().filter(|c| steers(*c)).collect();
        assert_eq!(steering.escape_unicode().to_string(), "", "{form:?}");
        if !form.is_empty() {
            // A program that reads it loses nothing.
            let mut read: Vec<Value> = outcome
                .stdout
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            read.reverse();
            assert_eq!(read, records);
        }
    }
}

#[tokio::test]
async fn places_and_names_are_those_of_the_sources_of_the_deployment_that_logged() {
    let platform = Platform::start().await;
    let home = Home::signed_in(&platform).await;
    let game = format!("http://game.platform.localhost:{}", platform.port);
    let deployment = "0198c2d4-0000-7000-8000-00000000000a";
    let failed = |deployment: &str| {
        let mut failed = record(1);
        failed["level"] = json!("error");
        failed["deployment"] = json!(deployment);
        failed["url"] = json!(format!("{game}/assets/i.js"));
        failed["line"] = json!(1);
        failed["column"] = json!(1);
        failed["stack"] = json!(format!(
            "Error: no\n    at t ({game}/assets/i.js:1:1)\n    at n ({game}/assets/i.js:1:21)\n    \
             at {game}/__platform/runtime.js:1:1"
        ));
        json!({ "records": [failed] })
    };
    // The first column of the generated line is src/a.ts:1:1, the twenty-first src/b.ts:3:3, called
    // lose.
    let map = json!({
        "version": 3, "sources": ["../src/a.ts", "../src/b.ts"], "names": ["lose"],
        "mappings": "AAAA,oBCEEA",
    });
    let said = |body: String| Said {
        status: 200,
        content_type: "application/octet-stream",
        body,
    };
    let path = format!("/api/projects/game/environments/prod/deployments/{deployment}/file");
    let script = "t();\n//# sourceMappingURL=i.js.map\n".to_owned();
    platform.say_raw(
        &format!("GET - {path}"),
        vec![said(script), said(map.to_string())],
    );
    platform.say(LOGS, &[(200, failed(deployment)), (200, page(0..0))]);
    let line = ["logs", "-p", "game", "--env", "prod"];
    let outcome = home.run(&line).await.succeeded();
    for part in [
        "message 1 src/a.ts:1:1",
        "at lose (src/a.ts:1:1)",
        "at n (src/b.ts:3:3)",
    ] {
        assert!(outcome.stdout.contains(part), "{part}: {outcome:?}");
    }
    assert!(!outcome.stdout.contains("runtime.js"), "{outcome:?}");
    let asked = platform.seen(&path);
    assert!(
        asked[0].path.ends_with("?path=assets%2Fi.js"),
        "{}",
        asked[0].path
    );
    assert!(
        asked[1].path.ends_with("?path=assets%2Fi.js.map"),
        "{}",
        asked[1].path
    );

    // A deployment that is not kept has no map, and that is no failure.
    platform.say(
        LOGS,
        &[
            (200, failed("0198c2d4-0000-7000-8000-00000000000b")),
            (200, page(0..0)),
        ],
    );
    let outcome = home.run(&line).await.succeeded();
    assert!(outcome.stdout.contains("/assets/i.js:1:21"), "{outcome:?}");
    platform.say(LOGS, &[(200, failed(deployment)), (200, page(0..0))]);
    let json = home
        .run(&[&line[..], &["--json"]].concat())
        .await
        .succeeded();
    assert!(
        json.stdout.contains("/assets/i.js"),
        "programs get what was logged: {json:?}"
    );
}
