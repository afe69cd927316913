//! Games with third-party engines, built with the usual tools: deployed with the command-line tool
//! and played, unchanged except for the tag.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports by failing"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform_protocol::paths;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::maker::{self, Maker, Said};
use platform_tests::owner::Owner;
use platform_tests::platform::Site;
use platform_tests::server::Server;
use platform_tests::visitor::claims;
use platform_tests::{npm, poll};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

/// The tag that the documentation tells a game developer to add.
const TAG: &str = r#"<script defer src="/__platform/runtime.js"></script>"#;

/// A game on its own platform.
struct Game {
    slug: &'static str,
    maker: Maker,
    owner: Owner,
    _server: Server,
    site: Site,
    data: TempDir,
}

impl Game {
    /// Creates a platform, an account on it, and its new project.
    async fn new(slug: &'static str) -> Self {
        let data = TempDir::with_prefix("platform-tests-").unwrap();
        let server = Server::start(&data.path().join("platform")).await;
        let site = Site::from(&server);
        let owner = Owner::sign_in(&site, "Ada").await;
        let maker = Maker::new()
            .with("PLATFORM_ORIGIN", &site.origin)
            .with("PLATFORM_TOKEN", &owner.token)
            .with("PLATFORM_PROJECT", slug);
        maker
            .types("", &format!("platform projects create {slug}"))
            .await
            .done();
        Self {
            slug,
            maker,
            owner,
            _server: server,
            site,
            data,
        }
    }

    fn url(&self, path: &str) -> String {
        self.site.url(self.slug, path)
    }

    /// Deploys the game as it was built, with a warning, and then with the tag, without a warning.
    /// Returns the deployed folder.
    async fn deploy(&self) -> PathBuf {
        let folder = self.data.path().join("game");
        copy(&npm::foreign_game(self.slug).await, &folder);
        let command = format!("platform deploy {} --env prod --yes", folder.display());

        let Said { code, out, err } = self.maker.types("", &command).await;
        assert_eq!((code, out), (0, format!("{}\n", self.url(""))), "{err}");
        let warnings = |err: &str| -> Vec<String> {
            let lines = err.lines().filter(|line| line.starts_with("warning:"));
            lines.map(str::to_owned).collect()
        };
        let [warning] = &warnings(&err)[..] else {
            panic!("one warning was to come: {err}");
        };
        assert!(warning.ends_with("(runtime-not-loaded)"), "{warning}");

        let page = folder.join("index.html");
        let text = std::fs::read_to_string(&page).unwrap();
        assert_eq!(text.matches("<head>").count(), 1);
        let text = text.replace("<head>", &format!("<head>\n    {TAG}"));
        std::fs::write(&page, text).unwrap();
        let Said { code, out, err } = self.maker.types("", &command).await;
        assert_eq!((code, out), (0, format!("{}\n", self.url(""))), "{err}");
        assert_eq!(warnings(&err), [""; 0], "{err}");
        folder
    }

    /// Opens the game and waits until it shows `state`.
    async fn open(&self, stage: &Stage, state: &str) {
        stage.open(&self.url("/")).await;
        is_in(stage, state).await;
    }

    /// Checks everything that the page loaded: it exists, has its media type, and the player is
    /// known.
    async fn judge(&self, stage: &Stage) {
        let mut loaded = loaded(stage).await;
        // On a busy machine the page is open long enough for a heartbeat, which is no file.
        loaded.retain(|resource| resource.path != paths::HEARTBEAT);
        assert!(loaded.len() >= 2, "{loaded:?}");
        for resource in &loaded {
            assert_eq!(resource.status, 200, "{resource:?}");
        }
        let client = reqwest::Client::new();
        for Resource { path, .. } in &loaded {
            let url = format!("http://{}{path}", self.site.address);
            let ask = |request: reqwest::RequestBuilder| {
                request.header("host", self.site.host(self.slug)).send()
            };
            let answer = ask(client.get(&url)).await.unwrap();
            let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(header("content-type"), media_type(path), "{path}");
            let again = client.get(&url).header("if-none-match", header("etag"));
            assert_eq!(ask(again).await.unwrap().status(), 304, "{path}");
        }
        let token = "return await platform.getAccessToken()";
        let token = stage.run(token).await;
        let player = claims(token.as_str().unwrap());
        assert_eq!(player.aud, format!("game:{}", self.slug));
        assert!(player.is_anon);
        assert_eq!(player.iss, self.site.url("auth", ""));
    }

    /// Opens the game twice more: everything that it loaded before comes from the browser's cache,
    /// or is not sent again. A file may be sent a second time after the platform has compressed it,
    /// which happens after the first request.
    async fn again(&self, stage: &Stage, state: &str) {
        poll::until("nothing to be sent again", async || {
            stage.open("about:blank").await;
            self.open(stage, state).await;
            let kept = |resource: &Resource| resource.transferred <= HEAD;
            // Firefox counts responses that were not sent again (304) as sent.
            let counts = stage.engine() != Engine::Firefox;
            (!counts || loaded(stage).await.iter().all(kept)).then_some(())
        })
        .await;
    }
}

/// What browsers count for a response without a body: they report 300 bytes.
const HEAD: u64 = 300;

/// A resource that a page loaded from its own origin, as it reports itself (Resource Timing).
#[derive(Debug, Deserialize)]
struct Resource {
    path: String,
    status: u16,
    transferred: u64,
}

async fn loaded(stage: &Stage) -> Vec<Resource> {
    let list = "const entries = [...performance.getEntriesByType('navigation'),
            ...performance.getEntriesByType('resource')];
        return entries.filter(entry => new URL(entry.name).origin === location.origin).map(entry => ({
            path: new URL(entry.name).pathname,
            status: entry.responseStatus,
            transferred: entry.transferSize,
        }))";
    serde_json::from_value(stage.run(list).await).unwrap()
}

