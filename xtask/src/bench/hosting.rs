//! A deployed file compared with the same file from Debian's nginx. Both come from memory: ours
//! from the server's cache, nginx's from the system's.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::process::Process;
use super::statistics::{Estimate, median_of};
use super::wrk::{self, Load};
use crate::terminal::{self, Stopwatch};
use crate::workspace::Workspace;

/// Rounds; each round measures every server once.
const ROUNDS: usize = 9;
/// How long nginx may take to listen.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// The medians of the rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Hosting {
    /// A file of 20 kB in brotli, responses per second.
    pub(super) files: Estimate,
    /// The same from nginx.
    pub(super) nginx_files: Estimate,
    /// Ours divided by nginx's.
    pub(super) files_ratio: Estimate,
    /// Responses "not modified" per second.
    pub(super) unchanged: Estimate,
    /// The same from nginx.
    pub(super) nginx_unchanged: Estimate,
    /// Ours divided by nginx's.
    pub(super) unchanged_ratio: Estimate,
}

/// A running nginx; it ends when this is dropped.
struct Nginx {
    child: Child,
    port: u16,
}

impl Nginx {
    /// Serves `folder` with nginx's fastest settings.
    fn start(folder: &Path) -> Result<Self> {
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?
            .local_addr()?
            .port();
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration(folder, port))
            .with_context(|| format!("cannot write {}", file.display()))?;
        let child = Command::new("nginx")
            .arg("-p")
            .arg(folder)
            .arg("-c")
            .arg(&file)
            .args(["-e", "nginx-errors.log"])
            .stdin(Stdio::null())
            .spawn()
            .context("nginx cannot be started")?;
        let nginx = Self { child, port };
        let stopwatch = Stopwatch::start();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(stopwatch.elapsed() < PATIENCE, "nginx does not listen");
            std::thread::yield_now();
        }
        Ok(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // At a signal the master ends its workers; a kill would leave them running.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").arg(&id).status();
        let _ = self.child.wait();
    }
}

/// The settings: the file is served as it is on the disk, without another lookup.
fn configuration(folder: &Path, port: u16) -> String {
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
           server {{\n    listen 127.0.0.1:{port} backlog=1024;\n    root {folder};\n\
             location /file.js.br {{\n\
               default_type text/javascript;\n      add_header Content-Encoding br;\n\
               add_header Cache-Control no-cache;\n      add_header Vary Accept-Encoding;\n\
             }}\n  }}\n}}\n"
    )
}

/// Measures all of it.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Hosting> {
    let folder = folder.join("hosting");
    std::fs::create_dir_all(&folder)?;
    let ours =
        Process::start(Command::new(workspace.binary(true, "examples/hosted_file")).arg(&folder))?;
    let nginx = Nginx::start(&folder)?;
    let host = ours.host("bench");
    let answer = ours.ask("GET", &host, "/file.js", "Accept-Encoding: br\r\n")?;
    ensure!(
        answer.to_ascii_lowercase().contains("content-encoding: br"),
        "the brotli sibling was not sent"
    );
    let our_url = format!("http://{}/file.js", ours.address);
    let nginx_url = format!("http://127.0.0.1:{}/file.js.br", nginx.port);
    let get = |name: &'static str, file: &str, url: &str, headers: &[(&str, &str)]| {
        let lua = folder.join(format!("{file}.lua"));
        std::fs::write(&lua, wrk::get_script(headers))
            .with_context(|| format!("cannot write {}", lua.display()))?;
        anyhow::Ok(Load {
            name,
            url: url.to_owned(),
            script: lua,
        })
    };
    let accept = ("Accept-Encoding", "br");
    let tag = entity_tag(&answer).context("our file has no ETag")?;
    let nginx_tag = nginx_tag(&nginx)?;
    let loads = [
        get("file", "ours", &our_url, &[("Host", &host), accept])?,
        get("nginx file", "nginx", &nginx_url, &[accept])?,
        get(
            "unchanged",
            "ours-unchanged",
            &our_url,
            &[("Host", &host), accept, ("If-None-Match", &tag)],
        )?,
        get(
            "nginx unchanged",
            "nginx-unchanged",
            &nginx_url,
            &[accept, ("If-None-Match", &nginx_tag)],
        )?,
    ];
    let mut rounds = Vec::new();
    // The first turn is a warm-up and does not count.
    for number in 0..=ROUNDS {
        terminal::note(&format!("bench: hosting, round {number} of {ROUNDS}"));
        let mut rates = [0.0; 4];
        for place in super::turn(number, loads.len()) {
            let load = &loads[place];
            let sample = wrk::run(load).with_context(|| format!("{} failed", load.name))?;
            rates[place] = sample.per_second;
        }
        if number > 0 {
            rounds.push(rates);
        }
    }
    Ok(medians(&rounds))
}

fn medians(rounds: &[[f64; 4]]) -> Hosting {
    let of = |figure: fn(&[f64; 4]) -> f64| median_of(rounds, figure);
    Hosting {
        files: of(|rates| rates[0]),
        nginx_files: of(|rates| rates[1]),
        files_ratio: of(|rates| rates[0] / rates[1]),
        unchanged: of(|rates| rates[2]),
        nginx_unchanged: of(|rates| rates[3]),
        unchanged_ratio: of(|rates| rates[2] / rates[3]),
    }
}

/// The `ETag` in a response's text.
fn entity_tag(answer: &str) -> Option<String> {
    answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("etag")
            .then(|| value.trim().to_owned())
    })
}

fn nginx_tag(nginx: &Nginx) -> Result<String> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", nginx.port))?;
    write!(
        stream,
        "GET /file.js.br HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    entity_tag(&String::from_utf8_lossy(&answer)).context("nginx's file has no ETag")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entity_tag_is_read_whatever_its_case() {
        assert_eq!(
            entity_tag("HTTP/1.1 200 OK\r\nEtag: \"a\"\r\n\r\nETag: b").as_deref(),
            Some("\"a\"")
        );
        assert_eq!(entity_tag("HTTP/1.1 200 OK\r\n\r\n"), None);
    }

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_ratios() {
        let measured = medians(&[
            [9.0, 10.0, 4.0, 4.0],
            [1.0, 1.0, 1.0, 2.0],
            [5.0, 2.0, 3.0, 1.0],
        ]);
        assert!((measured.files_ratio.value - 1.0).abs() < 1e-9);
        assert!((measured.unchanged_ratio.value - 1.0).abs() < 1e-9);
    }
}
