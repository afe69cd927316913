//! What `deploy/` has for containers: the files fit together and to the server, and the image's root folder
//! has everything that the server needs. No container engine is needed here; `in_containers` runs one, and
//! `tests/tests/manifests.rs` checks the files by the schemas of Compose and Kubernetes.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use platform_server::config::names::{PREFIX, SETTINGS};
use platform_test_ports::ReservedPort;
use serde_json::Value;

use crate::program::{Server, one_line, program};
use crate::restore::names;

/// The folder of the server's data in every container.
pub(crate) const DATA: &str = "/var/lib/platform";
/// The user without rights.
pub(crate) const USER: u64 = 65_532;

pub(crate) fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(deploy(path)).unwrap()
}

pub(crate) fn yaml(path: &str) -> Value {
    let read: Result<Value, _> = serde_saphyr::from_str(&text(path));
    read.unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn kubernetes(name: &str) -> Value {
    yaml(&format!("kubernetes/{name}.yaml"))
}

/// Returns variables of a YAML object, which are all texts.
fn variables(of: &Value) -> BTreeMap<String, String> {
    let all = of.as_object().unwrap().iter();
    let all = all.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    all.collect()
}

/// Returns the settings that the server reads from these variables.
fn settings_in_force(variables: &BTreeMap<String, String>) -> Result<String, String> {
    for name in variables.keys().filter(|name| name.starts_with(PREFIX)) {
        let is_setting = SETTINGS.iter().any(|setting| setting.variable() == *name);
        assert!(is_setting, "{name} is no setting");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut config = program(folder.path());
    let output = config.envs(variables).arg("config").output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(one_line(&output))
    }
}

/// Secrets as an operator makes them.
fn secrets() -> BTreeMap<String, String> {
    let secrets = [
        (
            "PLATFORM_DATABASE_URL",
            "postgres://platform:x@postgres/platform?sslmode=require",
        ),
        ("PLATFORM_KEY_SECRET", "0123456789abcdef0123456789abcdef"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "key"),
    ];
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    secrets.map(own).into()
}

#[test]
fn the_server_reads_the_settings_of_compose_and_its_container_may_do_little() {
    let compose = yaml("compose.yaml");
    let server = &compose["services"]["platform"];
    let mut all = variables(&server["environment"]);
    all.extend(secrets());
    let shown = settings_in_force(&all).unwrap();
    assert!(shown.contains("https://play.example"), "{shown}");
    assert_eq!(server["user"], format!("{USER}:{USER}"));
    assert_eq!(server["read_only"], true);
    assert_eq!(server["cap_drop"][0], "ALL");
    assert_eq!(server["security_opt"][0], "no-new-privileges:true");
    let checked: Vec<_> = server["healthcheck"]["test"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(checked, ["CMD", "/usr/bin/platform-server", "ready"]);
    assert_eq!(all["PLATFORM_DATA"], DATA);
    assert_eq!(server["volumes"][0], format!("files:{DATA}"));
    // Only Caddy is trusted to say who a visitor is, and it reaches the server where it listens.
    let caddy = &compose["services"]["caddy"];
    let address = caddy["networks"]["inside"]["ipv4_address"]
        .as_str()
        .unwrap();
    assert_eq!(all["PLATFORM_TRUSTED_PROXIES"], format!("{address}/32"));
    let upstream = caddy["environment"]["UPSTREAM"].as_str().unwrap();
    let (host, port) = upstream.split_once(':').unwrap();
    assert_eq!(host, "platform");
    assert!(all["PLATFORM_LISTEN"].ends_with(&format!(":{port}")));
    assert!(text("caddy/Caddyfile").contains("reverse_proxy {$UPSTREAM:"));
    // Nothing but Caddy can be reached from outside, and everything is started again.
    for (name, service) in compose["services"].as_object().unwrap() {
        assert_eq!(service.get("ports").is_some(), name == "caddy", "{name}");
        assert_eq!(service["restart"], "always", "{name}");
        for other in service["depends_on"].as_object().into_iter().flatten() {
            let other = &compose["services"][other.0];
            assert!(other.get("healthcheck").is_some(), "{name}");
        }
    }
}

#[test]
fn the_nodes_of_kubernetes_read_their_settings_and_may_do_little() {
    let pod = kubernetes("deployment")["spec"]["template"]["spec"].take();
    // Kubernetes would otherwise add variables such as PLATFORM_PORT, which the server refuses.
    assert_eq!(pod["enableServiceLinks"], false);
    assert_eq!(pod["automountServiceAccountToken"], false);
    let context = &pod["securityContext"];
    assert_eq!(context["runAsNonRoot"], true);
    assert_eq!(context["runAsUser"], USER);
    assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0];
    let restricted = &container["securityContext"];
    assert_eq!(restricted["readOnlyRootFilesystem"], true);
    assert_eq!(restricted["allowPrivilegeEscalation"], false);
    assert_eq!(restricted["capabilities"]["drop"][0], "ALL");
    assert_eq!(container["volumeMounts"][0]["mountPath"], DATA);

    let settings = kubernetes("settings");
    let mut all = variables(&settings["data"]);
    let example = kubernetes("secrets.example");
    for from in container["envFrom"].as_array().unwrap() {
        let (kind, source) = from.as_object().unwrap().iter().next().unwrap();
        let file = if kind == "configMapRef" {
            &settings
        } else {
            &example
        };
        assert_eq!(source["name"], file["metadata"]["name"]);
    }
    let ports: BTreeMap<_, _> = container["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| {
            (
                port["name"].as_str().unwrap(),
                port["containerPort"].as_u64().unwrap(),
            )
        })
        .collect();
    let own = container["env"].as_array().unwrap();
    for (name, port) in [
        ("PLATFORM_LISTEN", "http"),
        ("PLATFORM_OPERATIONS_LISTEN", "operations"),
    ] {
        let own = own.iter().find(|own| own["name"] == name).unwrap();
        let value = own["value"]
            .as_str()
            .unwrap()
            .replace("$(POD_IP)", "10.244.1.5");
        assert!(value.ends_with(&format!(":{}", ports[port])), "{value}");
        all.insert(name.to_owned(), value);
    }
    assert_eq!(all["PLATFORM_DATA"], DATA);
    let delay: u64 = all["PLATFORM_SHUTDOWN_DELAY_SECONDS"].parse().unwrap();
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > delay + 10);

    let named: Vec<_> = variables(&example["stringData"]).into_keys().collect();
    assert_eq!(named, secrets().into_keys().collect::<Vec<_>>());
    let mut unfinished = all.clone();
    unfinished.extend(variables(&example["stringData"]));
    settings_in_force(&unfinished).unwrap_err();
    all.extend(secrets());
    let shown = settings_in_force(&all).unwrap();
    assert!(shown.contains("s3://games/platform"), "{shown}");
}

