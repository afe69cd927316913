//! What `setup` writes: the settings, the secret that seals keys, and the sockets of a server that speaks TLS.

use std::collections::HashMap;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use platform_server::config::tls::TlsMode;
use platform_server::config::{Config, load};
use platform_server::entropy::Entropy;
use platform_server::origin::PlatformOrigin;
use toml_edit::{DocumentMut, Item, Value};
use zeroize::Zeroizing;

use crate::Failure;

/// The listener of operators, unless the settings have another one.
const OPERATIONS: &str = "127.0.0.1:9090";
/// The setting and the variable of the secret.
const KEY_SECRET: (&str, &str) = ("key_secret", "PLATFORM_KEY_SECRET");
/// The settings of TLS: where the server listens for visitors, and redirects them.
const LISTEN: &str = "[::]:443";
const REDIRECT_LISTEN: &str = "[::]:80";

/// Where the Debian package has its files.
pub(super) struct Files {
    settings: PathBuf,
    secrets: PathBuf,
    sockets: PathBuf,
}

/// Files with their new contents, which the server accepts.
pub(super) struct Made {
    files: [(PathBuf, Zeroizing<String>, Readers); 3],
    /// The listener of operators.
    pub(super) operations: SocketAddr,
}

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Its owner alone.
    Owner,
    /// Everybody, unless the file is there with other rights.
    AsBefore,
}

impl Files {
    /// The files below a root folder.
    pub(super) fn below(root: &Path) -> Self {
        Self {
            settings: root.join("etc/platform/platform.toml"),
            secrets: root.join("etc/platform/secrets.env"),
            sockets: root.join("etc/systemd/system/platform-server.socket.d/tls.conf"),
        }
    }

    /// Makes the contents for a platform at this address. What the files have of other settings stays.
    ///
    /// # Errors
    /// The package is not installed, the settings are those of another platform, or the server would
    /// refuse them.
    pub(super) fn make(
        &self,
        origin: &PlatformOrigin,
        email: &str,
        entropy: &dyn Entropy,
    ) -> Result<Made, Failure> {
        let before = read(&self.settings)?.ok_or_else(|| {
            format!(
                "there is no {}; `setup` is for machines with the Debian package, which installs it",
                self.settings.display()
            )
        })?;
        let named = |problem| format!("{}: {problem}", self.settings.display());
        let settings = with_tls(&before, origin, email).map_err(named)?;
        let mut secrets = read(&self.secrets)?.unwrap_or_default();
        let has_secret = settings.contains_key(KEY_SECRET.0);
        if !has_secret && !variables(&secrets).contains_key(KEY_SECRET.1) {
            secrets = with_secret(secrets, entropy);
        }
        let settings = settings.to_string();
        let config = load::from_parts(Some(&settings), &variables(&secrets)).map_err(|error| {
            let (settings, secrets) = (self.settings.display(), self.secrets.display());
            format!("{settings} with {secrets}: {error}")
        })?;
        if let Some(other) = overridden(&config, origin) {
            return Err(format!(
                "{} sets {other} to another value; remove the line, `setup` writes the setting to {}",
                self.secrets.display(),
                self.settings.display()
            ));
        }
        let operations = config
            .operations_listen
            .ok_or("no listener for operators")?;
        let sockets = sockets(operations);
        Ok(Made {
            files: [
                (self.secrets.clone(), secrets, Readers::Owner),
                (self.settings.clone(), settings.into(), Readers::AsBefore),
                (self.sockets.clone(), sockets.into(), Readers::AsBefore),
            ],
            operations,
        })
    }
}

impl Made {
    /// Writes the files whose contents are new, each completely or not at all. Returns their paths.
    ///
    /// # Errors
    /// One cannot be written.
    pub(super) fn write(&self) -> Result<Vec<String>, Failure> {
        let mut written = Vec::new();
        for (path, text, readers) in &self.files {
            let path = path.as_path();
            if read(path)?.is_some_and(|before| *before == **text) && !is_open(path, *readers) {
                continue;
            }
            replace(path, text, *readers).map_err(|error| {
                format!("cannot write {}: {error}; run this as root", path.display())
            })?;
            written.push(path.display().to_string());
        }
        Ok(written)
    }

