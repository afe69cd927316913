//! The operator's commands for projects, administrators and backups, next to a running server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::program::{Server, guest, one_line, program, subject, token};

/// Runs a command and returns its exit code and its output.
pub(crate) fn run(data: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = program(data).args(arguments).output().unwrap();
    let said = if output.status.success() {
        String::from_utf8(output.stdout).unwrap()
    } else {
        assert!(output.stdout.is_empty());
        one_line(&output)
    };
    (output.status.code(), said)
}

#[test]
fn what_a_command_repeats_does_not_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "x\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}2J\u{7f}\u{202e}\nerror: b";
    let settings = folder.path().join(hostile);
    std::fs::write(&settings, format!("\"{}\" = 1", hostile.escape_unicode())).unwrap();
    let settings = settings.to_str().unwrap();
    for arguments in [
        &["--config", settings, "config"][..],
        &["--config", hostile, "config"],
        &["player", "find", hostile],
        &["player", "show", hostile],
        &["project", "transfer", hostile, hostile],
        &[hostile],
    ] {
        let output = program(folder.path()).args(arguments).output().unwrap();
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(steers), "{arguments:?}: {text:?}");
            assert!(!text.contains("\nerror: b"), "{arguments:?}: {text:?}");
        }
    }
}

/// Creates an account: id and cookie.
fn account(server: &Server, data: &Path) -> (String, String) {
    let (sub, cookie) = guest(server);
    let database = rusqlite::Connection::open(data.join("platform.db")).unwrap();
    let link = format!(
        "UPDATE players SET linked = 1 WHERE id = X'{}'",
        sub.replace('-', "")
    );
    database.execute_batch(&link).unwrap();
    // As after a recent sign-in.
    database
        .execute_batch("UPDATE sessions SET authenticated_at = 1000 * unixepoch()")
        .unwrap();
    (sub, cookie)
}

/// Returns the status line of a request to the console about the demo, which belongs to nobody.
fn ask_for_demo(server: &Server, cookie: &str) -> String {
    let origin = format!("http://platform.localhost:{}", server.port);
    let headers = format!("Origin: {origin}\r\nCookie: {cookie}\r\nContent-Length: 0\r\n");
    let answer = server.ask("POST /token", "auth.platform.localhost", &headers);
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let token = body["access_token"].as_str().unwrap();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let answer = server.ask("GET /api/projects/demo", "platform.localhost", &bearer);
    answer.lines().next().unwrap().to_owned()
}

#[test]
fn an_administrator_is_granted_and_revoked_beside_a_running_server() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let (sub, cookie) = account(&server, data);
    assert!(ask_for_demo(&server, &cookie).contains(" 403 "));
    let (code, said) = run(data, &["admin", "grant", &sub]);
    assert_eq!(
        (code, said),
        (Some(0), format!("{sub} is an administrator\n"))
    );
    assert!(ask_for_demo(&server, &cookie).contains(" 200 "));
    assert!(run(data, &["admin", "list"]).1.starts_with(&sub));
    let (_, shown) = run(data, &["player", "show", &sub]);
    for part in ["admin     yes\n", "  admin-granted, by the operator\n"] {
        assert!(shown.contains(part), "{shown}");
    }
    let (_, said) = run(data, &["admin", "revoke", &sub]);
    assert_eq!(said, format!("{sub} is no longer an administrator\n"));
    assert!(ask_for_demo(&server, &cookie).contains(" 403 "));
    assert_eq!(
        run(data, &["admin", "list"]).1,
        "nobody is an administrator; `admin grant <id>` makes one\n"
    );

    let (passing, _) = guest(&server);
    let (code, said) = run(data, &["admin", "grant", &passing]);
    assert!(code == Some(1) && said.contains("signed in"), "{said}");
    let nobody = "00000000-0000-4000-8000-000000000000";
    let (code, said) = run(data, &["admin", "grant", nobody]);
    assert!(code == Some(1) && said.contains("no player"), "{said}");
    // An administrator named by the settings stays one, and the operator is told.
    let mut revoke = program(data);
    revoke.env("PLATFORM_ADMINS", &sub);
    let output = revoke.args(["admin", "revoke", &sub]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(one_line(&output).contains("PLATFORM_ADMINS names"));
    server.stop("-TERM");
}

