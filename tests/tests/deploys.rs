//! Deploys to the real server program: killed at any moment, it shows the whole old or the whole
//! new game, and a large deploy needs little memory.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper of tests may fail as loudly as a test"
)]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use platform_test_ports::ReservedPort;
use platform_tests::deployer::{Deployer, archive};
use platform_tests::poll;
use platform_tests::server::Server;
use platform_tests::shared::leave_out;
use serde_json::Value;
use tempfile::TempDir;

/// How often the server is killed.
const MOMENTS: u32 = 50;
/// The number of small files of each deployment.
const SMALL: usize = 40;

/// Returns the files of one deployment; `number` is in each of them. One is large enough to be
/// written in several pieces.
fn site(number: u32) -> Vec<(String, Vec<u8>)> {
    let mut random = fastrand::Rng::with_seed(u64::from(number));
    let mut noise = |length: usize| {
        let mut noise = vec![0; length];
        random.fill(&mut noise);
        noise
    };
    let mut files: Vec<(String, Vec<u8>)> = (0..SMALL)
        .map(|index| (format!("assets/{index}.bin"), noise(1_000 + 400 * index)))
        .collect();
    files.push(("large.bin".to_owned(), noise(3 * 1024 * 1024)));
    // Some stay the same in all deployments.
    files.push(("same.txt".to_owned(), b"always the same".to_vec()));
    files.push(("index.html".to_owned(), number.to_string().into_bytes()));
    files
}

/// Returns which deployment is shown, after comparing every byte of it.
async fn shown(owner: &Deployer) -> u32 {
    let (status, page) = owner.file("").await;
    assert_eq!(status, 200, "the game is gone");
    let number: u32 = String::from_utf8(page).unwrap().parse().unwrap();
    for (path, content) in site(number) {
        let (status, found) = owner.file(&path).await;
        assert_eq!(status, 200, "{path} of deployment {number}");
        assert!(found == content, "{path} of deployment {number} is another");
    }
    number
}

/// Returns the names of the files in the store's folder, relative to it.
fn kept(data: &Path) -> BTreeSet<String> {
    let folder = data.join("files");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        let first = entry.file_name().into_string().unwrap();
        for file in std::fs::read_dir(entry.path()).unwrap() {
            let rest = file.unwrap().file_name().into_string().unwrap();
            names.insert(format!("{first}{rest}"));
        }
    }
    names
}

/// Returns the names of the files that belong to a deployment.
fn referenced(data: &Path) -> BTreeSet<String> {
    let database = rusqlite::Connection::open(data.join("platform.db")).unwrap();
    let mut names = database
        .prepare("SELECT DISTINCT lower(hex(sha256)) FROM deployment_files")
        .unwrap();
    let names = names.query_map([], |row| row.get(0)).unwrap();
    names.collect::<Result<_, _>>().unwrap()
}

/// Waits until the new server has swept what the killed one left behind.
async fn nothing_is_left_behind(data: &Path) {
    let uploads = std::fs::read_dir(data.join("uploads")).unwrap().count();
    assert_eq!(uploads, 0, "an upload was left behind");
    poll::until("the files are swept", async || {
        (kept(data) == referenced(data)).then_some(())
    })
    .await;
}

/// Measures how long a whole deploy takes to a server that has just started.
#[expect(
    clippy::disallowed_methods,
    reason = "the moments of the kills are fractions of what is measured here"
)]
async fn measured(owner: &Deployer, number: u32) -> Duration {
    let whole = archive(&site(number));
    let began = Instant::now();
    let answer = owner.deploy(whole).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let took = began.elapsed();
    assert_eq!(shown(owner).await, number);
    took
}

/// The moments of the kills. Every second one follows a staircase: it increases after a kill that
/// came before the deploy took effect, and decreases after one that came later, so it stays near
/// that moment. The others are spread evenly from before the first byte to after the response.
struct Moments {
    takes: Duration,
    stair: Duration,
}

impl Moments {
    fn new(takes: Duration) -> Self {
        Self {
            takes,
            stair: takes * 3 / 4,
        }
    }

    fn at(&self, round: u32) -> Duration {
        if round.is_multiple_of(2) {
            self.takes * round * 3 / (MOMENTS * 2)
        } else {
            self.stair
        }
    }

