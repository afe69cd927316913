//! `deploy/compose.yaml` without the images that it would fetch: the server is a container of its image, with
//! everything that the file says of it; Caddy, PostgreSQL and Redis are Debian's, with the file's settings, names
//! and addresses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use platform_test_postgres::TestDatabase;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::time::Instant;

use super::alone::{ip, run};
use super::engine::{Engine, IMAGE};
use crate::behind_proxies::configuration;
use crate::program::Server;
use crate::tls_visitor::{NAME, NEVER, Visitor, certify};

/// The file, and the folder in which its services run.
pub(super) struct Compose {
    file: Value,
    folder: tempfile::TempDir,
}

/// A service that is no container. It ends with this.
pub(super) struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|text| text.as_str().unwrap()).collect()
}

/// Returns a value as the text that a container gets.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

impl Compose {
    /// Reads the file with the name of this platform, and makes its network.
    pub(super) fn read() -> Self {
        let text = configuration("compose.yaml", &[("play.example", NAME.to_owned())]);
        let compose = Self {
            file: serde_saphyr::from_str(&text).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        let (gateway, caddy, other) = (compose.gateway(), compose.caddy(), compose.other());
        ip("link set lo up");
        for address in [&gateway, &caddy, &other] {
            ip(&format!("address add {address}/32 dev lo"));
        }
        // Who reaches another service comes from the address of Caddy.
        ip(&format!(
            "route replace local {other} dev lo table local src {caddy}"
        ));
        let services = compose.file["services"].as_object().unwrap().keys();
        let names: String = services.map(|name| format!("{other} {name}\n")).collect();
        let hosts = compose.path("hosts");
        std::fs::write(&hosts, format!("127.0.0.1 localhost\n{names}")).unwrap();
        run(Command::new("mount")
            .args(["--bind"])
            .arg(hosts)
            .arg("/etc/hosts"));
        compose
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn service(&self, name: &str) -> &Value {
        &self.file["services"][name]
    }

    fn caddy(&self) -> String {
        plain(&self.service("caddy")["networks"]["inside"]["ipv4_address"])
    }

    /// Returns a part of the network's addresses.
    fn range(&self, name: &str) -> String {
        let range = plain(&self.file["networks"]["inside"]["ipam"]["config"][0][name]);
        range.split_once('/').unwrap().0.to_owned()
    }

    /// Returns the address of all services but Caddy.
    fn other(&self) -> String {
        self.range("ip_range")
    }

    /// Returns the address of the machine, from which visitors come.
    pub(super) fn gateway(&self) -> String {
        let subnet = self.range("subnet");
        format!("{}.1", subnet.strip_suffix(".0").unwrap())
    }

    /// Waits until the health check of a service that is no container succeeds.
    fn wait_for(&self, name: &str, variables: &[(&str, &str)]) {
        let check = texts(&self.service(name)["healthcheck"]["test"]);
        assert_eq!(check[0], "CMD");
        let start = Instant::now();
        loop {
            let mut ask = Command::new(check[1]);
            ask.args(&check[2..])
                .envs(variables.iter().copied())
                .stdin(Stdio::null());
            let answer = ask.output().unwrap();
            if answer.status.success() {
                return;
            }
            assert!(start.elapsed() < NEVER, "{name}: {answer:?}");
            std::thread::yield_now();
        }
    }

    /// Starts Redis with the file's command.
    pub(super) fn redis(&self) -> Service {
        let command = texts(&self.service("redis")["command"]);
        let mut redis = Command::new(command[0]);
        redis
            .args(&command[1..])
            // As in its image, whose network is its own.
            .args([
                "--bind",
                "127.0.0.1",
                &self.other(),
                "--protected-mode",
                "no",
            ])
            .current_dir(self.folder.path());
        let redis = start(&mut redis);
        self.wait_for("redis", &[]);
        redis
    }

    /// Leads the address of PostgreSQL to the database, and writes the secrets.
    pub(super) async fn postgres(&self, database: &TestDatabase) {
        let listener = TcpListener::bind((self.other(), 5432)).await.unwrap();
        let socket = database.socket();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let socket = socket.clone();
                tokio::spawn(async move {
                    let mut server = UnixStream::connect(socket).await?;
                    copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
        self.wait_for("postgres", &[("PGHOST", "postgres")]);
        let user = plain(&self.service("postgres")["environment"]["POSTGRES_USER"]);
        let secrets = format!(
            "PLATFORM_DATABASE_URL=postgres://{user}:0123456789abcdef@postgres/{}\n\
             PLATFORM_KEY_SECRET=0123456789abcdef0123456789abcdef\n",
            database.name()
        );
        std::fs::write(self.path("secrets.env"), secrets).unwrap();
    }

    /// Starts the server, and waits until it is healthy.
    pub(super) fn platform(&self, engine: &Engine) -> Server {
        let service = self.service("platform");
        let image = plain(&service["image"]);
        assert_eq!(image, format!("{IMAGE}:latest"));
        let mut run = engine.run("platform");
        run.args(options(service, self.folder.path())).arg(image);
        let server = Server::start(&mut run);
        assert!(engine.is_healthy("platform"));
        server
    }

    /// Starts Caddy, and waits until it passes requests on.
    pub(super) async fn caddy_with_certificates(&self) -> (Service, Visitor) {
        let caddy = self.service("caddy");
        let volumes = texts(&caddy["volumes"]);
        let source = |place: &str| {
            let end = format!(":{place}:ro");
            let mut sources = volumes
                .iter()
                .filter_map(|volume| volume.strip_suffix(&end));
            sources.next().unwrap().strip_prefix("./").unwrap()
        };
        let place = "/etc/ssl/platform";
        let certificates = self.path(source(place));
        std::fs::create_dir(&certificates).unwrap();
        let client = certify(&certificates);
        let changes = [
            ("play.example", NAME.to_owned()),
            (place, certificates.display().to_string()),
        ];
        let file = configuration(source("/etc/caddy/Caddyfile"), &changes);
        std::fs::write(self.path("Caddyfile"), file).unwrap();
        let mut run = Command::new("caddy");
        run.args(["run", "--adapter", "caddyfile", "--config", "Caddyfile"])
            .env("HOME", self.folder.path())
            .current_dir(self.folder.path());
        for (name, value) in caddy["environment"].as_object().unwrap() {
            run.env(name, plain(value));
        }
        let service = start(&mut run);
        let at = |port: u16| SocketAddr::new(self.gateway().parse().unwrap(), port);
        assert_eq!(texts(&caddy["ports"]), ["80:80", "443:443"]);
        let visitor = Visitor {
            https: at(443),
            http: at(80),
            client,
        };
        let start = Instant::now();
        let answers = async || {
            let answer = visitor.try_ask("GET /", "", "").await;
            answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
        };
        while !answers().await {
            assert!(start.elapsed() < NEVER, "Caddy does not start");
            tokio::task::yield_now().await;
        }
        (service, visitor)
    }
}

fn start(command: &mut Command) -> Service {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Service(quiet.spawn().unwrap())
}

/// Returns everything that the file says of a service as options of `podman run`.
///
/// # Panics
/// The file says something new.
fn options(service: &Value, folder: &Path) -> Vec<String> {
    let mut options = Vec::new();
    let mut add = |name: &str, value: &str| options.push(format!("--{name}={value}"));
    for (key, value) in service.as_object().unwrap() {
        match key.as_str() {
            // Said after the options, and done by the test.
            "image" | "depends_on" | "restart" => {}
            // The network of the test has its names and addresses.
            "networks" => assert_eq!(*value, json!(["inside"])),
            "user" => add("user", &plain(value)),
            "read_only" => add("read-only", &plain(value)),
            "stop_grace_period" => {
                add("stop-timeout", plain(value).strip_suffix('s').unwrap());
            }
            "environment" => {
                for (name, value) in value.as_object().unwrap() {
                    add("env", &format!("{name}={}", plain(value)));
                }
            }
            "healthcheck" => {
                for (key, value) in value.as_object().unwrap() {
                    match (key.as_str(), value) {
                        ("test", Value::Array(words)) if words[0] == "CMD" => {
                            add("health-cmd", &json!(words[1..]).to_string());
                        }
                        ("interval" | "start_period", Value::String(time)) => {
                            add(&format!("health-{}", key.replace('_', "-")), time);
                        }
                        _ => panic!("healthcheck: {key}: {value}"),
                    }
                }
            }
            "env_file" => {
                for file in texts(value) {
                    add("env-file", folder.join(file).to_str().unwrap());
                }
            }
            "volumes" | "cap_drop" | "security_opt" => {
                let name = key.strip_suffix('s').unwrap_or(key).replace('_', "-");
                for value in texts(value) {
                    add(&name, value);
                }
            }
            _ => panic!("{key} is not tested: {value}"),
        }
    }
    options
}