#[test]
fn a_project_is_listed_and_given_away_beside_a_running_server() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let (sub, cookie) = account(&server, data);
    let (code, list) = run(data, &["project", "list"]);
    assert_eq!(code, Some(0));
    assert!(list.starts_with("demo  the platform, since 20"), "{list}");
    let (_, said) = run(data, &["project", "transfer", "demo", &sub]);
    assert_eq!(
        said,
        format!("demo belongs to {sub}; the deploy tokens that it had are revoked\n")
    );
    assert!(ask_for_demo(&server, &cookie).contains(" 200 "));
    let (_, list) = run(data, &["project", "list"]);
    assert!(list.starts_with(&format!("demo  {sub}, since ")), "{list}");
    let (_, said) = run(data, &["project", "transfer", "demo", &sub]);
    assert_eq!(said, format!("demo belonged to {sub} before\n"));
    let (passing, _) = guest(&server);
    let nobody = "00000000-0000-4000-8000-000000000000";
    for (slug, to, part) in [
        ("none", sub.as_str(), "no project none"),
        ("demo", &passing, "signed in"),
        ("demo", nobody, "no player"),
    ] {
        let (code, said) = run(data, &["project", "transfer", slug, to]);
        assert!(code == Some(1) && said.contains(part), "{said}");
    }
    let mut wrong = program(data);
    let wrong = wrong.args(["project", "transfer", "demo", "me"]).output();
    assert_eq!(wrong.unwrap().status.code(), Some(2));
    server.stop("-TERM");
}

#[test]
fn the_demos_backend_goes_on_with_its_new_owner() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let (sub, cookie) = account(&server, data);
    let me = |server: &Server| {
        let answer = token(server, &cookie);
        let body: serde_json::Value =
            serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        let token = body["access_token"].as_str().unwrap();
        let bearer = format!("Authorization: Bearer {token}\r\n");
        server.ask("GET /api/me", "demo.platform.localhost", &bearer)
    };
    assert!(me(&server).contains(&sub));
    let (code, said) = run(data, &["project", "transfer", "demo", &sub]);
    assert_eq!(code, Some(0), "{said}");
    server.stop("-TERM");
    for _ in 0..2 {
        let server = Server::start(&mut program(data));
        let answer = me(&server);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains(&sub), "{answer}");
        let deploys = "SELECT count(*) FROM deployments";
        let database = rusqlite::Connection::open(data.join("platform.db")).unwrap();
        let deploys: u32 = database.query_row(deploys, [], |row| row.get(0)).unwrap();
        assert_eq!(deploys, 2, "the platform deploys nothing there any more");
        server.stop("-TERM");
    }
}

