//! A developer's terminal: separate folders, the real command line, and the browser in which its
//! code is approved.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;

use platform_server::clock::{Clock as _, SystemClock};
use platform_server::web::seal::PRESS_MILLIS;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::forms::{Form, forms};
use crate::person::{Answer, Person};
use crate::platform::Site;
use crate::process::{self, Guarded};
use crate::{poll, server, settings};

/// A terminal with a separate home folder.
#[derive(Debug)]
pub struct Terminal {
    folder: TempDir,
    origin: String,
}

/// The result of a run of the program.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A `platform login` that waits for its code to be approved.
#[derive(Debug)]
pub struct Login {
    child: Child,
    said: BufReader<tokio::process::ChildStderr>,
    /// The address with the code, as printed.
    pub address: String,
    /// The code, as printed.
    pub code: String,
}

/// A running `platform dev`.
#[derive(Debug)]
pub struct Dev {
    process: Guarded,
    log: PathBuf,
    /// The address of the game, without the final slash.
    pub url: String,
}

impl Outcome {
    /// Returns the outcome, which must have the exit status `code`.
    ///
    /// # Panics
    /// Panics if it has another exit status.
    #[track_caller]
    #[must_use = "an outcome that nobody reads is checked with drop"]
    pub fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Returns the output of a command, which must have succeeded.
    ///
    /// # Panics
    /// Panics if it has failed.
    #[track_caller]
    #[must_use]
    pub fn done(self) -> String {
        self.ended_with(0).stdout
    }
}

impl Terminal {
    /// Creates a terminal for the platform at `site`, where nobody is signed in.
    ///
    /// # Panics
    /// Panics if its folder cannot be created.
    #[must_use]
    pub fn of(site: &Site) -> Self {
        Self {
            folder: TempDir::with_prefix("platform-terminal-").expect("a folder"),
            origin: site.origin.clone(),
        }
    }

