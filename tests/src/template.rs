//! The template as a game developer uses it: copied, installed, and served by its own `npm run
//! dev`, with a command-line tool made by the test.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{self, Guarded};
use crate::world::World;
use crate::{poll, settings};

/// Files that are created or installed in the template's own folder, and not copied.
const NOT_COPIED: [&str; 4] = ["node_modules", "dist", ".platform", "target"];

/// A replacement for the command-line tool, for dev servers: it prints the files next to it, and
/// records its arguments in `asked`.
const TOOL: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/asked"
case "$*" in
  runtime) name=runtime ;;
  "test-token "*" --guest --json") name=guest-$2 ;;
  "test-token "*" --json") name=user-$2 ;;
  *) echo "error: wrong usage: $*" >&2; exit 2 ;;
esac
cat "$here/$name.err" >&2 2>/dev/null
cat "$here/$name" 2>/dev/null || echo "error: there is no $name" >&2
exit $(cat "$here/$name.code" 2>/dev/null || echo 0)
"#;

/// A command-line tool for a dev server, in a separate folder.
#[derive(Debug)]
pub struct Tool(PathBuf);

impl Tool {
    /// Creates the tool in `folder`, which must not exist yet.
    ///
    /// # Panics
    /// Panics if it cannot be created.
    #[must_use]
    pub fn make(folder: &Path) -> Self {
        std::fs::create_dir(folder).expect("a folder");
        let tool = folder.join("platform");
        std::fs::write(&tool, TOOL).expect("a file");
        make_executable(&tool);
        Self(folder.to_owned())
    }

    /// Makes the tool print `text` for `name`: `runtime`, `user-3`, `guest-1`.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn prints(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file");
    }

    /// Makes the tool exit with `code` and print `text` to standard error.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn fails(&self, name: &str, code: u8, text: &str) {
        self.prints(&format!("{name}.code"), &code.to_string());
        self.prints(&format!("{name}.err"), text);
    }

    /// Returns the arguments of each call of the tool.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.join("asked")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns a `PATH` on which it comes first.
    #[must_use]
    pub fn path(&self) -> String {
        let path = settings::variable("PATH").unwrap_or_default();
        format!("{}:{path}", self.0.display())
    }
}

/// A copy of the template with its packages installed.
#[derive(Debug)]
pub struct Game {
    folder: TempDir,
    /// The tool that its dev server finds.
    pub tool: Tool,
}

impl Game {
    /// Copies the template, configures it as the project `slug` of `world`, and installs the
    /// packages of its lock file.
    pub async fn install(world: &World, slug: &str) -> Self {
        let folder = TempDir::with_prefix("platform-template-").expect("a temporary directory");
        let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template");
        copy(&template, folder.path());
        let origin = world.url("", "");
        let settings = format!("slug = \"{slug}\"\norigin = \"{origin}\"\ndist = \"dist\"\n");
        std::fs::write(folder.path().join("platform.toml"), settings).expect("a file");
        let tool = Tool::make(&folder.path().join("tool"));
        tool.prints("runtime", &world.runtime_js().await);
        let game = Self { folder, tool };
        game.npm(&["ci", "--prefer-offline", "--no-audit", "--no-fund"])
            .await;
        game
    }

    /// Returns the path of a file of the game.
    #[must_use]
    pub fn file(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Returns the data of the local backend; an empty object before the first score.
    #[must_use]
    pub fn scores(&self) -> Value {
        let text = std::fs::read(self.file(".platform/scores.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_else(|_| json!({}))
    }

    /// Runs npm to its end and returns its output.
    ///
    /// # Panics
    /// Panics if it fails.
    pub async fn npm(&self, arguments: &[&str]) -> String {
        let running = tokio::process::Command::new(settings::program("NPM", &["npm"]))
            .args(arguments)
            .current_dir(self.folder.path())
            .kill_on_drop(true)
            .output();
        let Output {
            status,
            stdout,
            stderr,
        } = running.await.expect("npm can be run");
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr)
        );
        assert!(
            status.success(),
            "npm {} failed: {said}",
            arguments.join(" ")
        );
        said
    }

    /// Starts `npm run dev` and waits until the page is served.
    ///
    /// # Panics
    /// Panics if it prints no address in time.
    pub async fn dev(&self) -> Dev<'_> {
        let mut command = Command::new(settings::program("NPM", &["npm"]));
        command
            .args(["run", "--silent", "dev"])
            .current_dir(self.folder.path())
            .env("PATH", self.tool.path())
            .env("PORT", "0")
            .env("NO_COLOR", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = Guarded::start(&mut command);
        let (sender, lines) = mpsc::channel();
        let output = process.child().stdout.take().expect("it is piped");
        forward(output, sender.clone());
        let errors = process.child().stderr.take().expect("it is piped");
        forward(errors, sender);
        let url = poll::until("the dev server's address", async || {
            let line = lines.try_recv().ok()?;
            let (_, url) = line.split_once("Local:")?;
            Some(url.trim().trim_end_matches('/').to_owned())
        })
        .await;
        Dev {
            url,
            game: self,
            process,
            lines,
        }
    }
}

/// A running dev server.
#[derive(Debug)]
pub struct Dev<'game> {
    /// Its origin.
    pub url: String,
    game: &'game Game,
    process: Guarded,
    lines: mpsc::Receiver<String>,
}

impl Dev<'_> {
    /// Waits until the dev server prints `part`.
    pub async fn says(&self, part: &str) {
        poll::until(part, async || {
            self.lines
                .try_iter()
                .any(|line| line.contains(part))
                .then_some(())
        })
        .await;
    }
}

impl Drop for Dev<'_> {
    fn drop(&mut self) {
        // npm does not forward signals to the processes that it started.
        process::kill_users_of(self.game.folder.path());
        self.process.kill();
    }
}

/// Sends every line of `output` to `sender`, until it ends.
fn forward(output: impl Read + Send + 'static, sender: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Nothing receives any more once the test is over.
            let _ = sender.send(line);
        }
    });
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let name = entry.file_name();
        if NOT_COPIED.iter().any(|made| name == *made) {
            continue;
        }
        if entry.path().is_dir() {
            std::fs::create_dir(to.join(&name)).expect("a folder");
            copy(&entry.path(), &to.join(&name));
        } else {
            std::fs::copy(entry.path(), to.join(&name)).expect("a file");
        }
    }
}

fn make_executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(file, permissions).expect("it is ours");
}
