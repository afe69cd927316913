//! A disk that is really full, at every write.

use platform_server::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::small_disk::SmallDisk;
use super::{
    arrive_until_refused, assert_come_again, assert_healed, assert_kept, assert_plays_on, send,
};
use crate::caller::{Caller, archive};
use crate::program::{Server, guest, one_line};
use crate::restore::names;
use crate::support::TestApp;

/// So many pages of 4 KiB are free at most: more than the writes of a new guest need.
const PAGES: u64 = 24;
/// How many pages are free when somebody deploys: a deploy fails at its archive, at the unpacked files, at
/// the stored files, at its record, or not at all.
const DEPLOYS: [u64; 24] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24, 40, 100, 200, 270, 300, 400, 530,
];
/// The size of the larger file of a game.
const BYTES: usize = 1024 * 1024;

#[test]
fn on_a_full_disk_no_accepted_player_is_lost_wherever_a_write_fails() {
    let disk = SmallDisk::new(64);
    let server = Server::start(&mut disk.program());
    let known = guest(&server);
    let mut accepted = vec![known.0.clone()];
    for pages in 0..PAGES {
        disk.leave(pages);
        let refused = arrive_until_refused(&server, &mut accepted);
        assert_come_again(&refused, 1);
        assert_plays_on(&server, &known);
        disk.free();
        assert_healed(&server, &mut accepted);
    }
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert_kept(disk.copied().path(), &accepted);
}

#[test]
fn a_server_that_is_killed_on_a_full_disk_starts_again_when_there_is_room() {
    let disk = SmallDisk::new(64);
    let server = Server::start(&mut disk.program());
    let mut accepted = vec![guest(&server).0];
    disk.leave(5);
    arrive_until_refused(&server, &mut accepted);
    disk.leave(0);
    server.stop("-KILL");
    match Server::try_start(&mut disk.program()) {
        // What is there is enough to begin with.
        Ok(server) => drop(server.stop("-KILL")),
        Err(refused) => {
            assert_eq!(refused.status.code(), Some(1), "{refused:?}");
            let line = one_line(&refused);
            assert!(line.contains("full"), "{line}");
        }
    }
    disk.free();
    let server = Server::start(&mut disk.program());
    assert_healed(&server, &mut accepted);
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert_kept(disk.copied().path(), &accepted);
}

/// A platform on a small disk, with a project that has a deploy token.
async fn with_game() -> (SmallDisk, String) {
    let app = TestApp::start().await;
    // The program, which has the machine's clock, must take the deploy token.
    app.clock.jump(SystemClock.now() - app.clock.now());
    let owner = Caller::with_project(&app).await;
    let body = json!({ "name": "ci", "scopes": ["deploy-prod"], "days": 90 });
    let made: Value = owner.post("/api/projects/game/tokens", body).await.json();
    let secret = made["secret"].as_str().unwrap().to_owned();
    let (data, running) = (app.directory, app.running);
    running.stop().await.unwrap();
    let disk = SmallDisk::new(96);
    disk.bring(data.path());
    (disk, secret)
}

/// Bytes that cannot be compressed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let blocks =
        (0_u64..).flat_map(|block| Sha256::digest([seed, block].map(u64::to_le_bytes).concat()));
    blocks.take(length).collect()
}

fn deploy(server: &Server, secret: &str, page: &str, file: &[u8]) -> String {
    let archive = archive(&[("index.html", page.as_bytes()), ("file.bin", file)]);
    let headers = format!("Authorization: Bearer {secret}\r\nContent-Type: application/gzip\r\n");
    let path = "PUT /api/projects/game/environments/prod/deployment";
    send(server, path, "platform.localhost", &headers, &archive)
}

fn shown(server: &Server) -> String {
    let answer = server.ask("GET /", "game.platform.localhost", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_a_deploy_is_whole_or_nothing_and_the_game_stays_as_it_was() {
    let (disk, secret) = with_game().await;
    let server = Server::start(&mut disk.program());
    let mut page = "the first".to_owned();
    assert!(deploy(&server, &secret, &page, &[]).starts_with("HTTP/1.1 201"));
    let mut refused = 0;
    for (round, pages) in DEPLOYS.into_iter().enumerate() {
        for (kind, file) in [("noise", noise(pages, BYTES)), ("zeros", vec![0; BYTES])] {
            let next = format!("round {round} with {kind}");
            disk.leave(pages);
            let answer = deploy(&server, &secret, &next, &file);
            if answer.starts_with("HTTP/1.1 201") {
                page = next;
            } else {
                let seconds = if answer.contains("retry-after: 60\r\n") {
                    60
                } else {
                    1
                };
                assert_come_again(&answer, seconds);
                refused += 1;
            }
            assert_eq!(shown(&server), page, "{pages} pages free, {answer}");
            disk.free();
        }
    }
    assert!(refused > DEPLOYS.len(), "{refused} were refused");
    assert!(deploy(&server, &secret, "the last", &noise(0, BYTES)).starts_with("HTTP/1.1 201"));
    assert_eq!(shown(&server), "the last");
    assert_eq!(
        names(&disk.path().join("uploads")),
        [""; 0],
        "nothing is left"
    );
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
}

/// Sends log records of 56 KB, and returns the response.
fn log_record(server: &Server) -> String {
    let message = "m".repeat(8_000);
    let record = json!({ "time": 1, "level": "info", "source": "console", "message": message });
    let body = json!({ "page": "A".repeat(22), "records": vec![record; 7] }).to_string();
    let headers = "Content-Type: application/json\r\n";
    let path = "POST /__platform/logs";
    send(
        server,
        path,
        "demo.platform.localhost",
        headers,
        body.as_bytes(),
    )
}

#[test]
fn on_a_full_disk_frontend_logs_are_refused_and_those_that_were_accepted_are_kept() {
    let disk = SmallDisk::new(64);
    let server = Server::start(&mut disk.program());
    let known = guest(&server);
    let mut accepted = 0;
    let mut accept = |answer: &str| {
        let is_accepted = answer.starts_with("HTTP/1.1 204");
        accepted += if is_accepted { 7 } else { 0 };
        is_accepted
    };
    for pages in [0, 1, 2, 5, 10, 30] {
        disk.leave(pages);
        let mut answers = std::iter::repeat_with(|| log_record(&server)).take(200);
        let refused = answers.find(|answer| !accept(answer));
        assert_come_again(&refused.expect("one is refused"), 1);
        assert_plays_on(&server, &known);
        disk.free();
        let healed = log_record(&server);
        assert!(accept(&healed), "{healed}");
    }
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    let data = disk.copied();
    let database = rusqlite::Connection::open(data.path().join("logs.db")).unwrap();
    let count = "SELECT sum(count) FROM log_records";
    let kept: i64 = database.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, accepted);
}