#[test]
fn players_are_found_by_name_and_by_the_address_that_holds_them() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let (sub, cookie) = guest(&server);
    let (other, second) = guest(&server);
    // They count once their cookies have come back.
    for cookie in [cookie, second] {
        token(&server, &cookie);
    }
    guest(&server);
    let (_, shown) = run(data, &["player", "show", &sub]);
    let name = shown
        .lines()
        .find_map(|line| line.strip_prefix("username  "));
    let name = name.unwrap().to_owned();
    for start in [name.clone(), name[..6].to_uppercase()] {
        let (code, found) = run(data, &["player", "find", &start]);
        let line = format!("{sub}  {name}, guest\n");
        assert!(code == Some(0) && found.contains(&line), "{found}");
    }
    let mut nobody = program(data);
    let nobody = nobody.args(["player", "find", "nobody-here"]).output();
    let nobody = nobody.unwrap();
    assert!(nobody.status.success() && nobody.stdout.is_empty());
    assert_eq!(
        one_line(&nobody).trim_end(),
        "no player's name begins with nobody-here"
    );

    let (code, held) = run(data, &["player", "guests"]);
    let expected = "127.0.0.1  2 guests, the last at 20";
    assert!(code == Some(0) && held.starts_with(expected), "{held}");
    for address in ["127.0.0.1", "::ffff:127.0.0.1"] {
        let (_, held) = run(data, &["player", "guests", address]);
        assert_eq!(held.lines().count(), 2, "{held}");
        let line = format!("{sub}  {name}, last here 20");
        assert!(held.contains(&line) && held.contains(&other), "{held}");
    }
    assert_eq!(
        run(data, &["player", "guests", "2001:db8::1"]).1,
        "2001:db8::/64 holds no guests\n"
    );
    let mut wrong = program(data);
    let wrong = wrong.args(["player", "guests", "10.0.0.0/8"]).output();
    assert_eq!(wrong.unwrap().status.code(), Some(2));
    server.stop("-TERM");
}

