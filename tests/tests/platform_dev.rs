//! `platform dev` as a game developer uses it: the real command line with the real platform, a Vite
//! project without a plugin, a plain folder, and a browser. In Chromium only: what differs between
//! engines is the runtime's part, and `browsers/local.rs` tests it.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use platform_test_ports::ReservedPort;
use platform_tests::backend::Backend;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::person::Person;
use platform_tests::platform::Platform;
use platform_tests::process::Guarded;
use platform_tests::terminal::{self, Dev, Terminal};
use platform_tests::visitor::claims;
use platform_tests::{npm, poll, settings};
use serde_json::json;
use tokio::net::TcpListener;

/// The page of a Vite project, and of a plain game. Its icon is empty, so that no browser requests one.
const PAGE: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Rings</title>\
    <link rel=\"icon\" href=\"data:,\">\
    <script defer src=\"/__platform/runtime.js\" vite-ignore></script></head>\
    <body><p id=\"word\"></p><script type=\"module\" src=\"/src/main.js\"></script></body></html>";
/// A game that shows a word, and takes another one without a reload, as Vite's documentation shows.
const MAIN: &str = "import { word } from './word.js';
const show = (word) => { document.getElementById('word').textContent = word; };
show(word);
import.meta.hot?.accept('./word.js', (changed) => show(changed.word));
";

/// A platform with the deployed game `rings`, and its developer.
struct Scene {
    platform: Platform,
    terminal: Terminal,
    stage: Stage,
}

impl Scene {
    async fn new() -> Self {
        let platform = Platform::start(&[]).await;
        let mut person = Person::new(&platform.site);
        let redirect = platform.site.url("demo", "/");
        terminal::sign_in(&mut person, "ada", &redirect).await;
        let terminal = Terminal::of(&platform.site);
        let _ = terminal.log_in(&mut person).await;
        let _ = terminal.done(&["projects", "create", "rings"]).await;
        terminal.write("rings/platform.toml", "slug = \"rings\"\n");
        terminal.write("built/index.html", PAGE);
        let _ = terminal.done(&["deploy", "built", "-p", "rings"]).await;
        let browser = Browser::start(Engine::Chromium).await;
        Self {
            platform,
            terminal,
            stage: Stage::new(Arc::new(browser)),
        }
    }

    /// Writes an existing Vite project, which knows nothing of the platform but the tag.
    async fn write_vite_project(&self) {
        let packages = npm::packages("bundlers").await.join("node_modules");
        let terminal = &self.terminal;
        let scripts = json!({ "type": "module", "scripts": { "dev": "vite" } });
        terminal.write("rings/package.json", &scripts.to_string());
        // The packages are shared with other tests.
        let config = "export default { cacheDir: '.vite' };\n";
        terminal.write("rings/vite.config.js", config);
        terminal.write("rings/index.html", PAGE);
        terminal.write("rings/src/main.js", MAIN);
        terminal.write("rings/src/word.js", "export const word = 'one';\n");
        std::os::unix::fs::symlink(packages, terminal.path("rings/node_modules")).unwrap();
    }

    /// Waits until the page shows `word`.
    async fn shows(&self, word: &str) {
        poll::until(&format!("the page shows {word}"), async || {
            let text = "return document.getElementById('word').textContent";
            let text = self.stage.attempt(text).await.ok()?;
            (text == word).then_some(())
        })
        .await;
    }

    /// Calls the backend, and asserts that it sees `player`, of the dev environment.
    async fn is(&self, player: &str, backend: &Backend) {
        let before = backend.calls("/api/me").len();
        let script = "return (await platform.fetch('/api/me')).status";
        assert_eq!(self.stage.run(script).await, 200);
        let calls = backend.calls("/api/me");
        assert_eq!(calls.len(), before + 1);
        let seen = claims(calls[before].token().unwrap());
        assert_eq!(
            (seen.username.as_str(), seen.aud.as_str()),
            (player, "game:dev-rings")
        );
    }

    /// Picks a test player on the page for it.
    async fn pick(&self, dev: &Dev, player: &str) {
        let login = format!("{}/__platform/login?redirect=/", dev.url);
        self.stage.open(&login).await;
        let press = format!(
            "[...document.querySelectorAll('button')].find(b => b.textContent == '{player}').click()"
        );
        let pressed = poll::until("the page to pick a player on", async || {
            self.stage.attempt(&press).await.ok()
        });
        pressed.await;
        self.stage.arrives_at(&format!("{}/", dev.url)).await;
    }

    /// Plays a Vite project: its own hot reload works, and each tab is another player.
    async fn plays_with_vite(&self, dev: &Dev, backend: &Backend) {
        self.stage.open(&dev.url).await;
        self.shows("one").await;
        self.is("test-guest-1", backend).await;
        self.stage.run("window.isSame = true").await;
        let word = "export const word = 'two';\n";
        self.terminal.write("rings/src/word.js", word);
        self.shows("two").await;
        let same = self.stage.run("return window.isSame").await;
        assert_eq!(same, true, "Vite changes a module without a reload");

        let session = &self.stage.browser().session;
        let first = session.window().await.unwrap();
        let tab = session.new_tab().await.unwrap();
        session.switch_to_window(tab).await.unwrap();
        self.pick(dev, "test-user-3").await;
        self.is("test-user-3", backend).await;
        session.switch_to_window(first).await.unwrap();
        self.is("test-guest-1", backend).await;
    }

