//! Programs from npm, each installed exactly as its lock file says.

use std::path::{Path, PathBuf};

use tokio::process::Command;
use tokio::sync::Mutex;

use crate::{server, settings};

/// Inside `node_modules`, the lock file that it was installed from, as
/// `cargo xtask` leaves it there too.
const INSTALLED_LOCK: &str = "node_modules/.installed-package-lock.json";

/// One installation or build at a time: the tests of one program run beside
/// each other and share the folders.
static TURN: Mutex<()> = Mutex::const_new(());

/// The folder `name` of this crate, with the npm packages of its lock file.
///
/// # Panics
/// When they cannot be installed.
pub async fn packages(name: &str) -> PathBuf {
    let _turn = TURN.lock().await;
    install(name).await
}

/// The games in `engines`, each a folder that can be deployed as it is: built
/// anew where a source is newer.
///
/// # Panics
/// When they cannot be built.
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

/// A game as others build it, in a folder that can be deployed but for the tag:
/// built anew where a source is newer.
///
/// # Panics
/// When it cannot be built.
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

/// The game in Rust is compiled beside everything else, and made fit for the web
/// by the wasm-bindgen that `cargo xtask` keeps.
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

/// When the newest file in `path` was written, or `path` itself.
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
