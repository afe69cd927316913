//! Debian's nginx and Caddy, which serve the files of a folder.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use platform_test_ports::ReservedPort;
use xtask::terminal::Stopwatch;

use super::process::Site;

/// How long one may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A running program; it ends when this is dropped.
pub(super) struct FileServer {
    child: Child,
    port: ReservedPort,
}

impl FileServer {
    /// Serves `folder` with nginx's fastest settings.
    pub(super) fn nginx(folder: &Path) -> Result<Self> {
        let port = reserved()?;
        let file = write(folder, "nginx.conf", &nginx(folder, port.address()))?;
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(folder).arg("-c").arg(&file);
        Self::start(nginx.args(["-e", "nginx-errors.log"]), port)
    }

    /// Serves `folder` with Caddy, and files that are compressed already as nginx does.
    pub(super) fn caddy(folder: &Path) -> Result<Self> {
        let port = reserved()?;
        let file = write(folder, "Caddyfile", &caddy(folder, port.address()))?;
        let mut caddy = Command::new("caddy");
        caddy.args(["run", "--adapter", "caddyfile", "--config"]);
        let log = File::create(folder.join("caddy.log"))?;
        caddy.arg(&file).env("HOME", folder).stderr(log);
        Self::start(&mut caddy, port)
    }

    fn start(command: &mut Command, port: ReservedPort) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("{name} cannot be started"))?;
        let stopwatch = Stopwatch::start();
        while TcpStream::connect(port.address()).is_err() {
            if let Some(status) = child.try_wait()? {
                bail!("{name} has ended ({status}); its settings may be wrong for this version");
            }
            ensure!(
                stopwatch.elapsed() < START_TIMEOUT,
                "{name} does not listen"
            );
            std::thread::yield_now();
        }
        Ok(Self { child, port })
    }

    /// Where it is reached.
    pub(super) fn site(&self) -> Site {
        Site {
            address: self.port.address(),
            origin: "http://localhost".to_owned(),
        }
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        // At a signal nginx ends its workers; a kill would leave them running.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").arg(&id).status();
        let _ = self.child.wait();
    }
}

fn reserved() -> Result<ReservedPort> {
    ReservedPort::take().context("there is no port for a file server")
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let file = folder.join(name);
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// The settings: the file is served as it is on the disk, without another lookup.
fn nginx(folder: &Path, address: SocketAddr) -> String {
    let folder = folder.display();
    format!(
        "daemon off;\nworker_processes auto;\npid {folder}/nginx.pid;\nuser root;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n\
           access_log off;\n  sendfile on;\n  tcp_nopush on;\n  tcp_nodelay on;\n\
           keepalive_requests 1000000000;\n  open_file_cache max=100;\n\
           client_body_temp_path {folder}/n1;\n  proxy_temp_path {folder}/n2;\n\
           fastcgi_temp_path {folder}/n3;\n  uwsgi_temp_path {folder}/n4;\n\
           scgi_temp_path {folder}/n5;\n\
           server {{\n    listen {address} backlog=1024;\n    root {folder};\n\
             location /file.js.br {{\n\
               default_type text/javascript;\n      add_header Content-Encoding br;\n\
               add_header Cache-Control no-cache;\n      add_header Vary Accept-Encoding;\n\
             }}\n    location /large.bin {{\n      add_header Cache-Control no-cache;\n    }}\n\
           }}\n}}\n"
    )
}

/// The settings: no certificates, no settings by network, no log.
fn caddy(folder: &Path, address: SocketAddr) -> String {
    let (folder, ip, port) = (folder.display(), address.ip(), address.port());
    format!(
        "{{\n  admin off\n  auto_https off\n}}\n\
         http://:{port} {{\n  bind {ip}\n  root * {folder}\n  header Cache-Control no-cache\n\
           file_server {{\n    precompressed br\n  }}\n}}\n"
    )
}
