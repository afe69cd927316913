//! An ACME server for one test: Let's Encrypt's own for tests, pebble, with a DNS server for which every name
//! is this machine. Both end with the test, or with the process, however that ends. A test can stop,
//! continue, kill and restart the ACME server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "everything here is for tests"
)]

mod process;
mod request;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use platform_test_ports::ReservedPort;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tempfile::TempDir;

use self::process::Process;
use self::request::get;

/// How to get pebble, if there is none.
const ADVICE: &str = "these tests need pebble: run `cargo xtask test`, which installs it, or `sudo apt-get install \
     pebble`, or have `pebble` and `pebble-challtestsrv` on the PATH";
/// How long a server may take until its first answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running ACME server, which knows nothing yet.
#[derive(Debug)]
pub struct TestPebble {
    folder: TempDir,
    dns: Dns,
    server: Option<Process>,
    /// The ports of the ACME server and of its management.
    ports: (ReservedPort, ReservedPort),
}

/// The DNS server.
#[derive(Debug)]
struct Dns {
    _server: Process,
    port: ReservedPort,
    management: ReservedPort,
}

impl Dns {
    fn start(folder: &Path) -> Self {
        let [port, management] = [(); 2].map(|()| ReservedPort::take().unwrap());
        let arguments = [
            "pebble-challtestsrv",
            "-defaultIPv4",
            "127.0.0.1",
            "-defaultIPv6",
            "",
            "-dns01",
            &port.address().to_string(),
            "-management",
            &management.address().to_string(),
            "-http01",
            "",
            "-https01",
            "",
            "-tlsalpn01",
            "",
        ];
        let log = File::create(folder.join("dns.log")).unwrap();
        let server = Process::start(&arguments, &[], log);
        Self {
            _server: server,
            port,
            management,
        }
    }
}

impl TestPebble {
    /// Starts a server that proves names at this port of this machine.
    ///
    /// # Panics
    /// There is no pebble; the message says how to get it.
    #[must_use]
    pub fn start(tls_port: u16) -> Self {
        Self::with_accounts(tls_port, None)
    }

    /// Starts one that has an account for each user beforehand, and none for others: this one, with the
    /// identifier and the text of its key (RFC 8555 §7.3.4).
    ///
    /// # Panics
    /// There is no pebble; the message says how to get it.
    #[must_use]
    pub fn bound_to(tls_port: u16, account: (&str, &str)) -> Self {
        Self::with_accounts(tls_port, Some(account))
    }

    fn with_accounts(tls_port: u16, account: Option<(&str, &str)>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        certify(folder.path());
        let reserve = || ReservedPort::take().unwrap();
        let ports = (reserve(), reserve());
        let path = |name: &str| folder.path().join(name).display().to_string();
        let settings = json!({ "pebble": {
            "listenAddress": ports.0.address().to_string(),
            "managementListenAddress": ports.1.address().to_string(),
            "certificate": path("server.pem"),
            "privateKey": path("server.key"),
            "httpPort": 1,
            "tlsPort": tls_port,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": account.is_some(),
            "externalAccountMACKeys": account.into_iter().collect::<BTreeMap<_, _>>(),
        }});
        std::fs::write(folder.path().join("pebble.json"), settings.to_string()).unwrap();
        let dns = Dns::start(folder.path());
        let mut pebble = Self {
            folder,
            dns,
            server: None,
            ports,
        };
        pebble.restart();
        pebble
    }

    /// Starts the server again after [`TestPebble::kill`]. It has forgotten everything, and has other
    /// root certificates.
    ///
    /// # Panics
    /// It does not answer.
    pub fn restart(&mut self) {
        self.kill();
        let settings = self.folder.path().join("pebble.json");
        let dns = self.dns.port.address().to_string();
        let arguments = [
            "pebble",
            "-config",
            settings.to_str().unwrap(),
            "-dnsserver",
            &dns,
        ];
        let fast = [
            ("PEBBLE_VA_NOSLEEP", "1"),
            ("PEBBLE_WFE_NONCEREJECT", "0"),
            ("PEBBLE_AUTHZREUSE", "0"),
        ];
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .unwrap();
        self.server = Some(Process::start(&arguments, &fast, log));
        request::wait_for(PATIENCE, || self.get(&self.ports.0, "/dir").ok())
            .unwrap_or_else(|| panic!("pebble does not answer; {ADVICE}"));
    }

    /// Ends the server: nobody answers at its address any more.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Returns the address of its directory.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.ports.0.address())
    }

    /// Returns the file of the root certificate that verifies the server itself.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Returns the root certificate of what it issues, PEM.
    ///
    /// # Panics
    /// It does not answer.
    #[must_use]
    pub fn root(&self) -> String {
        self.get(&self.ports.1, "/roots/0").unwrap()
    }

    /// Returns how many orders it has got, those before a restart included.
    ///
    /// # Panics
    /// Its log cannot be read.
    #[must_use]
    pub fn orders(&self) -> usize {
        let log = std::fs::read_to_string(self.log()).unwrap();
        log.matches("Added order").count()
    }

    /// Returns the port where a program can publish TXT records: `POST /set-txt` and `/clear-txt`.
    #[must_use]
    pub const fn txt_port(&self) -> u16 {
        self.dns.management.number()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("pebble.log")
    }

    fn get(&self, port: &ReservedPort, path: &str) -> std::io::Result<String> {
        get(&self.ca(), port.number(), path)
    }
}

/// Writes a certificate for this machine, and who signed it.
fn certify(folder: &Path) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names).unwrap();
    let certificate = certificate.signed_by(&key, &authority).unwrap();
    for (name, content) in [
        ("ca.pem", authority.pem()),
        ("server.pem", certificate.pem()),
        ("server.key", key.serialize_pem()),
    ] {
        std::fs::write(folder.join(name), content).unwrap();
    }
}
