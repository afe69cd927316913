//! PostgreSQL: a primary, and a standby that has every commit before it is acknowledged.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use platform_test_ports::ReservedPort;

use crate::poll;
use crate::process::{Process, User, find, guarded, make_folder, run};

/// Where Debian has PostgreSQL's programs, in a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// The user of the database.
const USER: &str = "platform";
/// The databases: the platform's, and one for frontend logs.
const DATABASES: [&str; 2] = ["platform", "logs"];
/// The settings of both servers.
const SETTINGS: [&str; 8] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=400",
    "shared_buffers=128MB",
    "jit=off",
    "wal_level=replica",
    "max_wal_senders=8",
    "hot_standby=on",
];
/// The name by which the standby is known to the primary.
const STANDBY: &str = "standby";

/// One server of PostgreSQL.
#[derive(Debug)]
pub struct Postgres {
    /// The program.
    pub process: Process,
    name: &'static str,
    folder: PathBuf,
    programs: PathBuf,
    data: PathBuf,
    /// Where it listens, under 127.0.0.1.
    pub port: u16,
    _reserved: ReservedPort,
}

/// A primary and its standby.
#[derive(Debug)]
pub struct PostgresPair {
    /// The server that takes writes at first.
    pub primary: Postgres,
    /// The server that [`PostgresPair::promote`] makes the primary.
    pub standby: Postgres,
}

impl PostgresPair {
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let programs = programs()?;
        let primary = Postgres::alone(folder)?;

        let copy = folder.join("postgres-standby");
        make_folder(&copy, User::Postgres)?;
        run(Command::new("chmod").arg("700").arg(&copy))?;
        let from = format!(
            "host=127.0.0.1 port={} user={USER} application_name={STANDBY}",
            primary.port
        );
        run(guarded(&programs.join("pg_basebackup"), User::Postgres)?
            .arg("--pgdata")
            .arg(&copy)
            .args(["--dbname", &from])
            .args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]))?;
        let standby = Postgres::start("postgres-standby", folder, &programs, copy)?;
        let pair = Self { primary, standby };
        pair.primary.wait_for_commits_of(STANDBY)?;
        Ok(pair)
    }

    /// The address of a database for nodes: both servers, and writes only to the one that takes
    /// them.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        Self::url_at(self.ports(), database)
    }

    /// The same, where both are reached at these ports.
    pub(crate) fn url_at([one, other]: [u16; 2], database: &str) -> String {
        format!(
            "postgres://{USER}@127.0.0.1:{one},127.0.0.1:{other}/{database}\
             ?target_session_attrs=read-write"
        )
    }

    pub(crate) fn ports(&self) -> [u16; 2] {
        [self.primary.port, self.standby.port]
    }

    /// Makes the standby the primary, as whoever watches over the pair does when the primary is
    /// gone. It was copied before the primary waited for a standby, so it waits for none.
    ///
    /// # Errors
    /// It cannot be promoted.
    pub fn promote(&self) -> Result<()> {
        self.standby
            .sql("postgres", "SELECT pg_promote(true, 60)")?;
        Ok(())
    }
}

impl Postgres {
    /// Starts a server without a standby, with its data below this folder, which the user of
    /// PostgreSQL must be able to enter.
    ///
    /// # Errors
    /// It does not start, or does not answer within a minute.
    pub fn alone(folder: &Path) -> Result<Self> {
        let programs = programs()?;
        let data = folder.join("postgres-primary");
        make_folder(&data, User::Postgres)?;
        run(guarded(&programs.join("initdb"), User::Postgres)?
            .arg("--pgdata")
            .arg(&data)
            // Only this machine's own programs reach the ports.
            .args(["--username", USER, "--auth=trust", "--encoding=UTF8"])
            // What is written before the first start need not survive a power failure.
            .args(["--locale=C.UTF-8", "--no-sync", "--no-instructions"]))?;
        let primary = Self::start("postgres-primary", folder, &programs, data)?;
        for database in DATABASES {
            primary.sql("postgres", &format!("CREATE DATABASE {database}"))?;
        }
        Ok(primary)
    }

