//! Deployed files compared with the same files from Debian's nginx and Caddy, and from hyper and axum
//! alone, which show what the libraries allow. All come from memory: nginx's and Caddy's from the
//! system's cache.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use xtask::terminal;
use xtask::workspace::Workspace;

use super::figures::{Goal, goal};
use super::file_servers::FileServer;
use super::process::{Process, Site};
use super::statistics::{Estimate, Limit, median_of};
use super::wrk::{self, Load};

/// Rounds; each round measures every server once.
const ROUNDS: usize = 9;

/// The servers: ours, nginx, hyper alone, axum alone, and Caddy.
const SERVERS: usize = 5;

/// What the rounds gave for one request.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Answers {
    /// Our responses per second.
    pub(super) ours: Estimate,
    /// Those of nginx.
    pub(super) nginx: Estimate,
    /// Those of a handler of hyper that does nothing else: what our HTTP library allows.
    pub(super) hyper: Estimate,
    /// Those of a handler of axum that does nothing else.
    pub(super) axum: Estimate,
    /// Those of Caddy.
    pub(super) caddy: Estimate,
    /// Ours divided by nginx's.
    pub(super) ratio: Estimate,
    /// Those of hyper divided by nginx's.
    pub(super) hyper_ratio: Estimate,
}

/// The medians of the rounds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Hosting {
    /// A file of 20 kB in brotli.
    pub(super) file: Answers,
    /// "Not modified".
    pub(super) unchanged: Answers,
    /// A file of 1 MB.
    pub(super) large: Answers,
}

impl Hosting {
    /// The kinds of requests, with their names.
    const fn kinds(&self) -> [(&'static str, &Answers); 3] {
        [
            ("a file of 20 kB in brotli", &self.file),
            ("a file that has not changed", &self.unchanged),
            ("a file of 1 MB", &self.large),
        ]
    }

    /// The goals.
    pub(super) fn goals(&self) -> [Goal; 3] {
        let at_least = |name, of: &Answers, limit| goal(name, of.ratio, Limit::AtLeast(limit), "×");
        [
            at_least("a file of 20 kB in brotli / nginx", &self.file, 1.0),
            at_least("a file that has not changed / nginx", &self.unchanged, 1.0),
            at_least("a file of 1 MB / nginx", &self.large, 0.9),
        ]
    }

    /// The figures as a Markdown table.
    pub(super) fn markdown(&self) -> Vec<String> {
        let mut lines = vec![
            String::new(),
            "| deployed files, responses/s | platform | nginx | hyper alone | axum alone | Caddy | platform / nginx | hyper / nginx |".to_owned(),
            "|---|---:|---:|---:|---:|---:|---:|---:|".to_owned(),
        ];
        lines.extend(self.kinds().map(|(name, of)| {
            let rates = [of.ours, of.nginx, of.hyper, of.axum, of.caddy].map(|rate| rate.cell(0));
            let ratios = [of.ratio, of.hyper_ratio].map(|ratio| ratio.cell(2));
            format!(
                "| {name} | {} | {} |",
                rates.join(" | "),
                ratios.join(" | ")
            )
        }));
        lines
    }
}

/// Starts a server that does nothing but return the file.
fn bare(workspace: &Workspace, folder: &Path, framework: &str) -> Result<Process> {
    let program = workspace.binary(true, "examples/bare_file");
    Process::start(Command::new(program).arg(folder).arg(framework))
}

/// A server that the load is sent to.
struct Server {
    name: &'static str,
    address: String,
    host: String,
    /// The path of the file in brotli.
    path: &'static str,
    tag: String,
}

impl Server {
    fn of(name: &'static str, site: &Site, host: String, path: &'static str) -> Result<Self> {
        let answer = site.ask("GET", &host, path, "Accept-Encoding: br\r\n")?;
        let is_brotli = answer.to_ascii_lowercase().contains("content-encoding: br");
        ensure!(is_brotli, "{name} did not send the file in brotli");
        Ok(Self {
            name,
            address: site.address.to_string(),
            host,
            path,
            tag: entity_tag(&answer).with_context(|| format!("{name}'s file has no ETag"))?,
        })
    }

