//! The path of a new developer who has never seen the platform: from nothing to a game that others
//! play, in a terminal and a browser. Every command is the real one, and its duration is printed
//! (`--nocapture`).

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use platform_test_ports::ReservedPort;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::maker::{self, Maker};
use platform_tests::platform::Site;
use platform_tests::poll;
use platform_tests::process::{self, Guarded};
use platform_tests::server::{self, Server};
use platform_tests::sign_in::Way;
use platform_tests::visitor::claims;
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::Key;
use tokio::io::{AsyncBufReadExt, BufReader};

/// The game, which is also the name of its folder.
const SLUG: &str = "rings";
/// The backend that comes with it, as the README starts it.
const BACKEND: &str = "npm run --silent backend";

/// The developer's machine, and the platform on another one.
struct Stranger {
    maker: Maker,
    stage: Stage,
    site: Site,
    server: Server,
    data: TempDir,
}

impl Stranger {
    async fn new() -> Self {
        let data = TempDir::with_prefix("platform-tests-").unwrap();
        let server = Server::start(&data.path().join("platform")).await;
        let site = Site::from(&server);
        let stage = Stage::new(Arc::new(Browser::start(Engine::Chromium).await));
        Self {
            maker: Maker::new(),
            stage,
            site,
            server,
            data,
        }
    }

    /// Types a command into the terminal, in the game's folder.
    async fn types(&self, line: &str) -> String {
        self.maker.types(SLUG, line).await.done().to_owned()
    }

    /// Signs in to the platform: the terminal's code is approved in the browser, by a person who
    /// first has to sign in there.
    async fn signs_in(&self) {
        let begun = maker::now();
        let mut login = self.maker.command("", "platform");
        let mut child = login
            .args(["login", "--no-browser", "--origin", &self.site.origin])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut line = async || {
            let line = poll::within("a line of the login", lines.next_line()).await;
            line.unwrap().unwrap_or_default()
        };
        let address = loop {
            if let Some((_, address)) = line().await.split_once("which contains the code: ") {
                break address.to_owned();
            }
        };
        let stage = &self.stage;
        stage.open(&address).await;
        Way::BuiltIn.choose(stage).await;
        stage.fill("Name", "Ada").await;
        stage.press("Sign in").await;
        stage.press("Approve").await;
        stage.says("The device is signed in").await;
        let said = loop {
            let said = line().await;
            if !said.starts_with("Waiting") {
                break said;
            }
        };
        assert!(said.starts_with("Signed in to http://platform."), "{said}");
        let status = poll::within("the login", child.wait()).await.unwrap();
        assert!(status.success());
        maker::report("platform login", begun);
    }

    /// Returns the address of the game's dev environment, or of its production environment.
    fn url(&self, environment: &str) -> String {
        let prefix = if environment == "dev" { "dev-" } else { "" };
        self.site.url(&format!("{prefix}{SLUG}"), "")
    }

    /// Starts a long-running program in the game's folder; `name` is for its output.
    fn starts(&self, name: &str, line: &str, variables: &[(&str, &str)]) -> Running {
        let mut words = line.split(' ');
        let mut command = self.maker.command(SLUG, words.next().unwrap());
        let log = self.data.path().join(format!("{name}.log"));
        let file = std::fs::File::create(&log).unwrap();
        command
            .args(words)
            .envs(variables.iter().copied())
            .env("STARTED_AS", &log)
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        Running {
            _process: Guarded::start(command.as_std_mut()),
            log,
        }
    }

    /// Runs the game's backend for an environment, with the variables that the platform gives, and
    /// sets its address on the platform.
    async fn runs_backend(&self, environment: &str, command: &str) -> Backend {
        let port = ReservedPort::take().unwrap();
        let text = self
            .types(&format!("platform backend variables --env {environment}"))
            .await;
        let scores = self.data.path().join(format!("scores-{environment}.json"));
        let mut variables: Vec<(&str, &str)> = text
            .lines()
            .map(|line| line.split_once('=').unwrap())
            .collect();
        assert_eq!(variables.len(), 3, "{text}");
        let (number, file) = (port.number().to_string(), scores.to_str().unwrap());
        variables.extend([("PORT", number.as_str()), ("SCORES", file)]);
        let name = format!("backend-{environment}");
        let running = self.starts(&name, command, &variables);
        running.says("The backend listens").await;
        self.types(&format!(
            "platform backend set http://{} --env {environment} --yes",
            port.address()
        ))
        .await;
        Backend {
            _running: running,
            scores,
            _port: port,
        }
    }

