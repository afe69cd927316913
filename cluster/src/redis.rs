//! Redis: what nodes share and may lose.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::Result;
use platform_test_ports::ReservedPort;

use crate::poll;
use crate::process::{Process, User, find, guarded};

/// A running Redis that keeps nothing on the disk.
#[derive(Debug)]
pub struct Redis {
    /// The program.
    pub process: Process,
    folder: PathBuf,
    port: ReservedPort,
}

impl Redis {
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let port = crate::reserve_port()?;
        let mut redis = Self {
            process: launch(folder, &port)?,
            folder: folder.to_owned(),
            port,
        };
        redis.wait()?;
        Ok(redis)
    }

    /// Starts it again, empty, at the same address.
    ///
    /// # Errors
    /// It does not start, or does not answer within a minute.
    pub fn restart(&mut self) -> Result<()> {
        self.process = launch(&self.folder, &self.port)?;
        self.wait()
    }

    /// Its address, for `PLATFORM_REDIS_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.port.address())
    }

    fn wait(&mut self) -> Result<()> {
        let address = self.port.address();
        let process = &mut self.process;
        poll::until("Redis to answer", || {
            process.check()?;
            Ok(answers(address))
        })
    }
}

fn launch(folder: &Path, port: &ReservedPort) -> Result<Process> {
    let mut command = guarded(&find("redis-server", "redis-server")?, User::Same)?;
    command.args(["--bind", "127.0.0.1", "--port", &port.number().to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--dir", "/tmp"]);
    Process::start("redis", folder, &mut command)
}

fn answers(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        Ok(answer == *b"+PONG")
    };
    ask().unwrap_or(false)
}