#[test]
fn events_are_listed_by_player_kind_and_who_did_it() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let (sub, _) = account(&server, data);
    run(data, &["admin", "grant", &sub]);
    run(data, &["player", "suspend", &sub]);
    let (code, all) = run(data, &["events"]);
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = all.lines().collect();
    let suspended = format!("  suspended, player {sub}, by the operator");
    assert!(lines[0].ends_with(&suspended), "{all}");
    assert!(lines[1].contains("  admin-granted, player "), "{all}");
    assert!(lines[2].contains("  key-added, "), "{all}");
    for (arguments, expected) in [
        (&["--kind", "suspended"][..], &lines[..1]),
        (&["--actor", "operator"], &lines[..2]),
        (&["--actor", "self", "--player", &sub], &[]),
        (&["--limit", "1"], &lines[..1]),
    ] {
        let (_, some) = run(data, &[&["events"], arguments].concat());
        assert_eq!(some.lines().collect::<Vec<_>>(), expected, "{arguments:?}");
    }
    let (newest, _) = lines[0].split_once("  ").unwrap();
    let (_, older) = run(data, &["events", "--before", newest]);
    assert_eq!(older.lines().collect::<Vec<_>>(), lines[1..]);
    for wrong in [["--kind", "x"], ["--actor", "me"], ["--player", "me"]] {
        let mut command = program(data);
        let output = command.arg("events").args(wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    server.stop("-TERM");
}

#[test]
fn these_commands_never_make_a_platform() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["project", "list"][..], &["admin", "list"]] {
        let (code, said) = run(directory.path(), arguments);
        assert_eq!(code, Some(1));
        assert!(said.contains("there is no platform in"), "{said}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Unpacks a backup with the operator's usual tools.
pub(crate) fn unpack(backup: &Path, into: &Path) {
    let mut tar = std::process::Command::new("tar");
    let status = tar.arg("-xpf").arg(backup).arg("-C").arg(into).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_backup_beside_a_running_server_is_restored_and_played_on() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let (sub, cookie) = guest(&server);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("platform.tar");
    let path = file.to_str().unwrap();
    // Players arrive during the backup.
    let (code, said) = std::thread::scope(|scope| {
        let backup = scope.spawn(|| run(data, &["backup", path]));
        for _ in 0..10 {
            guest(&server);
        }
        backup.join().unwrap()
    });
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains(path) && said.contains(" deployed files, "),
        "{said}"
    );
    let (later, _) = guest(&server);
    let page = server.ask("GET /", "demo.platform.localhost", "");
    assert!(page.contains(" 200 "), "{page}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it has the signing keys");
    let beside = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(beside.count(), 1, "nothing else is left behind");
    let (code, said) = run(data, &["backup", path]);
    assert_eq!(code, Some(1));
    assert!(said.contains("already exists"), "{said}");
    server.stop("-KILL");

    let restored = tempfile::tempdir().unwrap();
    unpack(&file, restored.path());
    let server = Server::start(&mut program(restored.path()));
    assert_eq!(subject(&token(&server, &cookie)), sub, "the same player");
    let again = server.ask("GET /", "demo.platform.localhost", "");
    let body = |answer: &str| answer.split("\r\n\r\n").nth(1).unwrap().to_owned();
    assert_eq!(body(&again), body(&page));
    let (code, _) = run(restored.path(), &["player", "show", &sub]);
    assert_eq!(code, Some(0));
    let (code, _) = run(restored.path(), &["player", "show", &later]);
    assert_eq!(code, Some(1), "who came after the backup is not in it");
    server.stop("-TERM");
}

/// Polls ten times a second, for at most twenty seconds, until `holds` returns true.
fn poll(what: &str, mut holds: impl FnMut() -> bool) {
    let mut time = tokio::runtime::Builder::new_current_thread();
    let time = time.enable_time().build().unwrap();
    let mut ticks = time.block_on(async { tokio::time::interval(Duration::from_millis(100)) });
    for _ in 0..200 {
        time.block_on(ticks.tick());
        if holds() {
            return;
        }
    }
    panic!("within twenty seconds: {what}");
}

/// Returns the `kid` of every key, as the command lists them.
fn kids(data: &Path) -> Vec<String> {
    let (code, listed) = run(data, &["keys", "list"]);
    assert_eq!(code, Some(0), "{listed}");
    let lines = listed.lines();
    lines
        .map(|line| line.split("  ").next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_key_is_revoked_beside_a_running_server() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let key_set = || server.ask("GET /.well-known/jwks.json", "auth.platform.localhost", "");
    let old = kids(data).remove(0);
    assert!(key_set().contains(&old));
    let (code, said) = run(data, &["keys", "revoke", &old]);
    assert_eq!(code, Some(0), "{said}");
    let new = kids(data);
    assert!(
        new.len() == 1 && new[0] != old && said.contains(&new[0]),
        "{said}"
    );
    // The server checks every three seconds.
    poll("the server follows", || !key_set().contains(&old));
    assert!(key_set().contains(&new[0]));
    let (code, said) = run(data, &["keys", "revoke", &old]);
    assert!(code == Some(1) && said.contains("no signing key"), "{said}");
    // Some ids begin with a hyphen.
    let (code, said) = run(data, &["keys", "revoke", "-x"]);
    assert!(
        code == Some(1) && said.contains("no signing key -x"),
        "{said}"
    );
    server.stop("-TERM");
}

#[test]
fn keys_are_sealed_under_another_secret_beside_a_running_server() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let [first, second] = ["1", "2"].map(|digit| digit.repeat(32));
    let reseal = |variables: &[(&str, &str)]| {
        let mut command = program(data);
        let output = command
            .envs(variables.iter().copied())
            .args(["keys", "reseal"])
            .output();
        let output = output.unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (secret, before) = ("PLATFORM_KEY_SECRET", "PLATFORM_KEY_SECRET_OLD");
    let server = Server::start(&mut program(data));
    assert_eq!(reseal(&[]).0, Some(1));
    let (code, said) = reseal(&[(secret, &first)]);
    assert_eq!(
        (code, said.as_str()),
        (
            Some(0),
            "1 key is sealed under PLATFORM_KEY_SECRET now; the server needs it from now on: give it this secret \
             and restart it, and keep a copy apart from the backups\n"
        )
    );
    // The running server has the key.
    assert!(guest(&server).0.len() > 30);
    server.stop("-TERM");

    let server = Server::start(program(data).env(secret, &first));
    assert_eq!(
        reseal(&[(secret, &second)]).0,
        Some(1),
        "the one before is not known"
    );
    assert_eq!(reseal(&[(secret, &second), (before, &first)]).0, Some(0));
    server.stop("-TERM");
    let output = program(data)
        .env(secret, &first)
        .arg("serve")
        .output()
        .unwrap();
    assert!(one_line(&output).contains("PLATFORM_KEY_SECRET_OLD"));
    let server = Server::start(program(data).env(secret, &second));
    server.stop("-TERM");
}

#[test]
fn a_platform_whose_key_secret_is_lost_goes_on_with_new_keys() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let [lost, new] = ["1", "2"].map(|digit| digit.repeat(32));
    let secret = "PLATFORM_KEY_SECRET";
    let server = Server::start(program(data).env(secret, &lost));
    let (sub, cookie) = guest(&server);
    let revoke = || {
        let mut command = program(data);
        let command = command.env(secret, &new);
        command
            .args(["keys", "revoke", "--unreadable"])
            .output()
            .unwrap()
    };
    // This one can still sign with them.
    assert!(one_line(&revoke()).contains("PLATFORM_DATA"));
    server.stop("-TERM");
    let mut starts = program(data);
    let refused = starts.env(secret, &new).arg("serve").output().unwrap();
    assert!(one_line(&refused).contains("if it is lost"), "{refused:?}");

    let output = revoke();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("Start the server"));
    let server = Server::start(program(data).env(secret, &new));
    assert_eq!(subject(&token(&server, &cookie)), sub);
    server.stop("-TERM");
    let output = revoke();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("none was revoked"));
    let usage = program(data).args(["keys", "revoke"]).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn unsealed_keys_of_a_public_platform_are_told_at_the_start() {
    let said = |variables: &[(&str, &str)]| {
        let directory = tempfile::tempdir().unwrap();
        let mut command = program(directory.path());
        let server = Server::start(command.envs(variables.iter().copied()));
        let (_, log, _) = server.stop("-TERM");
        log.contains("unsealed signing keys")
    };
    let public = ("PLATFORM_ORIGIN", "https://play.example");
    let secret = "3".repeat(32);
    assert!(said(&[public]));
    assert!(!said(&[public, ("PLATFORM_KEY_SECRET", &secret)]));
    assert!(!said(&[]));
}

