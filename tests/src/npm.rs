//! Programs from npm, each installed exactly from its lock file.

use std::path::{Path, PathBuf};

use tokio::process::Command;
use tokio::sync::Mutex;

use crate::{server, settings};

/// A copy inside `node_modules` of the lock file from which it was installed; `cargo xtask` leaves
/// it there, too.
const INSTALLED_LOCK: &str = "node_modules/.installed-package-lock.json";

/// Allows one installation or build at a time: the tests of one program run in parallel and share
/// the folders.
static TURN: Mutex<()> = Mutex::const_new(());

/// Returns the folder `name` of this crate, with the npm packages of its lock file installed.
///
/// # Panics
/// Panics if they cannot be installed.
pub async fn packages(name: &str) -> PathBuf {
    let _turn = TURN.lock().await;
    install(name).await
}

/// Returns the games in `engines`, each a folder that can be deployed as it is. They are built
/// again if a source is newer.
///
/// # Panics
/// Panics if they cannot be built.
pub async fn games() -> PathBuf {
    let _turn = TURN.lock().await;
    let folder = install("engines").await;
    let dist = folder.join("dist");
    let built = ["excalibur", "phaser", "pixi"]
        .iter()
        .map(|engine| age(&dist.join(engine).join("game.js")))
        .min()
        .flatten();
    let sources = ["build.mjs", "page.html", "package-lock.json"].map(|file| folder.join(file));
    let modules = std::fs::read_dir(folder.join("src")).into_iter().flatten();
    let newest = modules
        .flatten()
        .map(|module| module.path())
        .chain(sources)
        .filter_map(|file| age(&file))
        .max();
    if built.is_none() || built < newest {
        run(&folder, &["run", "--silent", "build"]).await;
    }
    dist
}

/// Returns a game from another tool, in a folder that can be deployed except for the missing tag.
/// It is built again if a source is newer.
///
/// # Panics
/// Panics if it cannot be built.
pub async fn foreign_game(name: &str) -> PathBuf {
    let _turn = TURN.lock().await;
    let folder = install("foreign-games").await;
    let sources = [name, "build.mjs", "package-lock.json"].map(|source| folder.join(source));
    let newest = sources.iter().filter_map(|source| newest(source)).max();
    let built = age(&folder.join("dist").join(format!(".built-{name}")));
    if built.is_none() || built < newest {
        let mut build = Command::new(settings::program("NODE", &["node"]));
        build.arg("build.mjs").arg(name).current_dir(&folder);
        if name == "wasm" {
            add_wasm_tools(&mut build);
        }
        let status = build.status().await;
        assert!(
            status.is_ok_and(|status| status.success()),
            "{name} does not build: node build.mjs {name} in {}",
            folder.display()
        );
    }
    folder.join("dist").join(name)
}

/// Sets up the tools for the game in Rust: it is compiled into the common target folder, and
/// processed by the wasm-bindgen that `cargo xtask` installs.
fn add_wasm_tools(build: &mut Command) {
    build
        .env(
            "WASM_BINDGEN",
            settings::program("WASM_BINDGEN", &["wasm-bindgen"]),
        )
        .env("STONE_DROP_TARGET", server::target());
    for name in settings::set_by_cargo() {
        build.env_remove(name);
    }
}

/// Returns when the newest file in `path`, or `path` itself, was written.
fn newest(path: &Path) -> Option<std::time::SystemTime> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return age(path);
    };
    entries
        .flatten()
        .filter_map(|entry| newest(&entry.path()))
        .max()
}

async fn install(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let wanted = std::fs::read(folder.join("package-lock.json")).expect("a lock file");
    let marker = folder.join(INSTALLED_LOCK);
    if std::fs::read(&marker).ok().as_ref() != Some(&wanted) {
        run(&folder, &["ci", "--no-audit", "--no-fund"]).await;
        std::fs::write(&marker, wanted).expect("npm made the folder");
    }
    folder
}

fn age(path: &Path) -> Option<std::time::SystemTime> {
    std::fs::metadata(path)
        .and_then(|file| file.modified())
        .ok()
}

async fn run(folder: &Path, arguments: &[&str]) {
    let npm = settings::program("NPM", &["npm"]);
    let status = Command::new(npm)
        .args(arguments)
        .current_dir(folder)
        .status()
        .await;
    assert!(
        status.is_ok_and(|status| status.success()),
        "npm {} failed in {}",
        arguments.join(" "),
        folder.display()
    );
}