#[test]
fn the_probes_ask_what_the_server_answers() {
    let container = kubernetes("deployment")["spec"]["template"]["spec"]["containers"][0].take();
    let data = tempfile::tempdir().unwrap();
    // `ready` is told the port before the server listens.
    let reserved = ReservedPort::take().unwrap();
    let port = reserved.number();
    let mut command = program(data.path());
    command.env("PLATFORM_OPERATIONS_LISTEN", format!("0.0.0.0:{port}"));
    let server = Server::start(&mut command);
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["port"], "operations", "{probe}");
        let answer = get(port, asked["path"].as_str().unwrap());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{probe}: {answer}");
    }
    let ask = || {
        let mut ready = program(data.path());
        ready.env("PLATFORM_OPERATIONS_LISTEN", format!("0.0.0.0:{port}"));
        ready.arg("ready").output().unwrap()
    };
    let ready = ask();
    assert!(ready.status.success(), "{ready:?}");
    assert_eq!(ready.stdout, b"{\"ready\":true,\"degraded\":[]}\n");
    server.stop("-KILL");
    let gone = ask();
    assert_eq!(gone.status.code(), Some(1));
    assert!(one_line(&gone).contains("does not answer"), "{gone:?}");
    let nowhere = program(data.path()).arg("ready").output().unwrap();
    assert!(
        one_line(&nowhere).contains("PLATFORM_OPERATIONS_LISTEN"),
        "{nowhere:?}"
    );
}

fn get(port: u16, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn every_object_of_kubernetes_is_about_the_same_pods() {
    let deployment = kubernetes("deployment");
    let template = &deployment["spec"]["template"];
    let labels = &template["metadata"]["labels"];
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    let replicas = deployment["spec"]["replicas"].as_u64().unwrap();
    assert!(replicas >= 2);
    let budget = kubernetes("disruption-budget");
    assert_eq!(&budget["spec"]["selector"]["matchLabels"], labels);
    assert!(budget["spec"]["minAvailable"].as_u64().unwrap() < replicas);
    let service = kubernetes("service");
    assert_eq!(&service["spec"]["selector"], labels);
    let policy = kubernetes("network-policy");
    assert_eq!(&policy["spec"]["podSelector"]["matchLabels"], labels);
    let ports = template["spec"]["containers"][0]["ports"]
        .as_array()
        .unwrap();
    let is_named = |name: &Value| ports.iter().any(|port| &port["name"] == name);
    assert!(is_named(&service["spec"]["ports"][0]["targetPort"]));
    for rule in policy["spec"]["ingress"].as_array().unwrap() {
        assert!(is_named(&rule["ports"][0]["port"]), "{rule}");
    }
    // Visitors never reach the operator's listener.
    assert_eq!(service["spec"]["ports"].as_array().unwrap().len(), 1);
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "http");
    // Monitoring finds each node, also one that is not ready.
    let operations = kubernetes("operations-service");
    let spec = &operations["spec"];
    assert_eq!(&spec["selector"], labels);
    assert_eq!(spec["clusterIP"], "None");
    assert_eq!(spec["publishNotReadyAddresses"], true);
    assert_eq!(spec["ports"].as_array().unwrap().len(), 1);
    assert_eq!(spec["ports"][0]["targetPort"], "operations");
    let scraped = |port: &Value| {
        port["name"] == "operations" && port["containerPort"] == spec["ports"][0]["port"]
    };
    assert!(ports.iter().any(scraped));
    // One command applies all of them, but no secrets.
    let all = kubernetes("kustomization")["resources"].take();
    let mut all: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file.as_str().unwrap())
        .collect();
    all.extend([
        "ingress.example.yaml",
        "kustomization.yaml",
        "secrets.example.yaml",
    ]);
    all.sort_unstable();
    assert_eq!(all, names(&deploy("kubernetes")));
}