    /// When the last of the files was written, by whomever.
    ///
    /// # Errors
    /// One is not there.
    pub(super) fn written_at(&self) -> Result<SystemTime, Failure> {
        let mut last = SystemTime::UNIX_EPOCH;
        for (path, ..) in &self.files {
            let written = std::fs::metadata(path).and_then(|now| now.modified());
            let unread = |error| format!("cannot read {}: {error}", path.display());
            last = last.max(written.map_err(unread)?);
        }
        Ok(last)
    }
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Zeroizing<String>>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!(
            "cannot read {}: {error}; run this as root",
            path.display()
        )),
    }
}

/// Whether others can read a file that is its owner's alone.
fn is_open(path: &Path, readers: Readers) -> bool {
    let others = std::fs::metadata(path).is_ok_and(|now| now.mode() & 0o077 != 0);
    readers == Readers::Owner && others
}

/// Puts a file with this text in the place of another one.
fn replace(path: &Path, text: &str, readers: Readers) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let new = path.with_extension("new");
    // A file that is left of an interrupted attempt may have other rights.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::OpenOptions::new();
    // Whatever the umask says, the rights are those that are set below.
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    if readers == Readers::AsBefore {
        let before = std::fs::metadata(path).ok();
        if let Some(before) = &before {
            fchown(&file, Some(before.uid()), Some(before.gid()))?;
        }
        let mode = before.map_or(0o644, |before| before.mode() & 0o777);
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)
}

/// Returns the settings with those of TLS; comments and other settings stay.
fn with_tls(text: &str, origin: &PlatformOrigin, email: &str) -> Result<DocumentMut, Failure> {
    let document = text.parse::<DocumentMut>();
    let mut document = document.map_err(|error| error.message().to_owned())?;
    let origin = origin.to_string();
    for (name, wanted, why) in [
        (
            "origin",
            origin.as_str(),
            "docs/hosting.md, “Moving to another name”, says how to change it",
        ),
        (
            "tls",
            "acme",
            "`setup` is for certificates from an ACME server; remove it first",
        ),
    ] {
        let there = document.get(name).and_then(|item| item.as_str());
        if let Some(other) = there.filter(|there| *there != wanted) {
            return Err(format!("{name} is {other} already; {why}"));
        }
    }
    for (name, new) in [
        ("origin", origin.as_str()),
        ("listen", LISTEN),
        ("redirect_listen", REDIRECT_LISTEN),
        ("tls", "acme"),
        ("acme_email", email),
    ] {
        set(&mut document, name, new);
    }
    if !document.contains_key("operations_listen") {
        set(&mut document, "operations_listen", OPERATIONS);
    }
    Ok(document)
}

/// Sets a setting. The comment behind it stays.
fn set(document: &mut DocumentMut, name: &str, new: &str) {
    let mut new = Value::from(new);
    if let Some(before) = document.get(name).and_then(Item::as_value) {
        *new.decor_mut() = before.decor().clone();
    }
    document[name] = Item::Value(new);
}

/// Returns the variable that sets another value than the settings of TLS for this address, if one does.
fn overridden(config: &Config, origin: &PlatformOrigin) -> Option<&'static str> {
    let redirects = config
        .tls
        .redirect_listen
        .map(|address| address.to_string());
    let wrong = [
        ("PLATFORM_ORIGIN", config.origin.as_ref() != Some(origin)),
        ("PLATFORM_TLS", config.tls.mode != TlsMode::Acme),
        ("PLATFORM_LISTEN", config.listen.to_string() != LISTEN),
        (
            "PLATFORM_REDIRECT_LISTEN",
            redirects.as_deref() != Some(REDIRECT_LISTEN),
        ),
    ];
    let mut wrong = wrong.iter().filter(|(_, is_wrong)| *is_wrong);
    wrong.next().map(|(name, _)| *name)
}

/// Returns the secrets with a new one for the keys.
fn with_secret(mut text: Zeroizing<String>, entropy: &dyn Entropy) -> Zeroizing<String> {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let secret = Zeroizing::new(entropy.bytes::<32>());
    let secret = Zeroizing::new(base16ct::lower::encode_string(secret.as_slice()));
    text.push_str(
        "# Seals the platform's keys in the store: keep a copy of it apart from the backups.\n",
    );
    for part in [KEY_SECRET.1, "=", secret.as_str(), "\n"] {
        text.push_str(part);
    }
    text
}

