//! A game in Rust with the crate `platform-game`: compiled, deployed and played.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use platform_tests::backend::{Answer, Backend};
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::maker::Maker;
use platform_tests::owner::Owner;
use platform_tests::platform::Site;
use platform_tests::server::{self, Server};
use platform_tests::sign_in::Way;
use platform_tests::visitor::claims;
use platform_tests::{poll, settings};
use serde_json::Value;
use tempfile::TempDir;

const SLUG: &str = "spark-catcher";
const SCORE: &str = "/api/score";

/// An answer of the backend in JSON.
const fn says(body: &'static str) -> Answer {
    Answer {
        status: 200,
        headers: &[("content-type", "application/json")],
        body,
    }
}

/// Refuses a call for the moment.
const STARTING: Answer = Answer {
    status: 503,
    headers: &[("content-type", "application/problem+json")],
    body: r#"{"title":"Starting","status":503,"detail":"The backend starts."}"#,
};

/// Builds the game into `folder`, as a developer does: with cargo and wasm-bindgen.
fn build_into(folder: &Path) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../game/example");
    let target = server::target();
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--release", "--quiet", "--package", SLUG])
        .args(["--target", "wasm32-unknown-unknown", "--target-dir"])
        .arg(&target)
        // The profile of a project of its own: this workspace's optimises the whole program at once.
        .envs([
            ("CARGO_PROFILE_RELEASE_LTO", "false"),
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
        ])
        .current_dir(&example);
    for name in settings::set_by_cargo() {
        cargo.env_remove(name);
    }
    assert!(cargo.status().unwrap().success());
    let module = target.join("wasm32-unknown-unknown/release/spark_catcher.wasm");
    let mut glue = Command::new(settings::program("WASM_BINDGEN", &["wasm-bindgen"]));
    glue.args(["--target", "web", "--no-typescript", "--out-dir"]);
    let glue = glue.arg(folder.join("pkg")).arg(module).status();
    assert!(glue.unwrap().success());
    std::fs::copy(example.join("index.html"), folder.join("index.html")).unwrap();
}

/// The game on a platform, with a backend.
struct Scene {
    site: Site,
    backend: Backend,
    _server: Server,
    _data: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let data = TempDir::with_prefix("platform-tests-").unwrap();
        let game = data.path().join("game");
        std::fs::create_dir(&game).unwrap();
        let built: PathBuf = game.clone();
        let building = tokio::task::spawn_blocking(move || build_into(&built));
        building.await.unwrap();
        let server = Server::start(&data.path().join("platform")).await;
        let site = Site::from(&server);
        let backend = Backend::listen().await;
        let owner = Owner::sign_in(&site, "Ada").await;
        let maker = Maker::new()
            .with("PLATFORM_ORIGIN", &site.origin)
            .with("PLATFORM_TOKEN", &owner.token)
            .with("PLATFORM_PROJECT", SLUG);
        for line in [
            format!("platform projects create {SLUG}"),
            format!("platform deploy {} --env prod --yes", game.display()),
            format!("platform backend set {} --env prod --yes", backend.url()),
        ] {
            let said = maker.types("", &line).await;
            said.done();
            assert!(!said.err.contains("warning:"), "{}", said.err);
        }
        Self {
            site,
            backend,
            _server: server,
            _data: data,
        }
    }

    /// Waits until the game says this.
    async fn says(&self, stage: &Stage, words: &str) {
        poll::until(&format!("the game to say {words:?}"), async || {
            let ask = "return document.body?.dataset.state ?? ''";
            let said = stage.attempt(ask).await;
            (said.ok()? == words).then_some(())
        })
        .await;
    }
}

async fn press_space(stage: &Stage) {
    let keys = stage.browser().session.action_chain();
    keys.send_keys(' '.to_string()).perform().await.unwrap();
}

/// Plays a round, and returns the guest who played it.
async fn plays_a_round(scene: &Scene, stage: &Stage) -> Value {
    let before = scene.backend.calls(SCORE).len();
    let answers = [
        STARTING,
        says(r#"{"best":120}"#),
        STARTING,
        says(r#"{"best":290}"#),
    ];
    scene.backend.answer(SCORE, answers);
    // Browsers log a refused call themselves.
    stage.tolerate_log("503");
    stage.open(&scene.site.url(SLUG, "/")).await;
    scene.says(stage, "A guest with 120 points is ready.").await;
    let player = stage.run("return platform.player()").await;
    let name = "return document.getElementById('name').textContent";
    assert_eq!(stage.run(name).await, player["username"]);

    press_space(stage).await;
    scene.says(stage, "Caught 1.").await;
    press_space(stage).await;
    scene.says(stage, "Caught 2.").await;
    press_space(stage).await;
    scene.says(stage, "The best round has 290 points.").await;
    let calls = scene.backend.calls(SCORE).split_off(before);
    let methods: Vec<_> = calls.iter().map(|call| call.method.as_str()).collect();
    assert_eq!(methods, ["GET", "GET", "PUT", "PUT"]);
    for call in &calls {
        assert_eq!(claims(call.token().unwrap()).sub, player["id"]);
    }
    let played: Value = serde_json::from_slice(&calls[3].body).unwrap();
    assert!(played["points"].as_u64().unwrap() > 0, "{played}");
    assert_eq!(calls[3].headers["content-type"], "application/json");
    player
}

/// Signs in from the game and out of it.
async fn comes_and_goes(scene: &Scene, stage: &Stage, guest: &Value) {
    let home = scene.site.url(SLUG, "/");
    scene.backend.answer(SCORE, [says(r#"{"best":290}"#)]);
    stage.press("Log in").await;
    Way::BuiltIn.choose(stage).await;
    stage.fill("Name", "Grace").await;
    stage.press("Sign in").await;
    stage.arrives_at(&home).await;
    scene
        .says(stage, "A player with 290 points is ready.")
        .await;
    let player = stage.run("return platform.player()").await;
    assert_eq!(player["id"], guest["id"], "the guest keeps the id");

    scene.backend.answer(SCORE, [says(r#"{"best":0}"#)]);
    let sign_out = "document.getElementById('sign-out').click()";
    stage.loads_again_by(sign_out).await;
    scene.says(stage, "A guest with 0 points is ready.").await;
    let other = stage.run("return platform.player()").await;
    assert_ne!(other["id"], guest["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_game_in_rust_knows_its_player_and_calls_its_backend() {
    let scene = Scene::new().await;
    // In Chromium alone: the crate calls the runtime, which the browser tests run in every engine.
    let stage = Stage::new(Arc::new(Browser::start(Engine::Chromium).await));
    let guest = plays_a_round(&scene, &stage).await;
    comes_and_goes(&scene, &stage, &guest).await;

    // A refusal for good is shown to the player, and not tried again.
    let full = Answer {
        status: 409,
        body: r#"{"type":"urn:mine:full","detail":"The list is full."}"#,
        ..STARTING
    };
    let before = scene.backend.calls(SCORE).len();
    scene.backend.answer(SCORE, [full]);
    stage.tolerate_log("409");
    stage.reload().await;
    scene.says(&stage, "The list is full.").await;
    assert_eq!(scene.backend.calls(SCORE).len(), before + 1);
    assert_eq!(stage.complaints().await, [""; 0]);
    let browser = Arc::into_inner(stage.into_browser());
    browser.unwrap().close().await;
}
