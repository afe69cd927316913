//! A game that exists already, from nothing to a second player: on a machine with Node.js and a shell,
//! with every command and the tag copied from the console's pages. The durations are printed
//! (`--nocapture`).

#![expect(clippy::unwrap_used, reason = "a test reports by failing")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use platform_tests::accessibility::Look;
use platform_tests::browser::{Browser, Engine, Stage};
use platform_tests::maker;
use platform_tests::newcomer::Newcomer;
use platform_tests::sign_in::Way;
use platform_tests::{npm, poll, settings};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

/// The longest time from nothing to a second player.
const BOUND: Duration = Duration::from_secs(180);

/// The game's own script: a round begins with a press, and says who played it.
const SCRIPT: &str = "const play = document.querySelector('button');
play.onclick = async () => {
  const player = await platform.player();
  document.querySelector('p').textContent = `${player.username} gathered 7 stars.`;
};
";

fn page(script: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Stars</title>\n\
         </head>\n<body>\n<button>Play</button>\n<p></p>\n{script}\n</body>\n</html>\n"
    )
}

/// Writes a page and its script, which no tool builds.
fn plain_game(folder: &Path) {
    let script = "<script type=\"module\" src=\"/game.js\"></script>";
    std::fs::write(folder.join("index.html"), page(script)).unwrap();
    std::fs::write(folder.join("game.js"), SCRIPT).unwrap();
}

/// Writes a game that Vite builds.
async fn vite_game(folder: &Path) {
    let packages = npm::packages("bundlers").await;
    std::os::unix::fs::symlink(packages.join("node_modules"), folder.join("node_modules")).unwrap();
    let manifest =
        json!({ "name": "stars", "type": "module", "scripts": { "build": "vite build" } });
    std::fs::write(folder.join("package.json"), manifest.to_string()).unwrap();
    std::fs::create_dir(folder.join("src")).unwrap();
    let script = "<script type=\"module\" src=\"/src/game.js\"></script>";
    std::fs::write(folder.join("index.html"), page(script)).unwrap();
    std::fs::write(folder.join("src/game.js"), SCRIPT).unwrap();
}

/// The maker of the game, and what is on the screen.
struct Maker {
    newcomer: Newcomer,
    stage: Stage,
    /// The folder of the game.
    game: PathBuf,
}

impl Maker {
    async fn new() -> Self {
        let newcomer = Newcomer::arrive().await;
        let game = newcomer.home().join("stars");
        std::fs::create_dir(&game).unwrap();
        let stage = Stage::new(Arc::new(Browser::start(Engine::Chromium).await));
        Self {
            newcomer,
            stage,
            game,
        }
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.newcomer.server.origin)
    }

    /// Returns a line in a new shell in the game's folder, which finds what was installed before.
    fn shell(&self, line: &str) -> Command {
        let bin = self.newcomer.home().join(".local/bin");
        let path = settings::variable("PATH").unwrap_or_default();
        let mut command = self.newcomer.command("sh");
        command
            .args(["-c", line])
            .current_dir(&self.game)
            .env("PATH", format!("{}:{path}", bin.display()));
        Command::from(command)
    }

    /// Runs a line, and returns its standard output.
    async fn types(&self, line: &str) -> String {
        let begun = maker::now();
        let output = self.shell(line).output().await.unwrap();
        maker::report(line, begun);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Runs the line that signs in: the browser, which is signed in, approves it.
    async fn signs_in(&self, line: &str) {
        let begun = maker::now();
        let mut login = self.shell(line);
        let mut login = login.stderr(Stdio::piped()).spawn().unwrap();
        let said = login.stderr.take().unwrap();
        let address = told(said).await;
        self.stage.open(&address).await;
        self.stage.press("Approve").await;
        self.stage.says("The device is signed in").await;
        let status = poll::within("the login", login.wait()).await.unwrap();
        assert!(status.success());
        maker::report(line, begun);
    }

    /// Makes a project in the console, and returns the commands that its page shows then.
    async fn makes_a_project(&self) -> Vec<String> {
        let stage = &self.stage;
        stage.open(&self.address("/build")).await;
        stage.press("Sign in").await;
        Way::BuiltIn.sign_in(stage, "Ada").await;
        stage.arrives_at(&self.address("/build")).await;
        stage.fill("Slug", "stars").await;
        stage.press("Create project").await;
        stage.arrives_below(&self.address("/projects/stars")).await;
        stage.says("Nothing is deployed to dev yet").await;
        let commands = "return document.querySelector('#undeployed-command').textContent";
        let commands = poll::until("the commands for dev", async || {
            let text = stage.look(commands, vec![]).await;
            let text = text.as_str()?.to_owned();
            text.lines()
                .last()?
                .ends_with("--project stars")
                .then_some(text)
        });
        commands.await.lines().map(str::to_owned).collect()
    }

    /// Writes the tag that the project's page shows into the game's page.
    async fn adds_the_tag(&self) {
        let tag = "return document.querySelector('#undeployed-tag').textContent";
        let tag = self.stage.look(tag, vec![]).await;
        let file = self.game.join("index.html");
        let page = std::fs::read_to_string(&file).unwrap();
        let with = format!("{}\n</head>", tag.as_str().unwrap());
        std::fs::write(&file, page.replace("</head>", &with)).unwrap();
    }

    /// Somebody else opens the address on a phone, and plays a round.
    async fn is_played_by_somebody_else(&self, url: &str) {
        let begun = maker::now();
        self.stage.browser().renew().await;
        self.stage.open(url).await;
        self.stage.show_as(Look::Phone).await;
        self.stage.press("Play").await;
        self.stage.says("gathered 7 stars.").await;
        let player = self.stage.run("return platform.player()").await;
        assert_eq!(player["isGuest"], true);
        let name = player["username"].as_str().unwrap();
        self.stage.says(&format!("{name} gathered 7 stars.")).await;
        maker::report("the second player", begun);
    }

    async fn leaves(self) {
        assert_eq!(self.stage.complaints().await, [""; 0]);
        let browser = Arc::into_inner(self.stage.into_browser());
        browser.unwrap().close().await;
        self.newcomer.server.stop().await;
    }
}

/// Returns the address that the login names.
async fn told(said: impl AsyncRead + Unpin) -> String {
    let mut lines = BufReader::new(said).lines();
    loop {
        let line = poll::within("a line of the login", lines.next_line()).await;
        let line = line.unwrap().unwrap();
        if let Some((_, address)) = line.split_once("which contains the code: ") {
            return address.to_owned();
        }
    }
}

/// From nothing to a second player. `build` are the commands of the game's own tools.
async fn goes_public(maker: Maker, build: &[&str]) {
    let begun = maker::now();
    let commands = maker.makes_a_project().await;
    let [install, login, deploy] = <&[String; 3]>::try_from(&commands[..]).unwrap();
    maker.adds_the_tag().await;
    maker.types(install).await;
    maker.signs_in(login).await;
    for line in build {
        maker.types(line).await;
    }
    let url = maker.types(deploy).await;
    maker.is_played_by_somebody_else(&url).await;
    let took = begun.elapsed();
    maker::report("all of it", begun);
    assert!(took < BOUND, "{took:?}");
    maker.leaves().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_a_build_is_played_by_somebody_else_within_three_minutes() {
    let maker = Maker::new().await;
    plain_game(&maker.game);
    goes_public(maker, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_game_of_vite_is_played_by_somebody_else_within_three_minutes() {
    let maker = Maker::new().await;
    vite_game(&maker.game).await;
    goes_public(maker, &["npm run build"]).await;
}