    /// Plays one round on the open page, until a rock ends it, and returns the score.
    async fn plays(&self) -> u64 {
        let space = self.stage.browser().session.action_chain();
        space.send_keys(Key::Space + "").perform().await.unwrap();
        let words = self
            .shows("words", |text| text.starts_with("You gathered"))
            .await;
        let score = words.split(' ').find_map(|word| word.parse().ok()).unwrap();
        self.shows("best", |text| text == format!("Best {score}"))
            .await;
        score
    }

    /// Waits until the text of `#id` satisfies `wanted`.
    async fn shows(&self, id: &str, wanted: impl Fn(&str) -> bool) -> String {
        let script = format!("return document.getElementById('{id}')?.textContent");
        poll::until(&format!("#{id} to show it"), async || {
            let text = self.stage.attempt(&script).await.ok()?;
            text.as_str().filter(|text| wanted(text)).map(str::to_owned)
        })
        .await
    }

    /// Opens the deployed game and plays it without a backend: the page shows the player, and the
    /// best score stays in this browser. Returns the player's id and the score.
    async fn plays_without_a_backend(&self, environment: &str) -> (String, u64) {
        self.stage.open(&self.url(environment)).await;
        let name = self.shows("name", |text| !text.is_empty()).await;
        let player = self.stage.run("return platform.player()").await;
        assert_eq!(player["username"], name.as_str());
        let score = self.plays().await;
        self.stage.reload().await;
        self.shows("best", |text| text == format!("Best {score}"))
            .await;
        self.shows("notice", str::is_empty).await;
        (player["id"].as_str().unwrap().to_owned(), score)
    }

    /// Writes into the game that it has a backend, as the README asks for, and deploys it again.
    async fn gives_the_game_its_backend(&self) {
        let file = self.maker.file(&format!("{SLUG}/src/account.ts"));
        let text = std::fs::read_to_string(&file).unwrap();
        let without = "const HAS_BACKEND: boolean = import.meta.env.DEV;";
        assert!(text.contains(without), "{text}");
        let with = "const HAS_BACKEND: boolean = true;";
        std::fs::write(&file, text.replace(without, with)).unwrap();
        self.types("npm run build").await;
        self.types("platform deploy").await;
    }

    /// Opens the deployed game and plays it: the backend stores the score of exactly the token's
    /// player, for this environment.
    async fn plays_deployed(&self, environment: &str, backend: &Backend) {
        self.stage.open(&self.url(environment)).await;
        self.shows("name", |text| !text.is_empty()).await;
        let score = self.plays().await;
        let token = self
            .stage
            .run("return await platform.getAccessToken()")
            .await;
        let player = claims(token.as_str().unwrap());
        let prefix = if environment == "dev" { "dev-" } else { "" };
        assert_eq!(player.aud, format!("game:{prefix}{SLUG}"));
        kept(&backend.scores, &player.sub, score).await;
    }
}

impl Stranger {
    /// Ends everything; no page may have logged an error.
    async fn leaves(self) {
        assert_eq!(self.stage.complaints().await, [""; 0]);
        let browser = Arc::into_inner(self.stage.into_browser());
        browser.unwrap().close().await;
        self.server.stop().await;
    }
}

/// A program that runs until the end of the test.
struct Running {
    _process: Guarded,
    log: PathBuf,
}

impl Running {
    /// Waits until it prints `part`, and returns the line.
    async fn says(&self, part: &str) -> String {
        poll::until(&format!("{part:?} in {}", self.log.display()), async || {
            let text = std::fs::read_to_string(&self.log).ok()?;
            let line = text.lines().find(|line| line.contains(part))?;
            Some(line.to_owned())
        })
        .await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // npm does not forward signals to the processes that it started.
        process::kill_users_of(&self.log);
    }
}

