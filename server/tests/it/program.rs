//! The program itself: exit codes, the ready line, and what the log must never contain.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

pub(crate) fn program(data: &Path) -> Command {
    program_by(&[], data)
}

/// Returns the program, started by another one with these words.
pub(crate) fn program_by(before: &[&str], data: &Path) -> Command {
    let words = [before, &[env!("CARGO_BIN_EXE_platform-server")]].concat();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env_clear()
        .env("PLATFORM_DATA", data)
        .env("PLATFORM_LISTEN", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A server that has reported that it is ready.
pub(crate) struct Server {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    ready: String,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::try_start(command).unwrap_or_else(|output| panic!("it ended: {output:?}"))
    }

    /// Starts one. Returns the output, if it ends before it is ready.
    pub(crate) fn try_start(command: &mut Command) -> Result<Self, Output> {
        let mut child = command.arg("serve").spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        if output.read_line(&mut ready).unwrap() == 0 {
            return Err(child.wait_with_output().unwrap());
        }
        let port = ready
            .trim_end()
            .trim_end_matches(')')
            .rsplit(':')
            .next()
            .unwrap();
        let port = port
            .parse()
            .unwrap_or_else(|_| panic!("not a ready line: {ready:?}"));
        Ok(Self {
            child,
            output,
            ready,
            port,
        })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns a number of bytes of the process that the system keeps in `/proc/<pid>/status`, such as
    /// `VmRSS`.
    pub(crate) fn memory(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let mut fields = status.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(name, _)| *name == field).unwrap();
        let kilobytes = value.trim().strip_suffix(" kB").unwrap();
        kilobytes.parse::<u64>().unwrap() * 1_024
    }

    /// Sends one request and returns the whole response as text.
    pub(crate) fn ask(&self, request: &str, host: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let host = format!("{host}:{}", self.port);
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Reads the log until a line contains `text`, and returns the rest of the log.
    pub(crate) fn read_log_until(&mut self, text: &str) -> BufReader<ChildStderr> {
        self.find_in_log(text).1
    }

    /// Reads the log until a line contains `text`. Returns this line, and the rest of the log. If there is
    /// none within a minute, the server is killed, which ends the log.
    pub(crate) fn find_in_log(&mut self, text: &str) -> (String, BufReader<ChildStderr>) {
        let (_found, too_late) = mpsc::channel::<()>();
        let id = self.child.id().to_string();
        std::thread::spawn(move || {
            let waited = too_late.recv_timeout(Duration::from_secs(60));
            if waited == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id]).status();
            }
        });
        let mut log = BufReader::new(self.child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(
                log.read_line(&mut line).unwrap(),
                0,
                "the log has no such line"
            );
        }
        (line, log)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends a signal and waits for the end. Returns the remaining output, the log, and the exit
    /// code.
    pub(crate) fn stop(self, signal: &str) -> (String, String, Option<i32>) {
        self.signal(signal);
        self.wait()
    }

    /// Waits for the end. Returns the remaining output, the log, and the exit code.
    pub(crate) fn wait(mut self) -> (String, String, Option<i32>) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let ended = self.child.wait_with_output().unwrap();
        (
            rest,
            String::from_utf8(ended.stderr).unwrap(),
            ended.status.code(),
        )
    }
}

pub(crate) fn one_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.trim_end().lines().count(), 1, "one line: {text}");
    text
}

#[test]
fn one_line_says_ready_and_both_signals_stop_it_with_zero() {
    for signal in ["-TERM", "-INT"] {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::start(&mut program(directory.path()));
        let port = server.port;
        assert_eq!(
            server.ready,
            format!(
                "platform-server ready on http://platform.localhost:{port} (listening on 127.0.0.1:{port})\n"
            )
        );
        let (rest, log, code) = server.stop(signal);
        assert_eq!((rest.as_str(), code), ("", Some(0)), "{log}");
    }
}

