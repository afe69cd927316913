//! A new developer's first minute: the command line comes from the platform itself, by its installer
//! and by npm, into an empty home folder.

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use platform_test_ports::ReservedPort;
use platform_tests::accessibility::Look;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::newcomer::Newcomer;
use platform_tests::process::Guarded;
use platform_tests::template::Tool;
use platform_tests::{npm, poll, settings};

/// Lets Node.js find names under `localhost`, as it finds the names of a public platform.
const FINDS_LOCALHOST: &str = "--import=data:text/javascript,import%20dns%20from'node:dns';\
    const%20known=dns.lookup;\
    dns.lookup=(name,...rest)=>known(name.endsWith('.localhost')%3F'127.0.0.1':name,...rest)";

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs the installed program: its version, and the exit status of a failure.
fn assert_runs(scene: &Newcomer, program: &Path) {
    let version = scene.command(program).arg("--version").output().unwrap();
    assert_eq!(
        text(&version.stdout),
        format!("platform {}\n", env!("CARGO_PKG_VERSION")),
        "{version:?}"
    );
    let wrong = scene.command(program).arg("unknown").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    let signed_out = scene
        .command(program)
        .args(["whoami", "--origin", &scene.server.origin])
        .output()
        .unwrap();
    assert_eq!(signed_out.status.code(), Some(3), "{signed_out:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_line_in_a_shell_installs_the_command_line() {
    let scene = Newcomer::arrive().await;
    let program = scene.home().join(".local/bin/platform");
    // Again, over the first one.
    for _ in 0..2 {
        let installed = scene.install();
        assert!(installed.status.success(), "{installed:?}");
        let said = text(&installed.stdout);
        for part in [
            format!("Installed platform {} as", env!("CARGO_PKG_VERSION")),
            "to PATH: export PATH=".to_owned(),
            format!("Next: platform login --origin {}", scene.server.origin),
        ] {
            assert!(said.contains(&part), "{part}\n{said}");
        }
        assert_runs(&scene, &program);
    }
    let init = scene.command(&program).args(["init", "my-game"]).output();
    assert!(init.unwrap().status.success());
    let settings = std::fs::read_to_string(scene.home().join("my-game/platform.toml")).unwrap();
    let line = format!("origin = \"{}\"\n", scene.server.origin);
    assert!(settings.contains(&line), "{settings}");
    let folder = program.parent().unwrap();
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
    scene.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_damaged_on_its_way_is_not_installed() {
    let scene = Newcomer::arrive().await;
    let cli = scene.folder.path().join("cli");
    let files = std::fs::read_dir(&cli).unwrap();
    let archive = files
        .map(|file| file.unwrap().path())
        .find(|path| path.to_str().unwrap().ends_with(".tar.gz"))
        .unwrap();
    // In its place, so that the server, which checked it before, sends this.
    let mut bytes = std::fs::read(&archive).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&archive, bytes).unwrap();
    let installed = scene.install();
    assert!(!installed.status.success(), "{installed:?}");
    let said = text(&installed.stderr);
    assert!(said.contains("is damaged: its SHA-256 is not"), "{said}");
    assert!(!scene.home().join(".local").exists());
    scene.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn npm_installs_the_command_line() {
    let scene = Newcomer::arrive().await;
    let address = format!("{}/cli/platform.tgz", scene.server.origin);
    let prefix = scene.folder.path().join("prefix");
    let installed = scene
        .command(settings::program("NPM", &["npm"]))
        .args(["install", "--global", "--no-audit", "--no-fund"])
        .args(["--ignore-scripts", "--prefix"])
        .arg(&prefix)
        .arg(&address)
        .env("NODE_OPTIONS", FINDS_LOCALHOST)
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    assert_runs(&scene, &prefix.join("bin/platform"));
    scene.server.stop().await;
}

/// A game with Vite, whose settings are those of the platform's page.
#[tokio::test(flavor = "multi_thread")]
async fn npm_installs_the_plugin_for_vite_whose_dev_server_has_test_players() {
    let scene = Newcomer::arrive().await;
    let origin = &scene.server.origin;
    let shown = scene
        .command("curl")
        .args(["-fsSL", &format!("{origin}/cli")])
        .output()
        .unwrap();
    let config = text(&shown.stdout)
        .split("<pre><code>")
        .find(|part| part.contains("vite-plugin-platform\";"))
        .and_then(|part| part.split_once("</code>"))
        .unwrap()
        .0;
    let game = scene.home();
    let write = |name: &str, content: &str| std::fs::write(game.join(name), content).unwrap();
    write("package.json", r#"{ "type": "module" }"#);
    write("index.html", "<!doctype html><title>Rings</title>");
    write("vite.config.js", config);
    let installed = scene
        .command(settings::program("NPM", &["npm"]))
        // Vite is there already, below.
        .args(["install", "--save-dev", "--legacy-peer-deps"])
        .args(["--no-audit", "--no-fund", "--ignore-scripts"])
        .arg(format!("{origin}/cli/vite-plugin-platform.tgz"))
        .env("NODE_OPTIONS", FINDS_LOCALHOST)
        .output()
        .unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let vite = npm::packages("foreign-games")
        .await
        .join("node_modules/vite");
    std::os::unix::fs::symlink(&vite, game.join("node_modules/vite")).unwrap();

    let tool = Tool::make(&scene.folder.path().join("tool"));
    tool.prints("runtime", "/* the runtime */");
    tool.prints("user-3", r#"{"access_token":"of-user-3"}"#);
    let reserved = ReservedPort::take().unwrap();
    let port = reserved.number().to_string();
    let mut command = scene.command(settings::program("NODE", &["node"]));
    command
        .arg(vite.join("bin/vite.js"))
        .args(["--host", "127.0.0.1", "--strictPort", "--port", &port])
        .env("PATH", tool.path())
        .stdout(Stdio::null());
    let _server = Guarded::start(&mut command);
    let address = format!("http://127.0.0.1:{port}/__platform");
    let client = reqwest::Client::new();
    let login = poll::until("Vite", async || {
        let answer = client.get(format!("{address}/login")).send().await.ok()?;
        answer.text().await.ok()
    });
    assert!(login.await.contains("/__platform/runtime.js"));
    let runtime = client.get(format!("{address}/runtime.js")).send().await;
    assert_eq!(runtime.unwrap().text().await.unwrap(), "/* the runtime */");
    let token = client.post(format!("{address}/token/user/3"));
    let token = token.header("sec-fetch-site", "same-origin").send().await;
    let token = token.unwrap().text().await.unwrap();
    assert_eq!(token, r#"{"access_token":"of-user-3"}"#);
    scene.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_no_barrier() {
    let scene = Newcomer::arrive().await;
    let stage = Stage::new(Arc::new(Browser::start(Engine::Chromium).await));
    stage.open(&format!("{}/cli", scene.server.origin)).await;
    stage.says("All sums").await;
    for look in Look::of(stage.engine()) {
        stage.show_as(*look).await;
        let barriers = stage.barriers().await;
        assert!(barriers.is_empty(), "{look:?}:\n{}", barriers.join("\n"));
    }
    assert_eq!(stage.complaints().await, [""; 0]);
    let browser = Arc::into_inner(stage.into_browser());
    browser.unwrap().close().await;
    scene.server.stop().await;
}
