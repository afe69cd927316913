//! A running program, which ends with this one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// Who PostgreSQL runs as where this program is root's: it refuses to run as root.
const POSTGRES_USER: &str = "postgres";
/// How many bytes of a program's output an error shows.
const SHOWN: usize = 4_000;

/// Who a program runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The same user as this program.
    Same,
    /// The same user, or the user of PostgreSQL where this program is root's.
    Postgres,
}

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose output goes to `<name>.log` in `folder`.
    pub(crate) fn start(name: &str, folder: &Path, command: &mut Command) -> Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let log = folder.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log);
        let output = output.with_context(|| format!("{} cannot be written", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // Ctrl-C in a terminal is for the program that runs the cluster, which ends the
            // others in their order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("{name} cannot be started"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file of its output.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Returns its output so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn output(&self) -> Result<String> {
        let bytes = std::fs::read(&self.log)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns an error with the end of its output if it has ended.
    ///
    /// # Errors
    /// It has ended.
    pub fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let output = self.output()?;
        let mut start = output.len().saturating_sub(SHOWN);
        while !output.is_char_boundary(start) {
            start += 1;
        }
        bail!("{} ended ({status}):\n{}", self.name, &output[start..])
    }

    /// Sends a signal by its name, such as `TERM`, `STOP` or `CONT`.
    ///
    /// # Errors
    /// The program `kill` is missing, or the process has ended.
    pub fn signal(&self, name: &str) -> Result<()> {
        let mut kill = Command::new("kill");
        run(kill.args(["-s", name, &self.id().to_string()]))?;
        Ok(())
    }

    /// Kills it, as a power cut would, and waits until it is gone.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Sends a signal and waits until it has ended by itself.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn end(&mut self, signal: &str) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        self.signal(signal)?;
        Ok(self.child.wait()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that is killed when this program ends, however that ends.
pub(crate) fn guarded(program: &Path, user: User) -> Result<Command> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if user == User::Postgres && is_root()? {
        command.args(["--reuid", POSTGRES_USER, "--regid", POSTGRES_USER]);
        command.arg("--init-groups");
    }
    // The folder of this program may be closed to that user.
    command.arg(program).current_dir("/");
    Ok(command)
}

/// Makes a folder that belongs to `user`.
pub(crate) fn make_folder(path: &Path, user: User) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("{} stays missing", path.display()))?;
    if user == User::Postgres && is_root()? {
        run(Command::new("chown").arg(POSTGRES_USER).arg(path))?;
    }
    Ok(())
}

fn is_root() -> Result<bool> {
    Ok(run(Command::new("id").arg("-u"))?.trim() == "0")
}

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// It cannot be started, or fails; the error shows what it wrote.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("`{program}` cannot be started"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{program}` failed ({}): {said}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Finds a program on the `PATH`.
///
/// # Errors
/// It is not there; the error says which package has it.
pub(crate) fn find(program: &str, package: &str) -> Result<PathBuf> {
    // Debian has servers in `sbin`, which not every user's `PATH` names.
    let paths = "/usr/sbin:/usr/local/sbin";
    which::which(program)
        .or_else(|_| which::which_in(program, Some(paths), "/"))
        .with_context(|| {
            format!(
                "`{program}` was not found: `cargo xtask cluster` and `cargo xtask test` \
                 install it; Debian calls it `{package}`"
            )
        })
}