/// Returns the program, started by a shell that sets these limits.
fn limited(data: &Path, limits: &str) -> Command {
    let run = format!("{limits} && exec \"$0\" \"$@\"");
    program_by(&["sh", "-c", &run], data)
}

#[test]
fn as_many_files_may_be_open_as_the_system_allows() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&mut limited(directory.path(), "ulimit -Sn 200"));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.child.id())).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let numbers: Vec<&str> = files.unwrap().split_ascii_whitespace().collect();
    assert_eq!(numbers[3], numbers[4], "{numbers:?}");
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn more_unfinished_heads_than_files_may_be_open_keep_no_visitor_out() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&mut limited(directory.path(), "ulimit -n 512"));
    let heads: Vec<_> = (0..600)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            // The first connections may have been closed already.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
            stream
        })
        .collect();
    let answer = server.ask("GET /", "demo.platform.localhost", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(heads);
    let (_, log, code) = server.stop("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("could not be accepted"), "{log}");
    assert!(log.contains("LimitNOFILE="), "the operator is told: {log}");
}

#[test]
fn no_secret_is_ever_logged() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(program(directory.path()).env("PLATFORM_LOG", "trace"));
    let origin = format!("Origin: http://demo.platform.localhost:{}\r\n", server.port);
    let auth = "auth.platform.localhost";
    let first = server.ask("POST /token", auth, &origin);
    let cookie = first
        .split("platform-session=")
        .nth(1)
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let token = first
        .split("\"access_token\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let again = format!("{origin}Cookie: platform-session={cookie}\r\n");
    assert!(
        server
            .ask("POST /token", auth, &again)
            .contains("access_token")
    );
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let me = server.ask(
        "GET /api/me?key=in-the-query",
        "demo.platform.localhost",
        &bearer,
    );
    assert!(me.starts_with("HTTP/1.1 200"), "{me}");
    let bad = "Authorization: Bearer tampered.with.token\r\n";
    assert!(
        server
            .ask("GET /api/me", "demo.platform.localhost", bad)
            .contains(" 401 ")
    );
    assert!(server.ask("POST /sign-out", auth, &again).contains(" 204 "));
    let (_, log, _) = server.stop("-TERM");
    assert!(
        log.contains("/token") && log.contains("/api/me"),
        "requests are logged: {log}"
    );
    for (what, secret) in [
        ("cookie", cookie),
        ("token", token),
        ("signature", token.rsplit('.').next().unwrap()),
        ("bad token", "tampered"),
        ("query", "in-the-query"),
    ] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "a {what} was logged");
    }
}

#[test]
fn wrong_settings_end_with_one_and_wrong_usage_with_two() {
    let directory = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("PLATFORM_ORIGIN", "http://games.example"),
        ("PLATFORM_TOKEN_SECONDS", "soon"),
        ("PLATFORM_UNKNOWN", "1"),
        ("PLATFORM_REDIS_URL", "localhost:6379"),
    ] {
        for arguments in [&["serve"][..], &["config"], &["keys", "list"]] {
            let output = program(directory.path())
                .env(name, value)
                .args(arguments)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(1), "{name}");
            assert!(one_line(&output).contains(name), "{name}");
            assert!(output.stdout.is_empty());
        }
    }
    for arguments in [
        &["serve", "--config", "/nowhere.toml"][..],
        &["--config", "/nowhere.toml", "serve"],
        &["keys", "--config", "/nowhere.toml", "list"],
        &["--config=/nowhere.toml", "events"],
    ] {
        let output = program(directory.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(one_line(&output).contains("/nowhere.toml"), "{arguments:?}");
    }
    for arguments in [&["fly"][..], &[], &["serve", "--fast"], &["keys", "burn"]] {
        let output = program(directory.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_help_of_every_command_names_the_option_for_the_settings() {
    let directory = tempfile::tempdir().unwrap();
    for command in [
        &[][..],
        &["serve"],
        &["keys"],
        &["keys", "list"],
        &["events"],
    ] {
        let output = program(directory.path())
            .args(command)
            .arg("--help")
            .output()
            .unwrap();
        assert!(output.status.success(), "{command:?}");
        let help = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            help.matches("--config <platform.toml>").count(),
            1,
            "{help}"
        );
    }
}

#[test]
fn a_port_that_is_taken_is_said_in_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let output = program(directory.path())
        .env("PLATFORM_LISTEN", &address)
        .arg("serve")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        one_line(&output),
        format!(
            "platform-server: cannot listen on {address}: another program listens there; stop it, \
             or set PLATFORM_LISTEN to another port\n"
        )
    );
}