#[test]
fn a_backup_that_lacks_files_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    Server::start(&mut program(data)).stop("-TERM");
    std::fs::remove_dir_all(data.join("files")).unwrap();
    let file = data.join("backup.tar");
    let (code, said) = run(data, &["backup", file.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(said.contains("is a backup, but without"), "{said}");
    assert!(file.exists(), "what there is, is kept");
    let nowhere = data.join("missing/backup.tar");
    let (code, said) = run(data, &["backup", nowhere.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    let folder = data.join("missing");
    assert!(
        said.contains(&format!("{} does not exist", folder.display())),
        "{said}"
    );
}

#[tokio::test]
async fn a_backup_that_is_stopped_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    Server::start(&mut program(data)).stop("-TERM");
    // Enough files that it takes a moment.
    let files = data.join("files/00");
    std::fs::create_dir_all(&files).unwrap();
    for number in 0..4 {
        let file = std::fs::File::create(files.join(format!("{number:062}"))).unwrap();
        file.set_len(128 << 20).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("platform.tar");
    let mut backup = program(data);
    let mut backup = backup.arg("backup").arg(&target).spawn().unwrap();
    let begun = || std::fs::read_dir(folder.path()).unwrap().count() > 0;
    let begins = async {
        while !begun() {
            tokio::task::yield_now().await;
        }
    };
    let begins = tokio::time::timeout(Duration::from_secs(20), begins).await;
    begins.expect("the backup begins");
    let pid = backup.id().to_string();
    let kill = std::process::Command::new("kill").arg(pid).status();
    assert!(kill.unwrap().success());
    assert_eq!(backup.wait().unwrap().code(), Some(1));
    assert!(!begun(), "{:?}", std::fs::read_dir(folder.path()).unwrap());
}

#[test]
fn commands_leave_the_database_of_an_older_program_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    Server::start(&mut program(data)).stop("-TERM");
    let database = rusqlite::Connection::open(data.join("platform.db")).unwrap();
    let newest = "version = (SELECT max(version) FROM refinery_schema_history)";
    let forget = format!("DELETE FROM refinery_schema_history WHERE {newest}");
    database.execute(&forget, []).unwrap();
    let file = data.join("backup.tar");
    let backup = ["backup", file.to_str().unwrap()];
    for arguments in [&["project", "list"][..], &["keys", "list"], &backup] {
        let (code, said) = run(data, arguments);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("use the program that serves it"), "{said}");
    }
    assert!(!file.exists());
}

#[test]
fn events_are_followed_as_lines_of_json_beside_a_running_server() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let (sub, _) = account(&server, data);
    let mut command = program(data);
    command.args(["events", "--follow", "--json", "--player", &sub]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    for (arguments, kind) in [
        (["admin", "grant"], "admin-granted"),
        (["admin", "revoke"], "admin-revoked"),
    ] {
        assert_eq!(run(data, &[arguments[0], arguments[1], &sub]).0, Some(0));
        let line = lines.next().unwrap().unwrap();
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["kind"], kind);
        assert_eq!(event["player"], sub);
        assert_eq!(event["actor"], "operator");
    }
    let terminate = std::process::Command::new("kill")
        .args(["-TERM", &following.id().to_string()])
        .status();
    assert!(terminate.unwrap().success());
    let ended = following.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let (_, listed) = run(
        data,
        &["events", "--json", "--limit", "2", "--player", &sub],
    );
    let kinds: Vec<_> = listed
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].clone())
        .collect();
    assert_eq!(kinds, ["admin-revoked", "admin-granted"]);
    server.stop("-TERM");
}

