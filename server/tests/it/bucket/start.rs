//! Starting on a bucket: what is refused, what is only logged, and what is never shown.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

use super::server::{BUCKET, Bucket, SECRET};
use crate::program::{Server, program};

/// The program on this bucket, with other variables in place of the right ones.
fn on(bucket: &Bucket, data: &std::path::Path, other: &[(&str, &str)]) -> Command {
    let mut command = program(data);
    command.env("PLATFORM_FILES_URL", format!("s3://{BUCKET}/files"));
    for (name, value) in &bucket.settings().variables {
        command.env(name, value.expose());
    }
    command.envs(other.iter().copied());
    command
}

/// Runs `serve`, which fails, and returns what it said.
fn refused(command: &mut Command) -> String {
    let ended = command.arg("serve").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(!said.contains(SECRET), "{said}");
    said
}

/// Returns the address of a server that answers every request with this error of S3.
fn answering(status: &str, code: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    // It ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The request is small, and arrives as a whole.
            let _ = stream.read(&mut [0; 8_192]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_bucket_refuses_stops_the_start_with_a_clear_sentence() {
    let (bucket, data) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let with = |other: &[(&str, &str)]| refused(&mut on(&bucket, data.path(), other));
    let begin = "the bucket that PLATFORM_FILES_URL names cannot be used: ";
    // The test's server makes a bucket of any name, so this is what AWS answers.
    let aws = answering("404 Not Found", "NoSuchBucket");
    let missing = with(&[("AWS_ENDPOINT_URL", &aws)]);
    assert!(
        missing.contains(&format!("{begin}there is no such bucket")),
        "{missing}"
    );
    let wrong_key = with(&[("AWS_SECRET_ACCESS_KEY", "wrong-wrong-wrong")]);
    assert!(
        wrong_key.contains(&format!("{begin}status 403")),
        "{wrong_key}"
    );
    assert!(!wrong_key.contains("wrong-wrong"), "{wrong_key}");
    let half_a_key = with(&[("AWS_ACCESS_KEY_ID", "")]);
    assert!(
        half_a_key.contains("AWS_ACCESS_KEY_ID: set it as well"),
        "{half_a_key}"
    );
    let bad = with(&[("PLATFORM_FILES_URL", "s3://Not_A_Bucket/x")]);
    assert!(
        bad.contains("PLATFORM_FILES_URL: the bucket's name"),
        "{bad}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lost_its_bucket_starts_and_shows_no_key() {
    let (bucket, data) = (Bucket::start().await, tempfile::tempdir().unwrap());
    Server::start(&mut on(&bucket, data.path(), &[])).stop("-TERM");
    bucket.kill();
    let mut command = on(&bucket, data.path(), &[("PLATFORM_LOG", "trace")]);
    let (_, log, _) = Server::start(&mut command).stop("-TERM");
    assert!(
        log.contains("the server starts without its bucket"),
        "{log}"
    );
    assert!(!log.contains(SECRET), "{log}");

    let shown = on(&bucket, data.path(), &[])
        .arg("config")
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("files_url = \"s3://games/files\""),
        "{shown}"
    );
    assert!(!shown.contains(SECRET), "{shown}");

    let backup = data.path().join("backup.tar");
    let back_up = |arguments: &[&str]| {
        let mut command = on(&bucket, data.path(), &[]);
        command.arg("backup").arg(&backup).args(arguments).output()
    };
    let refused = back_up(&[]).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("the bucket is not available"), "{said}");
    assert!(!backup.exists() && !said.contains(SECRET), "{said}");
    let backed_up = back_up(&["--without-files"]).unwrap();
    let said = String::from_utf8(backed_up.stdout).unwrap();
    assert!(said.contains("without deployed files"), "{said}");
    assert!(backup.is_file());
}
