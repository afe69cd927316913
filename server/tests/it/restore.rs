//! Going back to a backup: a drill with everything that a platform has, and every reason to refuse.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use platform_server::config::Config;
use serde_json::json;

use crate::caller::{Caller, archive};
use crate::operator::run;
use crate::program::{Server, guest, one_line, program, subject, token};
use crate::support::{NOW, TestApp, send};

/// The origin of a platform that has one name wherever it listens.
const ORIGIN: &str = "http://platform.localhost:23199";

/// Players who arrive while the backup is made.
const MEANWHILE: usize = 20;

fn named(config: &mut Config) {
    config.origin = Some(ORIGIN.parse().unwrap());
}

/// Runs a command on another thread, so that the server of this process can answer meanwhile.
async fn run_beside(data: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let (data, arguments) = (data.to_owned(), arguments.join("\n"));
    let run = move || run(&data, &arguments.lines().collect::<Vec<_>>());
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// Returns the names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Plays as a new guest: the id, and the cookie.
async fn arrive(app: &TestApp) -> (String, String) {
    let answer = send(app.post_token()).await;
    (answer.claims().sub, answer.cookie().unwrap().to_owned())
}

/// Returns the id that a cookie is good for, as the game at `label` learns it.
pub(crate) async fn return_as(app: &TestApp, label: &str, cookie: &str) -> String {
    let request = app.request(reqwest::Method::POST, "auth", "/token");
    let request = request.header("origin", app.origin(label));
    let answer = send(request.header("cookie", cookie)).await;
    answer.claims().sub
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_platform_that_is_restored_elsewhere_goes_on_where_the_backup_was_made() {
    let app = TestApp::with(named).await;
    let mut guests = Vec::new();
    for _ in 0..5 {
        guests.push(arrive(&app).await);
    }
    let owner = Caller::account(&app).await;
    assert_eq!(owner.create("game").await.status, 201);
    let page = b"<!doctype html><script src=\"/__platform/runtime.js\"></script>one".as_slice();
    let files = [("index.html", page), ("big.bin", &[7; 100_000])];
    let deployed = owner.deploy("prod", archive(&files)).await;
    assert_eq!(deployed.status, 201, "{deployed:?}");
    let record = json!({"time": NOW, "level": "error", "source": "console", "message": "no coins"});
    let log = || {
        app.request(reqwest::Method::POST, "game", "/__platform/logs")
            .json(&json!({"page": "AAAAAAAAAAAAAAAAAAAAAA", "records": [record]}))
    };
    assert_eq!(send(log()).await.status, 204);
    let keys = send(app.get("auth", "/.well-known/jwks.json")).await;
    let (token, cookie) = (owner.token.clone(), owner.cookie.clone());

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("platform.tar");
    let path = file.to_str().unwrap();
    // Players and records arrive meanwhile.
    let writing = async {
        for _ in 0..MEANWHILE {
            arrive(&app).await;
            assert_eq!(send(log()).await.status, 204);
        }
    };
    let arguments = ["backup", path];
    let ((code, said), ()) = tokio::join!(run_beside(app.directory.path(), &arguments), writing);
    assert_eq!(code, Some(0), "{said}");
    let (late, late_cookie) = arrive(&app).await;
    app.running.stop().await.unwrap();

    let restored = tempfile::tempdir().unwrap();
    let (code, said) = run_beside(restored.path(), &["restore", path, "--check"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains(" is whole: ") && said.contains("schema version"),
        "{said}"
    );
    assert_eq!(names(restored.path()), [""; 0], "a check changes nothing");
    let (code, said) = run_beside(restored.path(), &["restore", path]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.ends_with("start the server\n"), "{said}");

    let app = TestApp::in_directory(restored, named).await;
    for (sub, cookie) in &guests {
        assert_eq!(
            &return_as(&app, "demo", cookie).await,
            sub,
            "the same player"
        );
    }
    let again = send(app.get("auth", "/.well-known/jwks.json")).await;
    assert_eq!(again.text(), keys.text(), "tokens from before verify");
    let logs = "/api/projects/game/logs?env=prod&limit=100";
    let logs = send(app.get("", logs).bearer_auth(&token)).await;
    assert_eq!(logs.status, 200, "{logs:?}");
    assert!(logs.text().contains("no coins"), "{logs:?}");
    let owner_again = Caller::with_cookie(&app, Some(&cookie)).await;
    assert_eq!(owner_again.claims().sub, owner_again.sub.to_string());
    for (file, content) in files {
        let answer = send(app.get(
            "game",
            &format!("/{}", file.trim_start_matches("index.html")),
        ))
        .await;
        assert_eq!(
            (answer.status.as_u16(), answer.body.as_slice()),
            (200, content),
            "{file}"
        );
    }
    assert_eq!(
        app.sql_text(&player_count(&late)),
        "0",
        "who came later is unknown"
    );
    // The same browser is the same guest all the same, whose id follows from the cookie.
    assert_eq!(return_as(&app, "demo", &late_cookie).await, late);
}

fn player_count(sub: &str) -> String {
    let id = sub.replace('-', "");
    format!("SELECT CAST(count(*) AS TEXT) FROM players WHERE id = X'{id}'")
}

/// Makes a platform with one guest, and a backup of it: its folder, the backup, the guest's id and
/// cookie.
fn backed_up(folder: &Path) -> (PathBuf, PathBuf, String, String) {
    let data = folder.join("data");
    let server = Server::start(&mut program(&data));
    let (sub, cookie) = guest(&server);
    server.stop("-TERM");
    let file = folder.join("platform.tar");
    let (code, said) = run(&data, &["backup", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    (data, file, sub, cookie)
}

/// The player of the backup is who it was, and the game is served.
fn assert_goes_on(server: &Server, cookie: &str, sub: &str) {
    assert_eq!(subject(&token(server, cookie)), sub);
    assert!(
        server
            .ask("GET /", "demo.platform.localhost", "")
            .contains(" 200 ")
    );
}

#[test]
fn a_store_in_use_and_a_folder_with_data_are_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file, sub, cookie) = backed_up(folder.path());
    let path = file.to_str().unwrap();
    let server = Server::start(&mut program(&data));
    let (late, _) = guest(&server);
    for arguments in [&["restore", path][..], &["restore", path, "--force"]] {
        let (code, said) = run(&data, arguments);
        assert_eq!(code, Some(1));
        assert!(said.contains("another platform-server uses"), "{said}");
    }
    server.stop("-KILL");
    let (code, said) = run(&data, &["restore", path]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("exists already") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(
        run(&data, &["player", "show", &late]).0,
        Some(0),
        "nothing has changed"
    );

    let (code, said) = run(&data, &["restore", path, "--force"]);
    assert_eq!(code, Some(0), "{said}");
    let (_, aside) = said.split_once("the data from before is in ").unwrap();
    let aside = PathBuf::from(aside.lines().next().unwrap());
    assert!(aside.starts_with(&data), "{said}");
    assert_eq!(
        run(&data, &["player", "show", &late]).0,
        Some(1),
        "not in the backup"
    );
    let server = Server::start(&mut program(&data));
    assert_goes_on(&server, &cookie, &sub);
    server.stop("-TERM");
    // What was there before is a whole platform, too, so this can be taken back.
    assert_eq!(run(&aside, &["player", "show", &late]).0, Some(0));
    let server = Server::start(&mut program(&aside));
    assert!(
        server
            .ask("GET /", "demo.platform.localhost", "")
            .contains(" 200 ")
    );
    server.stop("-TERM");

    // Anything else in the folder is a reason as well.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.txt"), "").unwrap();
    let (code, said) = run(&other, &["restore", path]);
    assert!(
        code == Some(1) && said.contains("thesis.txt exists already"),
        "{said}"
    );
}

/// Writes a changed copy of a backup. `change` gets the name and the content of an entry.
fn changed(backup: &Path, mut change: impl FnMut(&str, &mut Vec<u8>)) -> Vec<u8> {
    let file = std::fs::File::open(backup).unwrap();
    let (mut from, mut to) = (tar::Archive::new(file), tar::Builder::new(Vec::new()));
    for entry in from.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        change(&name, &mut content);
        append(&mut to, &name, &content);
    }
    to.into_inner().unwrap()
}

fn append(archive: &mut tar::Builder<Vec<u8>>, name: &str, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o600);
    archive.append_data(&mut header, name, content).unwrap();
}

/// Changes a database in a backup with SQL.
fn with_sql(database: &str, sql: &'static str) -> impl FnMut(&str, &mut Vec<u8>) {
    move |name, content| {
        if name == database {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.db");
            std::fs::write(&path, &content).unwrap();
            let connection = rusqlite::Connection::open(&path).unwrap();
            connection.execute_batch(sql).unwrap();
            connection.close().unwrap();
            *content = std::fs::read(&path).unwrap();
        }
    }
}

/// A case, the content of its file, and a part of the reason.
type Bad = (&'static str, Vec<u8>, &'static str);

/// Returns files that are no good backups, made from a good one.
fn bad_backups(file: &Path) -> Vec<Bad> {
    let whole = std::fs::read(file).unwrap();
    let mut foreign = tar::Builder::new(Vec::new());
    append(&mut foreign, "readme.txt", b"hello");
    let mut link = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    link.append_link(&mut header, "platform.db", "/etc/passwd")
        .unwrap();
    let flip = |name: &str, content: &mut Vec<u8>| {
        if name.starts_with("files/") && !content.is_empty() {
            content[0] ^= 1;
        }
    };
    let tear = |name: &str, content: &mut Vec<u8>| {
        if name == "platform.db" {
            let middle = content.len() / 2 / 4_096 * 4_096;
            content[middle..middle + 4_096].fill(0xff);
        }
    };
    let newer = "INSERT INTO refinery_schema_history VALUES (9999, 'x', '', '')";
    let orphan = "PRAGMA foreign_keys = off; UPDATE sessions SET player = zeroblob(16)";
    let mut without_logs = tar::Builder::new(Vec::new());
    changed(file, |name, content| {
        if name != "logs.db" {
            append(&mut without_logs, name, content);
        }
    });
    vec![
        ("text", b"not a backup ".repeat(1_000), "not a backup"),
        ("empty", Vec::new(), "it has no platform.db"),
        (
            "foreign",
            foreign.into_inner().unwrap(),
            "it contains `readme.txt`",
        ),
        (
            "link",
            link.into_inner().unwrap(),
            "it contains `platform.db`",
        ),
        ("cut", whole[..whole.len() / 2].to_vec(), "not whole"),
        (
            "cut late",
            whole[..whole.len() - 4_096].to_vec(),
            "not whole",
        ),
        (
            "no logs",
            without_logs.into_inner().unwrap(),
            "it has no logs.db",
        ),
        (
            "flipped",
            changed(file, flip),
            "another one than its name says",
        ),
        ("torn", changed(file, tear), "platform.db"),
        (
            "newer",
            changed(file, with_sql("platform.db", newer)),
            "version 9999",
        ),
        (
            "newer logs",
            changed(file, with_sql("logs.db", newer)),
            "version 9999",
        ),
        (
            "orphan",
            changed(file, with_sql("platform.db", orphan)),
            "that is missing",
        ),
    ]
}

#[test]
fn a_backup_that_is_damaged_or_foreign_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file, ..) = backed_up(folder.path());
    let data = folder.path().join("new");
    for (case, content, reason) in bad_backups(&file) {
        let bad = folder.path().join("bad.tar");
        std::fs::write(&bad, content).unwrap();
        for more in [&[][..], &["--check"]] {
            let arguments = [&["restore", bad.to_str().unwrap()], more].concat();
            let (code, said) = run(&data, &arguments);
            assert_eq!(code, Some(1), "{case}: {said}");
            assert!(said.contains(reason), "{case}: {said}");
        }
        let left: Vec<String> = names(&data);
        assert!(
            left.iter()
                .all(|name| name == "files" || name.ends_with(".lock")),
            "{left:?}"
        );
        assert_eq!(names(&data.join("files")), [""; 0], "{case}");
    }
    let (code, said) = run(&data, &["restore", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "the whole one: {said}");
}

#[test]
fn a_backup_without_files_restores_the_store_alone_if_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let (data, _, sub, cookie) = backed_up(folder.path());
    let store_alone = folder.path().join("store.tar");
    let path = store_alone.to_str().unwrap();
    assert_eq!(run(&data, &["backup", path, "--without-files"]).0, Some(0));
    let (code, said) = run(&data, &["restore", path, "--check"]);
    assert!(
        code == Some(1) && said.contains("is a backup, but lacks"),
        "{said}"
    );
    let (code, said) = run(&data, &["restore", path, "--force"]);
    assert!(
        code == Some(1) && said.contains("--without-files"),
        "{said}"
    );
    let files = names(&data.join("files"));
    let (code, said) = run(&data, &["restore", path, "--force", "--without-files"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        names(&data.join("files")),
        files,
        "they stay where they are"
    );
    let server = Server::start(&mut program(&data));
    assert_goes_on(&server, &cookie, &sub);
    server.stop("-TERM");
    // Without a single file, if the operator says so.
    let bare = folder.path().join("bare");
    let (code, said) = run(&bare, &["restore", path, "--incomplete"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(" deployed files are missing\n"), "{said}");
}

#[test]
fn no_server_starts_on_half_of_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file, sub, cookie) = backed_up(folder.path());
    // As a restore leaves it that was killed between two renames.
    std::fs::write(data.join("restore-unfinished"), "").unwrap();
    std::fs::remove_file(data.join("platform.db")).unwrap();
    for arguments in [&["serve"][..], &["keys", "list"], &["player", "show", &sub]] {
        let output = program(&data).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let line = one_line(&output);
        assert!(
            line.contains("half of a backup") && line.contains("--force"),
            "{line}"
        );
    }
    let file = file.to_str().unwrap();
    assert_eq!(run(&data, &["restore", file]).0, Some(1));
    let (code, said) = run(&data, &["restore", file, "--force"]);
    assert_eq!(code, Some(0), "{said}");
    let server = Server::start(&mut program(&data));
    assert_eq!(subject(&token(&server, &cookie)), sub);
    server.stop("-TERM");
}