    fn learn(&mut self, round: u32, done: bool) {
        if !round.is_multiple_of(2) {
            // In proportion, so that a machine that becomes slower is soon caught up with.
            let step = self.stair / 8;
            self.stair = if done {
                self.stair - step
            } else {
                self.stair + step
            };
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deploy_that_is_killed_at_any_moment_leaves_the_old_or_the_new_one_whole() {
    if leave_out("a_deploy_that_is_killed_at_any_moment_leaves_the_old_or_the_new_one_whole") {
        return;
    }
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let port = ReservedPort::take().unwrap();
    let mut server = Server::start_on(data.path(), &port).await;
    let owner = Deployer::new(&server).await;
    measured(&owner, 1).await;
    server.kill();
    server = Server::start_on(data.path(), &port).await;
    let takes = measured(&owner, 2).await;
    server.kill();
    server = Server::start_on(data.path(), &port).await;

    let mut moments = Moments::new(takes);
    let mut before = 2;
    let (mut old, mut new) = (0, 0);
    for round in 0..MOMENTS {
        let number = 3 + round;
        let deploy = tokio::spawn(owner.deploy(archive(&site(number))).send());
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing is waited for: this is the moment of the kill"
        )]
        tokio::time::sleep(moments.at(round)).await;
        server.kill();
        let answer = poll::within("the deploy to end", deploy).await.unwrap();
        let told = answer.is_ok_and(|answer| answer.status() == 201);

        server = Server::start_on(data.path(), &port).await;
        let after = shown(&owner).await;
        let done = after == number;
        if done {
            new += 1;
        } else {
            assert!(!told, "round {round}: an answer means durable");
            assert_eq!(after, before, "round {round}");
            old += 1;
        }
        moments.learn(round, done);
        nothing_is_left_behind(data.path()).await;
        before = after;
    }
    println!("a deploy takes {takes:?}; {old} were undone, {new} were done");
    assert!(
        old >= 5 && new >= 5,
        "the moments lie on both sides of the switch"
    );
    server.stop().await;
}

/// The number of bytes of the large deploy's files together, and the number of files.
const LARGE: (usize, usize) = (500 * 1024 * 1024, 50);
/// The server's memory limit, without its own program, in kilobytes.
const MEMORY: u64 = 50 * 1024;

/// Writes the large archive: random data, so that it is as large as its files.
fn write_large(path: &Path) {
    let (bytes, count) = LARGE;
    let mut random = fastrand::Rng::with_seed(1);
    let mut noise = vec![0; bytes / count];
    let file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut builder = tar::Builder::new(GzEncoder::new(file, Compression::none()));
    for index in 0..count {
        random.fill(&mut noise);
        let name = if index == 0 {
            "index.html".to_owned()
        } else {
            format!("{index}.bin")
        };
        let mut header = tar::Header::new_gnu();
        header.set_size(noise.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, name, noise.as_slice())
            .unwrap();
    }
    builder
        .into_inner()
        .unwrap()
        .finish()
        .unwrap()
        .flush()
        .unwrap();
}

/// Sends the archive from the disk: the memory of this test does not matter, but the machine has
/// other work.
fn send_large(server: &Server, owner: &Deployer, path: &Path) -> Value {
    let mut file = std::fs::File::open(path).unwrap();
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "PUT {}/deployment HTTP/1.1\r\nHost: platform.localhost:{}\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Type: application/gzip\r\nContent-Length: {}\r\n\r\n",
        Deployer::production(),
        server.address.port(),
        owner.token,
        file.metadata().unwrap().len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    std::io::copy(&mut file, &mut stream).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

/// Returns the most memory that the process has ever used, in kilobytes.
fn peak(id: u32) -> u64 {
    status(id, "VmHWM:")
}

/// Returns how much of the memory of the process are pages of files, in kilobytes: mostly of the
/// program itself, whose code takes more of it in a debug build than everything else.
fn of_files(id: u32) -> u64 {
    status(id, "RssFile:")
}

/// Returns a number of kilobytes in the status of a process.
fn status(id: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let Some(number) = line.and_then(|line| line.trim().strip_suffix(" kB")) else {
        panic!("no {name} in {status}");
    };
    number.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deploy_of_500_mib_takes_less_than_100_mib_of_memory() {
    let data = TempDir::with_prefix("platform-tests-").unwrap();
    let server = Server::start(data.path()).await;
    let owner = Deployer::new(&server).await;
    let program = server.ids().map(of_files).min().unwrap();
    let most = |server: &Server| server.ids().map(peak).max().unwrap() - program;
    let idle = most(&server);
    let path = data.path().join("large.tar.gz");
    let (server, owner) = tokio::task::spawn_blocking(move || {
        write_large(&path);
        let deployed = send_large(&server, &owner, &path);
        assert_eq!(deployed["bytes"], LARGE.0);
        assert_eq!(deployed["files"], LARGE.1);
        (server, owner)
    })
    .await
    .unwrap();
    let memory = most(&server);
    println!(
        "{idle} kB before the deploy, {memory} kB at most, without the program's {program} kB"
    );
    assert!(memory <= MEMORY, "{memory} kB");
    let (status, part) = owner.file("49.bin").await;
    assert_eq!((status, part.len()), (200, LARGE.0 / LARGE.1));
    server.stop().await;
}