    /// The address of a database on this port, its own or that of a relay before it.
    #[must_use]
    pub fn url_at(port: u16, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/{database}")
    }

    fn start(name: &'static str, folder: &Path, programs: &Path, data: PathBuf) -> Result<Self> {
        let reserved = crate::reserve_port()?;
        let port = reserved.number();
        let mut server = Self {
            process: launch(name, folder, programs, &data, port)?,
            name,
            folder: folder.to_owned(),
            programs: programs.to_owned(),
            data,
            port,
            _reserved: reserved,
        };
        server.wait()?;
        Ok(server)
    }

    /// Starts it again on its data and at its address.
    ///
    /// # Errors
    /// It does not start, or does not answer within a minute.
    pub fn restart(&mut self) -> Result<()> {
        self.process = launch(
            self.name,
            &self.folder,
            &self.programs,
            &self.data,
            self.port,
        )?;
        self.wait()
    }

    /// Runs statements and returns the rows, one per line, with `|` between columns.
    ///
    /// # Errors
    /// The server does not answer, or refuses a statement.
    pub fn sql(&self, database: &str, statements: &str) -> Result<String> {
        let mut psql = guarded(&self.programs.join("psql"), User::Same)?;
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        psql.args(["--host", "127.0.0.1", "--port", &self.port.to_string()]);
        psql.args(["--username", USER, "--dbname", database]);
        psql.args(["--set", "ON_ERROR_STOP=1", "--command", statements]);
        Ok(run(&mut psql)?.trim_end().to_owned())
    }

    fn wait(&mut self) -> Result<()> {
        let ready = self.programs.join("pg_isready");
        let port = self.port.to_string();
        let process = &mut self.process;
        poll::until("PostgreSQL to answer", || {
            process.check()?;
            let mut ask = Command::new(&ready);
            ask.args(["--quiet", "--host", "127.0.0.1", "--port", &port]);
            Ok(ask
                .status()
                .context("`pg_isready` cannot be started")?
                .success())
        })
    }

    /// From now on a commit waits for this standby.
    fn wait_for_commits_of(&self, standby: &str) -> Result<()> {
        let names = format!("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ({standby})'");
        self.sql("postgres", &names)?;
        self.sql("postgres", "SELECT pg_reload_conf()")?;
        poll::until("the standby to be a synchronous one", || {
            let state = self.sql("postgres", "SELECT sync_state FROM pg_stat_replication")?;
            Ok(state == "quorum")
        })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once, and with its children: after a kill they would write for a moment into a folder
        // that is being removed. It may have ended, or may be paused.
        let _ = self.process.signal("CONT");
        let _ = self.process.end("QUIT");
    }
}

fn launch(name: &str, folder: &Path, programs: &Path, data: &Path, port: u16) -> Result<Process> {
    let mut command = guarded(&programs.join("postgres"), User::Postgres)?;
    command.arg("-D").arg(data);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(["-c", &format!("port={port}")]);
    Process::start(name, folder, &mut command)
}

/// The folder of PostgreSQL's programs: on the `PATH`, or the newest of Debian's.
fn programs() -> Result<PathBuf> {
    // On the `PATH` may be a link to one program alone.
    let on_path = which::which("initdb")
        .ok()
        .and_then(|initdb| initdb.canonicalize().ok());
    if let Some(folder) = on_path.as_deref().and_then(Path::parent)
        && folder.join("pg_isready").is_file()
    {
        return Ok(folder.to_owned());
    }
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten();
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max();
    let folder = newest.map(|version| Path::new(DEBIAN).join(version.to_string()).join("bin"));
    folder
        .filter(|folder| folder.join("initdb").is_file())
        .map_or_else(
            || find("initdb", "postgresql").context("there is no PostgreSQL"),
            Ok,
        )
}