    /// Returns the path of a file in the home folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and creates its parent folders.
    ///
    /// # Panics
    /// Panics if it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        let folder = path.parent().expect("a file is in a folder");
        std::fs::create_dir_all(folder).expect("folders can be made");
        std::fs::write(path, text).expect("a file can be written");
    }

    /// Returns the stored credentials.
    ///
    /// # Panics
    /// Panics if there are none.
    #[must_use]
    pub fn credentials(&self) -> String {
        let path = self.path("config/platform/credentials.toml");
        std::fs::read_to_string(path).expect("credentials")
    }

    /// Builds a command of the program without any variable of this machine's environment.
    fn command(&self, arguments: &[&str]) -> Command {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        let program = PROGRAM.get_or_init(|| server::built("platform-cli", "platform"));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("PLATFORM_ORIGIN", &self.origin)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// Panics if it cannot be run.
    pub async fn run(&self, arguments: &[&str]) -> Outcome {
        let output = self.command(arguments).output().await;
        let output = output.expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("it speaks UTF-8");
        Outcome {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs the program, which must succeed, and returns its output.
    pub async fn done(&self, arguments: &[&str]) -> String {
        self.run(arguments).await.done()
    }

    /// Starts `platform dev` in a folder of the home folder, on a free port, and waits until it prints
    /// where the game is. The commands that it starts are found on the `PATH`.
    ///
    /// # Panics
    /// Panics if it cannot be started or is never ready.
    pub async fn dev(&self, folder: &str, arguments: &[&str]) -> Dev {
        let log = self.path("dev.log");
        let file = File::create(&log).expect("a file can be written");
        let mut command = self.command(&["dev", "--port", "0"]);
        command
            .args(arguments)
            .current_dir(self.path(folder))
            .env("PATH", settings::variable("PATH").unwrap_or_default())
            .stdout(file.try_clone().expect("a file has a second handle"))
            .stderr(file);
        let mut process = Guarded::start(command.as_std_mut());
        let url = poll::until("the game's address", async || {
            let said = std::fs::read_to_string(&log).ok()?;
            assert!(!process.has_ended(), "it has ended: {said}");
            // The rest of the block is printed at once.
            let (_, said) = said.split_once("  Game     ")?;
            let (url, rest) = said.split_once("/\n")?;
            rest.contains("Ctrl-C").then(|| url.to_owned())
        });
        let url = url.await;
        Dev { process, log, url }
    }

    /// Starts to sign in, and waits for the code.
    ///
    /// # Panics
    /// Panics if none is printed.
    pub async fn begin_login(&self) -> Login {
        let mut command = self.command(&["login", "--no-browser"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
        let (mut address, mut code) = (None, None);
        while address.is_none() {
            let mut line = String::new();
            let read = said.read_line(&mut line).await.expect("it is read");
            assert_ne!(read, 0, "no address was printed");
            let after = |words: &str| Some(line.split_once(words)?.1.trim().to_owned());
            code = code.or_else(|| after("the code "));
            address = after("which contains the code: ");
        }
        Login {
            child,
            said,
            address: address.expect("an address"),
            code: code.expect("a code"),
        }
    }

    /// Signs in with the browser of `person`.
    ///
    /// # Panics
    /// Panics if that fails.
    pub async fn log_in(&self, person: &mut Person) -> Outcome {
        let login = self.begin_login().await;
        login.decide(person, "approve").await;
        login.ended().await.ended_with(0)
    }
}

impl Dev {
    /// Returns what it and its command have printed so far.
    ///
    /// # Panics
    /// Panics if that cannot be read.
    #[must_use]
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("its output")
    }

    /// Presses Ctrl-C, and waits until it has ended.
    pub async fn interrupt(&mut self) {
        process::signal(self.process.id(), "INT");
        poll::until("platform dev has ended", async || {
            self.process.has_ended().then_some(())
        })
        .await;
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // Unlike SIGKILL, this also ends the command.
        self.process.end();
    }
}

impl Login {
    /// Presses a button of the page at the printed address.
    ///
    /// # Panics
    /// Panics if the page has no such form.
    pub async fn decide(&self, person: &mut Person, action: &str) -> Answer {
        let page = person.type_address(&self.address).await;
        let form = form(&page, "/device", "account");
        considered(&form).await;
        let answer = press(person, &form, &[("action", action)]).await;
        let shown = answer.see_other().to_owned();
        person.follow(&shown).await
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// Panics if waiting fails.
    pub async fn ended(mut self) -> Outcome {
        let mut stderr = String::new();
        let read = self.said.read_to_string(&mut stderr).await;
        read.expect("it is read");
        let output = self.child.wait_with_output().await.expect("it ends");
        Outcome {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("it speaks UTF-8"),
            stderr,
        }
    }
}

/// Returns the form of a page that is sent to `action` and has the hidden field `field`.
///
/// # Panics
/// Panics if there is none.
#[must_use]
pub fn form(page: &Answer, action: &str, field: &str) -> Form {
    let found = forms(&page.body).into_iter();
    let mut found = found.filter(|form| form.action == action && form.field(field).is_some());
    let form = found.next();
    form.unwrap_or_else(|| panic!("no form to {action} with {field}: {page:?}"))
}

/// Waits until a press of the form counts, since a person reads it first.
///
/// # Panics
/// Panics if the form does not contain the time at which it was shown.
pub async fn considered(form: &Form) {
    let shown = form.field("shown").and_then(|seal| seal.split_once('.'));
    let (shown, _) = shown.expect("the form says when it was shown");
    let shown: i64 = shown.parse().expect("a time");
    poll::until("the form could be read", async || {
        (SystemClock.now() >= shown + PRESS_MILLIS).then_some(())
    })
    .await;
}

/// Sends a form with its hidden fields and `more`.
pub async fn press(person: &mut Person, form: &Form, more: &[(&str, &str)]) -> Answer {
    let hidden = form.hidden.iter();
    let fields = hidden.map(|(name, value)| (name.as_str(), value.as_str()));
    let fields: Vec<_> = fields.chain(more.iter().copied()).collect();
    person.submit(&form.action, &fields).await
}

/// Signs in with the built-in demo provider, with the return address `redirect`.
///
/// # Panics
/// Panics if that fails.
pub async fn sign_in(person: &mut Person, name: &str, redirect: &str) -> Answer {
    let address = person.begin("demo", redirect).await;
    let page = person.follow(&address).await;
    let form = form(&page, "/demo-provider/authorize", "request");
    let more = [("name", name), ("action", "sign-in")];
    let answered = press(person, &form, &more).await;
    let callback = answered.see_other().to_owned();
    person.follow(&callback).await
}