/// Waits until the game reports that it is in `state`.
async fn is_in(stage: &Stage, state: &str) {
    let ask = "return document.body?.dataset.state ?? document.body?.innerText ?? ''";
    poll::until(&format!("the game to be in {state:?}"), async || {
        let said = stage.attempt(ask).await.ok()?;
        (said.as_str()?.contains(state)).then_some(())
    })
    .await;
}

/// Returns the media type that browsers require.
fn media_type(path: &str) -> &'static str {
    match Path::new(path).extension().and_then(|end| end.to_str()) {
        None | Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("json") => "application/json; charset=utf-8",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("wav") => "audio/wav",
        Some(other) => panic!("{other} is not in the list"),
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs a test in a new browser, and asserts at the end that no page logged an error.
async fn in_browser(engine: Engine, play: impl AsyncFnOnce(&Stage)) {
    let begun = maker::now();
    let stage = Stage::new(Arc::new(Browser::start(engine).await));
    play(&stage).await;
    assert_eq!(stage.complaints().await, [""; 0], "{engine}");
    maker::report(&format!("played in {engine}"), begun);
    Arc::into_inner(stage.into_browser()).unwrap().close().await;
}

async fn press(stage: &Stage, key: impl Into<char>) {
    let keys = stage.browser().session.action_chain();
    keys.send_keys(key.into().to_string())
        .perform()
        .await
        .unwrap();
}

async fn click(stage: &Stage) {
    let mouse = stage.browser().session.action_chain();
    mouse.move_to(120, 120).click().perform().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn phaser_built_by_vite_plays_with_pictures_a_level_and_a_sound() {
    let game = Game::new("phaser").await;
    game.deploy().await;
    for engine in [Engine::Chromium, Engine::Firefox] {
        in_browser(engine, async |stage| {
            game.open(stage, "ready").await;
            game.judge(stage).await;
            press(stage, thirtyfour::Key::Right).await;
            is_in(stage, "gathered 1").await;
            game.again(stage, "ready").await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_built_by_vite_shares_memory_with_a_worker_once_its_pages_are_isolated() {
    let game = Game::new("three").await;
    game.deploy().await;
    in_browser(Engine::Chromium, async |stage| {
        game.open(stage, "needs isolation").await;
        let path = format!("/api/projects/{}/environments/prod/isolation", game.slug);
        let wanted = json!({ "cross_origin_isolated": true });
        let (status, body) = game.owner.ask(Method::PUT, &path, Some(wanted)).await;
        assert_eq!(status, 200, "{body}");

        game.open(stage, "blasts 0, drawn true").await;
        assert_eq!(stage.run("return crossOriginIsolated").await, json!(true));
        game.judge(stage).await;
        press(stage, ' ').await;
        is_in(stage, "blasts 1").await;
        game.again(stage, "blasts 0, drawn true").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_game_in_rust_is_compiled_while_it_is_streamed() {
    let game = Game::new("wasm").await;
    game.deploy().await;
    for engine in [Engine::Chromium, Engine::Firefox] {
        in_browser(engine, async |stage| {
            // Its glue only warns if it falls back to compiling later.
            game.open(stage, "0 stones").await;
            game.judge(stage).await;
            let streamed = "const module = await WebAssembly.compileStreaming(fetch('pkg/stone_drop_bg.wasm'));
                return WebAssembly.Module.exports(module).length > 0";
            assert_eq!(stage.run(streamed).await, json!(true));
            click(stage).await;
            is_in(stage, "1 stones, 1 at rest").await;
            game.again(stage, "0 stones").await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_in_a_single_page_is_told() {
    let game = Game::new("story").await;
    let folder = game.deploy().await;
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
    for engine in [Engine::Chromium, Engine::Firefox] {
        in_browser(engine, async |stage| {
            game.open(stage, "a ship is near").await;
            game.judge(stage).await;
            stage.press("Look for oil").await;
            is_in(stage, "under the stairs").await;
            stage.press("Light the lamp").await;
            is_in(stage, "1 can of oil was enough").await;
            game.again(stage, "a ship is near").await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_game_of_two_thousand_files_has_every_one_of_them() {
    let game = Game::new("many").await;
    game.deploy().await;
    let (_, project) = game
        .owner
        .ask(Method::GET, "/api/projects/many", None)
        .await;
    let files = &project["environments"]["prod"]["deployment"]["files"];
    assert!(files.as_u64().unwrap() >= 2_000, "{project}");
    in_browser(Engine::Chromium, async |stage| {
        game.open(stage, "room 0, 0 stones, picture 8").await;
        game.judge(stage).await;
        click(stage).await;
        is_in(stage, "room 1, 7 stones, picture 8").await;
        game.again(stage, "room 0, 0 stones, picture 8").await;
        let all = "const missing = [];
            const rooms = Array.from({ length: 100 }, (_, room) => WING * 100 + room);
            const walk = async () => {
                for (let room; (room = rooms.pop()) !== undefined;) {
                    const at = `rooms/${Math.floor(room / 100)}/${room}`;
                    const map = await fetch(`${at}.json`);
                    if ((await map.json()).room !== room) missing.push(`${at}.json`);
                    const picture = await fetch(`${at}.svg`);
                    if (!(await picture.text()).includes(`hsl(${room % 360} `)) missing.push(`${at}.svg`);
                }
            };
            await Promise.all(Array.from({ length: 6 }, walk));
            return missing";
        for wing in 0..10 {
            let all = all.replace("WING", &wing.to_string());
            assert_eq!(stage.run(&all).await, json!([]));
        }
    })
    .await;
}
