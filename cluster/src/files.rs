//! Files on S3: one server, which keeps the objects in a folder.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::Result;
use platform_test_ports::ReservedPort;

use crate::poll;
use crate::process::{Process, User, find, guarded, make_folder};

/// The name of the bucket.
const BUCKET: &str = "games";
/// The key by which nodes are known. Only this machine's own programs reach the port.
const ACCESS_KEY: &str = "platform";
/// The other half of it.
const SECRET_KEY: &str = "on-this-machine-only";

/// A running S3 server.
#[derive(Debug)]
pub struct Files {
    /// The program.
    pub process: Process,
    program: PathBuf,
    folder: PathBuf,
    /// Where it listens.
    pub address: SocketAddr,
    _port: ReservedPort,
}

impl Files {
    /// Starts a server whose objects lie in `folder`, and waits until it listens. It ends with the
    /// thread that starts it.
    ///
    /// # Errors
    /// The program is missing, does not start, or does not listen within a minute.
    pub fn start(folder: &Path, program: Option<&Path>) -> Result<Self> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => find("s3s-fs", "s3s-fs, on crates.io")?,
        };
        make_folder(&folder.join("s3").join(BUCKET), User::Same)?;
        let port = crate::reserve_port()?;
        let address = port.address();
        let mut files = Self {
            process: launch(folder, &program, address)?,
            program,
            folder: folder.to_owned(),
            address,
            _port: port,
        };
        files.wait()?;
        Ok(files)
    }

    /// Starts it again with its objects and at its address.
    ///
    /// # Errors
    /// It does not start, or does not answer within a minute.
    pub fn restart(&mut self) -> Result<()> {
        self.process = launch(&self.folder, &self.program, self.address)?;
        self.wait()
    }

    /// The settings of a node.
    #[must_use]
    pub fn settings(&self) -> [(&'static str, String); 4] {
        [
            ("PLATFORM_FILES_URL", format!("s3://{BUCKET}/platform")),
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
        ]
    }

    fn wait(&mut self) -> Result<()> {
        let (address, process) = (self.address, &mut self.process);
        poll::until("the S3 server to listen", || {
            process.check()?;
            Ok(TcpStream::connect(address).is_ok())
        })
    }
}

fn launch(folder: &Path, program: &Path, address: SocketAddr) -> Result<Process> {
    let mut command = guarded(program, User::Same)?;
    command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY]);
    command.arg(folder.join("s3"));
    Process::start("s3", folder, &mut command)
}