    /// The loads of each kind.
    fn loads(&self, folder: &Path) -> Result<[Load; 3]> {
        let accept = [("Host", self.host.as_str()), ("Accept-Encoding", "br")];
        let tagged = [&accept[..], &[("If-None-Match", self.tag.as_str())]].concat();
        let load = |kind: &str, path: &str, headers: &[(&str, &str)]| {
            let script = folder.join(format!("{}-{kind}.lua", self.name));
            std::fs::write(&script, wrk::get_script(headers))
                .with_context(|| format!("cannot write {}", script.display()))?;
            anyhow::Ok(Load {
                name: self.name,
                url: format!("http://{}{path}", self.address),
                script,
            })
        };
        Ok([
            load("file", self.path, &accept)?,
            load("unchanged", self.path, &tagged)?,
            load("large", "/large.bin", &accept)?,
        ])
    }
}

/// Measures all of it.
pub(super) fn measure(workspace: &Workspace, folder: &Path) -> Result<Hosting> {
    let folder = folder.join("hosting");
    std::fs::create_dir_all(&folder)?;
    let ours =
        Process::start(Command::new(workspace.binary(true, "examples/hosted_file")).arg(&folder))?;
    let (nginx, caddy) = (FileServer::nginx(&folder)?, FileServer::caddy(&folder)?);
    let hyper = bare(workspace, &folder, "hyper")?;
    let axum = bare(workspace, &folder, "axum")?;
    let any = || "localhost".to_owned();
    let servers: [Server; SERVERS] = [
        Server::of("ours", &ours, ours.host("bench"), "/file.js")?,
        Server::of("nginx", &nginx.site(), any(), "/file.js.br")?,
        Server::of("hyper", &hyper, any(), "/file.js")?,
        Server::of("axum", &axum, any(), "/file.js")?,
        Server::of("caddy", &caddy.site(), any(), "/file.js")?,
    ];
    let mut loads = Vec::new();
    for server in &servers {
        loads.push(server.loads(&folder)?);
    }
    let mut rounds = Vec::new();
    // The first turn is a warm-up and does not count.
    for number in 0..=ROUNDS {
        terminal::note(&format!("bench: hosting, round {number} of {ROUNDS}"));
        let mut rates = [[0.0; SERVERS]; 3];
        for (kind, rates) in rates.iter_mut().enumerate() {
            for place in super::turn(number, SERVERS) {
                let load = &loads[place][kind];
                let sample = wrk::run(load).with_context(|| format!("{} failed", load.name))?;
                rates[place] = sample.per_second;
            }
        }
        if number > 0 {
            rounds.push(rates);
        }
    }
    Ok(medians(&rounds))
}

fn medians(rounds: &[[[f64; SERVERS]; 3]]) -> Hosting {
    let answers = |kind: usize| {
        let rate = |server: usize| median_of(rounds, |round| round[kind][server]);
        let ratio = |server: usize| median_of(rounds, |round| round[kind][server] / round[kind][1]);
        Answers {
            ours: rate(0),
            nginx: rate(1),
            hyper: rate(2),
            axum: rate(3),
            caddy: rate(4),
            ratio: ratio(0),
            hyper_ratio: ratio(2),
        }
    };
    Hosting {
        file: answers(0),
        unchanged: answers(1),
        large: answers(2),
    }
}

/// The `ETag` in a response's text.
pub(super) fn entity_tag(answer: &str) -> Option<String> {
    answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("etag")
            .then(|| value.trim().to_owned())
    })
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
        let round = |ours, nginx| [[ours, nginx, 2.0 * nginx, nginx, nginx / 2.0]; 3];
        let measured = medians(&[round(9.0, 10.0), round(1.0, 1.0), round(5.0, 2.0)]);
        assert!((measured.file.ratio.value - 1.0).abs() < 1e-9);
        assert!((measured.large.hyper_ratio.value - 2.0).abs() < 1e-9);
    }
}