/// A running backend, and the file of its scores.
struct Backend {
    _running: Running,
    scores: PathBuf,
    _port: ReservedPort,
}

/// Waits until a backend has stored `score` for `sub`.
async fn kept(file: &Path, sub: &str, score: u64) {
    poll::until("the score to be kept", async || {
        let scores = std::fs::read(file).ok()?;
        let scores: Value = serde_json::from_slice(&scores).ok()?;
        (scores[sub] == json!(score)).then_some(())
    })
    .await;
}

/// Runs `curl` as the documentation shows it, and returns status and response.
async fn curl(stranger: &Stranger, url: &str, token: &str) -> (u16, Value) {
    let mut command = stranger.maker.command(SLUG, "curl");
    command
        .args([
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--write-out",
            "\n%{http_code}",
        ])
        .args(["--header", &format!("Authorization: Bearer {token}"), url]);
    let output = command.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// Returns the file in which the local backend stores scores.
fn local_scores(stranger: &Stranger) -> PathBuf {
    stranger
        .maker
        .file(&format!("{SLUG}/.platform/scores.json"))
}

/// Returns the id of a test player, as the command-line tool prints it.
async fn test_player(stranger: &Stranger, player: &str) -> String {
    let text = stranger
        .types(&format!("platform test-token {player} --json"))
        .await;
    let token: Value = serde_json::from_str(&text).unwrap();
    let named = claims(token["access_token"].as_str().unwrap());
    assert_eq!(token["sub"], named.sub);
    assert_eq!(named.aud, format!("game:dev-{SLUG}"));
    named.sub
}

/// From `platform login` to a page that is served locally and says what is still missing.
async fn begins(stranger: &Stranger) -> Running {
    stranger.signs_in().await;
    let origin = stranger.site.origin.clone();
    let init = format!("platform init {SLUG} --origin {origin}");
    stranger.maker.types("", &init).await.done();
    stranger
        .types("npm install --no-audit --no-fund --prefer-offline")
        .await;
    let dev = stranger.starts("dev", "npm run --silent dev", &[("PORT", "0")]);
    let line = dev.says("Local:").await;
    let (_, url) = line.split_once("Local:").unwrap();
    let stage = &stranger.stage;
    stage.open(url.trim()).await;
    // The page says what is missing: first the project, then the deploy, which creates the test
    // players.
    let notice = stranger.shows("notice", |text| !text.is_empty()).await;
    assert!(notice.contains("platform projects create"), "{notice}");
    stranger
        .types(&format!("platform projects create {SLUG}"))
        .await;
    stage.reload().await;
    let notice = stranger.shows("notice", |text| !text.is_empty()).await;
    assert!(notice.contains("\"platform deploy\" once"), "{notice}");
    dev
}

/// Plays locally, as test guest 1 and in another tab as test user 3.
async fn plays_locally(stranger: &Stranger) {
    let stage = &stranger.stage;
    stage.reload().await;
    stranger.shows("name", |text| text == "test-guest-1").await;
    let first = stranger.plays().await;
    let guest = test_player(stranger, "1 --guest").await;
    kept(&local_scores(stranger), &guest, first).await;

    let session = &stage.browser().session;
    let here = session.current_url().await.unwrap();
    let tab = session.new_tab().await.unwrap();
    session.switch_to_window(tab).await.unwrap();
    stage.open(here.as_str()).await;
    stranger.shows("name", |text| text == "test-guest-1").await;
    stage
        .open(here.join("/__platform/login?redirect=/").unwrap().as_str())
        .await;
    let pick = "[...document.querySelectorAll('main button')].find(b => b.textContent == 'test-user-3').click()";
    poll::until("the picker", async || stage.attempt(pick).await.ok()).await;
    stranger.shows("name", |text| text == "test-user-3").await;
    stranger.shows("best", |text| text == "Best 0").await;
    let second = stranger.plays().await;
    let user = test_player(stranger, "3").await;
    assert_ne!(user, guest);
    assert_eq!(
        user,
        test_player(stranger, "3").await,
        "always the same player"
    );
    kept(&local_scores(stranger), &user, second).await;
    kept(&local_scores(stranger), &guest, first).await;
}

/// Two test players at the same time, from a terminal; they only work in dev.
async fn two_players_by_curl(stranger: &Stranger) {
    let three = stranger.types("platform test-token 3").await;
    let four = stranger.types("platform test-token 4").await;
    let url = format!("{}/api/me", stranger.url("dev"));
    let (first, second) = tokio::join!(curl(stranger, &url, &three), curl(stranger, &url, &four));
    for ((status, body), number) in [(first, 3), (second, 4)] {
        assert_eq!(status, 200, "{body}");
        assert_eq!(body["username"], format!("test-user-{number}"));
        assert_eq!(
            body["sub"],
            test_player(stranger, &number.to_string()).await
        );
    }
    let url = format!("{}/api/me", stranger.url("prod"));
    let (status, body) = curl(stranger, &url, &three).await;
    assert_eq!(status, 401, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_plays_locally_then_deploys_to_dev_and_then_to_everybody() {
    let begun = maker::now();
    let stranger = Stranger::new().await;
    let _dev = begins(&stranger).await;
    stranger.types("npm run build").await;
    let said = stranger.maker.types(SLUG, "platform deploy").await;
    assert_eq!(said.done(), stranger.url("dev"));
    assert!(!said.err.contains("warning"), "{}", said.err);
    plays_locally(&stranger).await;

    let (player, score) = stranger.plays_without_a_backend("dev").await;
    let dev = stranger.runs_backend("dev", BACKEND).await;
    stranger.gives_the_game_its_backend().await;
    // The backend gets the score that the browser has kept.
    stranger.stage.open(&stranger.url("dev")).await;
    kept(&dev.scores, &player, score).await;
    let said = stranger.types("platform deploy --env prod --yes").await;
    assert_eq!(said, stranger.url("prod"));
    let prod = stranger.runs_backend("prod", BACKEND).await;
    stranger.plays_deployed("prod", &prod).await;
    two_players_by_curl(&stranger).await;
    maker::report("from nothing to a game that others play", begun);

    stranger.leaves().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backend_in_rust_serves_the_page_once_the_verifier_is_named() {
    // Compiled once for all runs of this test.
    let target = server::target().join("template-backend");
    let mut stranger = Stranger::new().await;
    let maker = std::mem::take(&mut stranger.maker);
    stranger.maker = maker.with("CARGO_TARGET_DIR", target.to_str().unwrap());
    stranger.signs_in().await;
    let init = format!("platform init {SLUG} --origin {}", stranger.site.origin);
    stranger.maker.types("", &init).await.done();
    for line in [
        "platform projects create rings",
        "npm install --no-audit --no-fund --prefer-offline",
        "npm run build",
        "platform deploy",
    ] {
        stranger.types(line).await;
    }
    // The only change that the README asks for, and the versions of libraries that this machine
    // already has.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = |name: &str| stranger.maker.file(&format!("{SLUG}/backend-rust/{name}"));
    let manifest = std::fs::read_to_string(file("Cargo.toml")).unwrap();
    let verifier = root.join("verifier").display().to_string();
    assert!(manifest.contains("\"../../platform/verifier\""));
    let manifest = manifest.replace("../../platform/verifier", &verifier);
    std::fs::write(file("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root.join("Cargo.lock"), file("Cargo.lock")).unwrap();
    stranger
        .types("cargo build --quiet --manifest-path backend-rust/Cargo.toml")
        .await;

    let dev = stranger.starts("dev", "npm run --silent dev:rust", &[("PORT", "0")]);
    let line = dev.says("Local:").await;
    let (_, url) = line.split_once("Local:").unwrap();
    stranger.stage.open(url.trim()).await;
    stranger.shows("name", |text| text == "test-guest-1").await;
    let score = stranger.plays().await;
    let guest = test_player(&stranger, "1 --guest").await;
    kept(&local_scores(&stranger), &guest, score).await;
    drop(dev);

    // And with the environment to which it was deployed.
    let command = "cargo run --quiet --manifest-path backend-rust/Cargo.toml";
    let backend = stranger.runs_backend("dev", command).await;
    stranger.gives_the_game_its_backend().await;
    stranger.plays_deployed("dev", &backend).await;
    drop(backend);
    stranger.leaves().await;
}