#[test]
fn the_ingress_leads_every_name_of_the_platform_to_the_visitors_service() {
    let ingress = kubernetes("ingress.example");
    assert_eq!(ingress["apiVersion"], "networking.k8s.io/v1");
    let settings = kubernetes("settings");
    let origin = settings["data"]["PLATFORM_ORIGIN"].as_str().unwrap();
    let host = origin.strip_prefix("https://").unwrap();
    let names = [host.to_owned(), format!("*.{host}")];
    let spec = &ingress["spec"];
    assert_eq!(spec["tls"][0]["hosts"], serde_json::json!(names));
    let rules = spec["rules"].as_array().unwrap();
    let hosts: Vec<_> = rules
        .iter()
        .map(|rule| rule["host"].as_str().unwrap())
        .collect();
    assert_eq!(hosts, names);
    let service = kubernetes("service");
    for rule in rules {
        let paths = rule["http"]["paths"].as_array().unwrap();
        assert_eq!(paths.len(), 1);
        assert_eq!(paths[0]["path"], "/");
        assert_eq!(paths[0]["pathType"], "Prefix");
        let backend = &paths[0]["backend"]["service"];
        assert_eq!(backend["name"], service["metadata"]["name"]);
        assert_eq!(backend["port"]["name"], service["spec"]["ports"][0]["name"]);
    }
    // Values of annotations are texts, or Kubernetes refuses the object.
    let annotations = variables(&ingress["metadata"]["annotations"]);
    assert_eq!(
        annotations["nginx.ingress.kubernetes.io/proxy-buffering"],
        "off"
    );
    assert_eq!(
        annotations["nginx.ingress.kubernetes.io/proxy-body-size"],
        "0"
    );
}

/// Makes a release whose only program is the server of this build, with its checksum.
pub(crate) fn make_release(folder: &Path, server: &Path) {
    std::os::unix::fs::symlink(server, folder.join("platform-server")).unwrap();
    std::os::unix::fs::symlink(deploy(""), folder.join("deploy")).unwrap();
    let sum = Command::new("sha256sum")
        .arg("platform-server")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(sum.status.success(), "{sum:?}");
    std::fs::write(folder.join("SHA256SUMS"), sum.stdout).unwrap();
}

#[test]
fn the_image_has_everything_that_the_server_needs_and_no_other_program() {
    let folder = tempfile::tempdir().unwrap();
    let [release, image] = ["release", "image"].map(|name| folder.path().join(name));
    std::fs::create_dir(&release).unwrap();
    make_release(&release, Path::new(env!("CARGO_BIN_EXE_platform-server")));
    let prepare = || {
        let mut prepare = Command::new(deploy("container/prepare.sh"));
        prepare.args([&release, &image]).output().unwrap()
    };
    let made = prepare();
    assert!(made.status.success(), "{made:?}");
    // What is there already is not mixed with something newer.
    assert!(one_line(&prepare()).contains("is there already"));
    let root = image.join("system");
    let programs: Vec<_> = std::fs::read_dir(root.join("usr/bin")).unwrap().collect();
    assert_eq!(programs.len(), 1);
    let within = |arguments: &[&str]| {
        // Not even `PATH` is needed.
        let mut chroot = Command::new("unshare");
        chroot
            .args(["--user", "--map-root-user", "/usr/sbin/chroot"])
            .arg(&root);
        chroot
            .arg("/usr/bin/platform-server")
            .args(arguments)
            .env_clear();
        chroot.env("PLATFORM_DATA", DATA).output().unwrap()
    };
    let version = within(&["--version"]);
    assert!(version.status.success(), "{version:?}");
    let config = within(&["config"]);
    assert!(config.status.success(), "{config:?}");

    let users = std::fs::read_to_string(root.join("etc/passwd")).unwrap();
    assert!(users.contains(&format!(":{USER}:{USER}:")), "{users}");
}

#[test]
fn a_damaged_release_becomes_no_image() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    make_release(
        folder.path(),
        Path::new(env!("CARGO_BIN_EXE_platform-server")),
    );
    let sums = folder.path().join("SHA256SUMS");
    let sum = std::fs::read_to_string(&sums).unwrap();
    let digest = sum.split(' ').next().unwrap();
    std::fs::write(&sums, sum.replace(digest, &"0".repeat(digest.len()))).unwrap();
    let made = Command::new(deploy("container/prepare.sh"))
        .args([folder.path(), &image])
        .output()
        .unwrap();
    assert!(!made.status.success(), "{made:?}");
    assert!(!image.exists());
}