    /// Ends everything; no page may have logged a warning.
    async fn end(self) {
        assert_eq!(self.stage.complaints().await, [""; 0]);
        let browser = Arc::into_inner(self.stage.into_browser());
        browser.unwrap().close().await;
        drop(self.platform);
    }
}

/// The port of an address at the end of a line.
fn port_after(said: &str, words: &str) -> u16 {
    assert!(said.contains(words), "{said}");
    let (_, rest) = said.split_once(words).unwrap();
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    digits.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vite_project_is_started_played_and_ended_with_one_command() {
    let scene = Scene::new().await;
    scene.write_vite_project().await;
    let backend = Backend::listen().await;
    let url = backend.url();
    let arguments = ["--backend", &url, "--", "npx", "vite"];
    let mut dev = scene.terminal.dev("rings", &arguments).await;
    scene.plays_with_vite(&dev, &backend).await;
    let said = dev.said();
    let vite = port_after(&said, "passed on to http://localhost:");
    let answers = |port: u16| TcpStream::connect(("localhost", port)).is_ok();
    assert!(answers(vite), "{said}");
    assert!(!said.contains("warning:"), "{said}");
    dev.interrupt().await;
    assert!(!answers(vite), "Vite has ended as well");
    // Vite's client asks whether its server is there again.
    for part in ["WebSocket connection", "ERR_CONNECTION_REFUSED", "[vite]"] {
        scene.stage.tolerate_log(part);
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vite_that_runs_already_is_played_with_to() {
    let scene = Scene::new().await;
    scene.write_vite_project().await;
    let backend = Backend::listen().await;
    let reserved = ReservedPort::take().unwrap();
    let port = reserved.number();
    let mut vite = Command::new(settings::program("NODE", &["node"]));
    vite.arg("node_modules/vite/bin/vite.js")
        .args(["--strictPort", "--port", &port.to_string()])
        .current_dir(scene.terminal.path("rings"))
        .stdout(Stdio::null());
    let _vite = Guarded::start(&mut vite);
    poll::until("Vite", async || {
        TcpStream::connect(("localhost", port)).ok()
    })
    .await;
    let to = format!("http://localhost:{port}");
    let dev = scene
        .terminal
        .dev("rings", &["--to", &to, "--backend", &backend.url()])
        .await;
    scene.plays_with_vite(&dev, &backend).await;
    scene.end().await;
}

/// A WebSocket server that repeats what it hears, and returns its address.
async fn parrot() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
                continue;
            };
            tokio::spawn(async move {
                while let Some(Ok(message)) = socket.next().await {
                    if message.is_text() && socket.send(message).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_folder_is_played_and_reloaded() {
    let scene = Scene::new().await;
    let page = |word: &str| {
        let page = PAGE.replace("<p id=\"word\">", &format!("<p id=\"word\">{word}"));
        page.replace("<script type=\"module\" src=\"/src/main.js\"></script>", "")
    };
    scene.terminal.write("rings/dist/index.html", &page("one"));
    let parrot = parrot().await;
    let arguments = ["--backend", &parrot, "--path", "/play"];
    let dev = scene.terminal.dev("rings", &arguments).await;
    let stage = &scene.stage;
    scene.pick(&dev, "test-user-7").await;
    scene.shows("one").await;
    let heard = stage
        .run(
            "const socket = new WebSocket(`ws://${location.host}/play`);
             await new Promise(open => { socket.onopen = open; });
             const heard = new Promise(hear => { socket.onmessage = hear; });
             socket.send('hello');
             return (await heard).data;",
        )
        .await;
    assert_eq!(heard, "hello");
    scene.terminal.write("rings/dist/index.html", &page("two"));
    scene.shows("two").await;
    let name = "const token = await platform.getAccessToken();
        return JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))).username";
    assert_eq!(
        stage.run(name).await,
        "test-user-7",
        "the tab keeps its player"
    );
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_site_in_the_same_browser_gets_no_token() {
    let scene = Scene::new().await;
    scene.terminal.write("rings/dist/index.html", PAGE);
    let dev = scene.terminal.dev("rings", &[]).await;
    // A page of another port of this machine is as foreign as one of another site.
    let foreign = Backend::listen().await;
    let stage = &scene.stage;
    stage.open(&format!("{}/page", foreign.url())).await;
    let token = format!("{}/__platform/token/user/3", dev.url);
    let read = format!("return await (await fetch('{token}', {{ method: 'POST' }})).text()");
    assert_eq!(stage.refused(&read).await.name, "TypeError");
    let sent =
        format!("return (await fetch('{token}', {{ method: 'POST', mode: 'no-cors' }})).type");
    assert_eq!(
        stage.run(&sent).await,
        "opaque",
        "and nothing of it can be read"
    );
    for part in ["CORS policy", "ERR_FAILED", "403"] {
        stage.tolerate_log(part);
    }
    scene.end().await;
}