#[cfg(not(feature = "cluster"))]
#[test]
fn a_program_without_postgresql_says_how_to_move_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    Server::start(&mut program(data)).stop("-TERM");
    let (code, said) = run(data, &["move", "--to", "postgres://localhost/platform"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("--features platform-server/cluster"),
        "{said}"
    );
}

#[test]
fn a_player_is_exported_deleted_and_kept_beside_a_running_server() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let server = Server::start(&mut program(data));
    let (sub, _) = guest(&server);
    let (code, file) = run(data, &["player", "export", &sub]);
    assert_eq!(code, Some(0));
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["player"]["id"], sub);
    let (code, said) = run(data, &["player", "delete", &sub]);
    assert!(
        code == Some(0) && said.contains("will be removed"),
        "{said}"
    );
    let (_, shown) = run(data, &["player", "show", &sub]);
    for part in [
        "\ndeletion  after 20",
        "  deletion-asked, by the operator, 20",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let (_, said) = run(data, &["player", "keep", &sub]);
    assert!(said.contains("is kept"), "{said}");
    let (_, said) = run(data, &["player", "keep", &sub]);
    assert!(said.contains("was not to be deleted"), "{said}");

    let (owner, cookie) = account(&server, data);
    drop(cookie);
    let database = rusqlite::Connection::open(data.join("platform.db")).unwrap();
    let project = format!(
        "INSERT INTO projects (slug, owner, created_at) VALUES ('theirs', X'{}', 1)",
        owner.replace('-', "")
    );
    database.execute_batch(&project).unwrap();
    let (code, said) = run(data, &["player", "delete", &owner]);
    assert!(code == Some(1) && said.contains("owns theirs"), "{said}");
    let nobody = "00000000-0000-4000-8000-000000000000";
    for command in ["export", "delete", "keep"] {
        let (code, said) = run(data, &["player", command, nobody]);
        assert!(
            code == Some(1) && said.contains("no player"),
            "{command}: {said}"
        );
    }
}