#[test]
fn a_platform_in_several_folders_is_restored_into_them() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file, sub, cookie) = backed_up(folder.path());
    let [data, store, files] = ["a", "b", "c"].map(|name| folder.path().join(name));
    let in_three = || {
        let mut command = program(&data);
        command
            .env(
                "PLATFORM_DATABASE_URL",
                format!("sqlite://{}/x.db", store.display()),
            )
            .env("PLATFORM_FILES_URL", format!("file://{}", files.display()));
        command
    };
    for force in [&[][..], &["--force"]] {
        let mut command = in_three();
        let output = command
            .arg("restore")
            .arg(&file)
            .args(force)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut refused = in_three();
        let refused = refused.arg("restore").arg(&file).output().unwrap();
        assert!(one_line(&refused).contains("x.db exists already"));
    }
    assert!(names(&store).contains(&"x.logs.db".to_owned()));
    let server = Server::start(&mut in_three());
    assert_goes_on(&server, &cookie, &sub);
    server.stop("-TERM");
}

#[test]
fn a_backup_that_cannot_be_found_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    for (backup, reason) in [
        (
            "/nowhere/platform.tar",
            "/nowhere/platform.tar cannot be read",
        ),
        (
            "latest",
            "set PLATFORM_BACKUP, as the server has it, or name",
        ),
        ("s3://games/platform.tar", "AWS_REGION"),
    ] {
        let (code, said) = run(data, &["restore", backup]);
        assert!(code == Some(1) && said.contains(reason), "{said}");
    }
}