#[test]
fn keys_are_listed_and_rotated_beside_a_running_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&mut program(directory.path()));
    let list = || {
        let output = program(directory.path())
            .args(["keys", "list"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(list().lines().count(), 1);
    assert!(list().contains("signing"));
    let output = program(directory.path())
        .args(["keys", "rotate"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(list().contains("published, signs in 21 minutes"));
    assert_eq!(list().lines().count(), 2);
    server.stop("-TERM");
}

#[test]
fn a_second_server_on_one_folder_stops_with_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let second = || {
        program(directory.path())
            .arg("serve")
            .stdout(Stdio::piped())
            .output()
            .unwrap()
    };
    for signal in ["-TERM", "-KILL"] {
        let server = Server::start(&mut program(directory.path()));
        let output = second();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let line = one_line(&output);
        assert!(
            line.contains(directory.path().to_str().unwrap()) && line.contains("PLATFORM_DATA"),
            "{line}"
        );
        for arguments in [&["keys", "list"][..], &["config"]] {
            let output = program(directory.path()).args(arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        }
        server.stop(signal);
    }
    // The folder is not locked after either end.
    Server::start(&mut program(directory.path())).stop("-TERM");
}

#[test]
fn with_json_every_line_of_the_log_is_an_object_also_why_the_server_ends() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&mut program(directory.path()));
    let fails = |log: &str| {
        let mut second = program(directory.path());
        let second = second.env("PLATFORM_LOG_FORMAT", "json");
        let output = second.env("PLATFORM_LOG", log).arg("serve").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let log = fails("info");
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.last().unwrap();
    assert_eq!(last["level"], "ERROR");
    let cause = last["cause"].as_str().unwrap();
    assert!(cause.contains("PLATFORM_DATA"), "{cause}");
    // Who logs nothing is told all the same.
    let line = fails("off");
    assert!(line.starts_with("platform-server: ") && line.contains("PLATFORM_DATA"));
    server.stop("-TERM");
}

#[test]
fn key_commands_never_make_a_platform() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    for data in [directory.path(), &missing] {
        for command in ["list", "rotate"] {
            let output = program(data).args(["keys", command]).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{command}");
            assert_eq!(
                one_line(&output),
                format!(
                    "platform-server: there is no platform in {}; set PLATFORM_DATA to the folder \
                     that `serve` uses\n",
                    data.display()
                )
            );
        }
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_file_where_the_data_folder_should_be_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    for arguments in [&["serve"][..], &["keys", "list"]] {
        let output = program(&file).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let line = one_line(&output);
        assert!(
            line.contains(file.to_str().unwrap()) && line.contains("it is a file"),
            "{line}"
        );
    }
}

/// Creates a guest on this server and returns its id and its cookie.
pub(crate) fn guest(server: &Server) -> (String, String) {
    let answer = token(server, "");
    let cookie = answer
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .and_then(|cookie| cookie.split(';').next())
        .unwrap();
    (subject(&answer), cookie.to_owned())
}

/// Returns the response of `POST /token` to the demo's page.
pub(crate) fn token(server: &Server, cookie: &str) -> String {
    let origin = format!("http://demo.platform.localhost:{}", server.port);
    let headers = format!("Origin: {origin}\r\nCookie: {cookie}\r\nContent-Length: 0\r\n");
    server.ask("POST /token", "auth.platform.localhost", &headers)
}

/// Returns `sub` of the token in a response.
pub(crate) fn subject(answer: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let payload = body["access_token"]
        .as_str()
        .unwrap()
        .split('.')
        .nth(1)
        .unwrap();
    let claims = URL_SAFE_NO_PAD.decode(payload).unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
    claims["sub"].as_str().unwrap().to_owned()
}

#[test]
fn a_player_is_shown_suspended_and_let_go_beside_a_running_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&mut program(directory.path()));
    let (sub, cookie) = guest(&server);
    let player = |arguments: &[&str]| {
        let output = program(directory.path())
            .arg("player")
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let (code, shown) = player(&["show", &sub]);
    assert_eq!(code, Some(0));
    for part in [&sub, "state     guest\n", "sessions  1\n", "devices   0\n"] {
        assert!(shown.contains(part), "{shown}");
    }
    let name = shown.split("username  ").nth(1).unwrap();
    let name = name.lines().next().unwrap().to_uppercase();
    assert_eq!(player(&["show", &name]), (Some(0), shown));
    let suspend = ["suspend", &sub, "--reason", "You broke the rules."];
    assert_eq!(player(&suspend).0, Some(0));
    let refused = token(&server, &cookie);
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    for part in ["/problems/account-suspended", "You broke the rules."] {
        assert!(refused.contains(part), "{refused}");
    }
    let (_, shown) = player(&["show", &sub]);
    for part in [
        "suspended guest: You broke the rules.\n",
        "  suspended, by the operator: You broke the rules.\n",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(player(&["unsuspend", &sub]).1.ends_with("may play again\n"));
    assert!(
        player(&["unsuspend", &sub])
            .1
            .ends_with("was not suspended\n")
    );
    let (_, shown) = player(&["show", &sub]);
    let kept = "  suspended, by the operator: You broke the rules.\n";
    assert!(
        shown.contains("state     guest\n") && shown.contains(kept),
        "{shown}"
    );
    assert_eq!(subject(&token(&server, &cookie)), sub);
    let (_, ended) = player(&["end-sessions", &sub]);
    assert!(ended.starts_with("1 session of "), "{ended}");
    assert_ne!(subject(&token(&server, &cookie)), sub, "a new guest");
    server.stop("-TERM");
}

#[test]
fn player_commands_say_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let nobody = "00000000-0000-4000-8000-000000000000";
    let run = |arguments: &[&str]| {
        let mut command = program(directory.path());
        command.arg("player").args(arguments).output().unwrap()
    };
    let output = run(&["show", nobody]);
    assert!(one_line(&output).contains("there is no platform in"));
    Server::start(&mut program(directory.path())).stop("-TERM");
    for arguments in [
        &["show", nobody][..],
        &["suspend", nobody],
        &["unsuspend", nobody],
        &["end-sessions", nobody],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            one_line(&output).contains("there is no player"),
            "{arguments:?}"
        );
    }
    let output = run(&["show", "nobody-here"]);
    assert!(one_line(&output).contains("no player is named nobody-here"));
    for arguments in [
        &["show", "me"][..],
        &["suspend", "nobody-here"],
        &["suspend", nobody, "--reason", " "],
        &["suspend", nobody, "--reason", "two\nlines"],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn an_unexpected_error_is_in_the_log_under_its_request_id_and_not_in_the_response() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(&mut program(directory.path()));
    // Something that no server does: a table has another name.
    let store = rusqlite::Connection::open(directory.path().join("platform.db")).unwrap();
    store
        .execute_batch("ALTER TABLE players RENAME TO other_players")
        .unwrap();
    let answer = token(&server, "");
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    for cause in ["players", "sqlite", "table"] {
        assert!(!answer.contains(cause), "{answer}");
    }
    let id = answer
        .lines()
        .find_map(|line| line.strip_prefix("x-request-id: "));
    let expected = format!(
        "request failed request_id=\"{}\" slug=\"internal\"",
        id.unwrap()
    );
    let (line, _log) = server.find_in_log(&expected);
    assert!(line.contains("ERROR") && line.contains("players"), "{line}");
    server.stop("-KILL");
}