/// The variables of an environment file (systemd.exec(5)).
fn variables(text: &str) -> HashMap<String, String> {
    let lines = text.lines().map(str::trim);
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs
        .filter(|(name, _)| !name.starts_with(['#', ';']))
        .map(|(name, value)| {
            let bare = value.trim().trim_matches(['"', '\'']);
            (name.to_owned(), bare.to_owned())
        })
        .collect()
}

/// What replaces the sockets of `platform-server.socket`.
fn sockets(operations: SocketAddr) -> String {
    format!(
        "# Written by `platform-server setup`: visitors over TLS, and the operator.\n\
         [Socket]\nListenStream=\nListenStream=443\nListenStream={operations}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use platform_server::entropy::SystemEntropy;

    use super::*;

    const EMAIL: &str = "operator@play.example";

    /// A machine with the settings of the package.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let folder = root.path().join("etc/platform");
            std::fs::create_dir_all(&folder).unwrap();
            let packaged = include_str!("../../../../deploy/debian/platform.toml");
            std::fs::write(folder.join("platform.toml"), packaged).unwrap();
            Self(root)
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn text(&self, path: &str) -> String {
            std::fs::read_to_string(self.path(path)).unwrap()
        }

        fn set_up(&self, origin: &str) -> Result<Vec<String>, Failure> {
            let files = Files::below(self.0.path());
            let origin = origin.parse().unwrap();
            files.make(&origin, EMAIL, &SystemEntropy)?.write()
        }
    }

    #[test]
    fn the_settings_of_the_package_become_those_of_a_platform_with_tls() {
        let machine = Machine::new();
        assert_eq!(machine.set_up("https://play.example").unwrap().len(), 3);
        let settings = machine.text("etc/platform/platform.toml");
        assert!(settings.starts_with("# The settings of platform-server"));
        assert!(settings.contains("#backup = "), "comments stay: {settings}");
        let secrets = machine.text("etc/platform/secrets.env");
        let config = load::from_parts(Some(&settings), &variables(&secrets)).unwrap();
        assert_eq!(config.origin.unwrap().to_string(), "https://play.example");
        assert_eq!(config.key_secret.unwrap().expose().len(), 64);
        assert_eq!(config.tls.acme.email.as_deref(), Some(EMAIL));
        assert_eq!(config.listen.port(), 443);
        assert_eq!(config.tls.redirect_listen.unwrap().port(), 80);
        let sockets = machine.text("etc/systemd/system/platform-server.socket.d/tls.conf");
        let listening = sockets
            .lines()
            .filter_map(|line| line.strip_prefix("ListenStream="));
        let listening: Vec<&str> = listening.collect();
        assert_eq!(listening, ["", "443", OPERATIONS]);
    }

    #[test]
    fn the_secret_is_readable_by_root_alone_and_never_replaced() {
        let machine = Machine::new();
        machine.set_up("https://play.example").unwrap();
        let path = machine.path("etc/platform/secrets.env");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let first = machine.text("etc/platform/secrets.env");
        // Again, nothing is new.
        assert!(machine.set_up("https://play.example").unwrap().is_empty());
        std::fs::write(&path, format!("{first}AWS_ACCESS_KEY_ID=id\n")).unwrap();
        machine.set_up("https://play.example").unwrap();
        let again = machine.text("etc/platform/secrets.env");
        assert_eq!(again, format!("{first}AWS_ACCESS_KEY_ID=id\n"));
    }

    #[test]
    fn settings_of_the_operator_stay() {
        let machine = Machine::new();
        let own = "operations_listen = \"127.0.0.1:9191\"\nguests_per_address = 200\n\n\
                   [[identity_provider]]\nid = \"own\"\nname = \"Own\"\n\
                   issuer = \"https://id.example\"\nclient_id = \"platform\"\nclient_secret = \"own\"\n";
        std::fs::write(machine.path("etc/platform/platform.toml"), own).unwrap();
        machine.set_up("https://play.example").unwrap();
        let settings = machine.text("etc/platform/platform.toml");
        let config = load::from_parts(Some(&settings), &HashMap::new()).unwrap();
        assert_eq!(config.guests_per_address, 200);
        assert_eq!(config.identity_providers.len(), 1);
        let sockets = machine.text("etc/systemd/system/platform-server.socket.d/tls.conf");
        assert!(
            sockets.contains("ListenStream=127.0.0.1:9191\n"),
            "{sockets}"
        );
    }

    #[test]
    fn secrets_of_services_and_of_the_settings_are_known() {
        let machine = Machine::new();
        let settings = "key_secret = \"0123456789abcdef0123456789abcdef\"\n\
                        listen = \"127.0.0.1:8787\" # nginx\nbackup = \"s3://backups\"\n\n\
                        [[identity_provider]]\nid = \"own\"\nname = \"Own\"\nissuer = \"https://id.example\"\n\
                        client_id = \"platform\"\nclient_secret_env = \"OWN_SECRET\"\n";
        std::fs::write(machine.path("etc/platform/platform.toml"), settings).unwrap();
        let secrets = "# OWN_SECRET=old\nOWN_SECRET='own'\nAWS_ACCESS_KEY_ID=id\n\
                       AWS_SECRET_ACCESS_KEY=key\nAWS_REGION=here\n";
        std::fs::write(machine.path("etc/platform/secrets.env"), secrets).unwrap();
        machine.set_up("https://play.example").unwrap();
        let settings = machine.text("etc/platform/platform.toml");
        assert!(
            settings.contains("listen = \"[::]:443\" # nginx\n"),
            "{settings}"
        );
        // A second secret would win over the one that seals the keys.
        assert_eq!(machine.text("etc/platform/secrets.env"), secrets);
    }

    #[test]
    fn settings_keep_their_readers_and_secrets_have_no_others() {
        let machine = Machine::new();
        let path = |name: &str| machine.path(&format!("etc/platform/{name}"));
        let set = |name: &str, mode| {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path(name), rights).unwrap();
        };
        let mode = |name: &str| std::fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
        set("platform.toml", 0o640);
        machine.set_up("https://play.example").unwrap();
        assert_eq!(mode("platform.toml"), 0o640);
        set("secrets.env", 0o644);
        machine.set_up("https://play.example").unwrap();
        assert_eq!(mode("secrets.env"), 0o600);
    }

    #[test]
    fn a_variable_that_wins_over_the_settings_is_refused() {
        for (name, other) in [
            ("PLATFORM_ORIGIN", "https://old.example"),
            ("PLATFORM_LISTEN", "[::]:8443"),
            ("PLATFORM_REDIRECT_LISTEN", "[::]:8080"),
        ] {
            let machine = Machine::new();
            let secrets = format!("{name}={other}\n");
            std::fs::write(machine.path("etc/platform/secrets.env"), &secrets).unwrap();
            let refusal = machine.set_up("https://play.example").unwrap_err();
            assert!(refusal.contains("secrets.env"), "{refusal}");
            assert!(refusal.contains(name), "{refusal}");
            assert_eq!(machine.text("etc/platform/secrets.env"), secrets);
        }
    }

    #[test]
    fn what_cannot_be_set_up_changes_nothing() {
        let machine = Machine::new();
        let packaged = machine.text("etc/platform/platform.toml");
        for (origin, said) in [
            ("https://platform.localhost", "no public ACME server"),
            ("https://play.example:8443", "its port is 8443"),
            ("http://platform.localhost", "with TLS, set origin"),
        ] {
            let refusal = machine.set_up(origin).unwrap_err();
            assert!(refusal.contains(said), "{refusal}");
        }
        assert_eq!(machine.text("etc/platform/platform.toml"), packaged);
        assert!(!machine.path("etc/platform/secrets.env").exists());
        assert!(!machine.path("etc/systemd").exists());
        machine.set_up("https://play.example").unwrap();
        let refusal = machine.set_up("https://other.example").unwrap_err();
        assert!(refusal.contains("Moving to another name"), "{refusal}");
        let files = "tls = \"files\"\n";
        std::fs::write(machine.path("etc/platform/platform.toml"), files).unwrap();
        let refusal = machine.set_up("https://play.example").unwrap_err();
        assert!(refusal.contains("tls is files already"), "{refusal}");
        std::fs::remove_file(machine.path("etc/platform/platform.toml")).unwrap();
        let refusal = machine.set_up("https://play.example").unwrap_err();
        assert!(refusal.contains("Debian package"), "{refusal}");
    }
}
