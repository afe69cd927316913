//! The Debian package of this workspace, with programs that only stand for the real ones: what is in it, and
//! what `dpkg` makes of it in a root of its own.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use flate2::Compression;

use super::*;

const HOST: &str = "x86_64-unknown-linux-gnu";
/// The settings that the package installs.
const SETTINGS: &str = "etc/platform/platform.toml";

/// The root of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Everything of a release, with programs that print their name.
fn files() -> Files {
    let mut files = Files::default();
    for program in ["platform-server", "platform"] {
        let stands_for = format!("#!/bin/sh\necho {program} \"$@\"\n");
        files.add(program, stands_for.into_bytes(), true).unwrap();
    }
    add_texts(&mut files, &workspace()).unwrap();
    files.add(LICENCES, b"licences\n".to_vec(), false).unwrap();
    files
        .add("cli/version.json", b"{}\n".to_vec(), false)
        .unwrap();
    files.add_sums().unwrap();
    files
}

/// The package in this version; with these settings, if they are not the usual ones.
fn package(folder: &Path, version: &str, settings: Option<&str>) -> PathBuf {
    let packing = (1_700_000_000, Compression::fast());
    let mut package = Package::new(version, HOST, false, packing).unwrap();
    fill(&mut package, &files()).unwrap();
    if let Some(settings) = settings {
        package.install(SETTINGS, settings.as_bytes().to_vec());
    }
    let path = folder.join(package.file_name());
    fs::write(&path, package.packed().unwrap()).unwrap();
    path
}

/// A root folder without any other package.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        for folder in [
            "etc",
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
            "var/lib/dpkg/triggers",
        ] {
            fs::create_dir_all(root.path(folder)).unwrap();
        }
        fs::write(root.path("var/lib/dpkg/status"), "").unwrap();
        root
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Runs `dpkg` on it, as the root of a user namespace. Scripts are told the root by `DPKG_ROOT`.
    fn dpkg(&self, arguments: &[&str]) -> Output {
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "dpkg", "--root"])
            .arg(self.0.path())
            .args(["--force-script-chrootless", "--force-depends"])
            .args(arguments)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output();
        let output = output.expect("run `cargo xtask test` on Debian, which has dpkg and unshare");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        output
    }

    fn install(&self, package: &Path, more: &[&str]) {
        let arguments = [&["--install"][..], more, &[package.to_str().unwrap()]].concat();
        self.dpkg(&arguments);
    }
}

/// The lines of a unit, with the part after `name=`.
fn values<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
    let lines = unit.lines();
    let values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.collect()
}

#[test]
fn a_release_has_every_file_once_and_the_package_has_a_place_for_each() {
    let files = files();
    for path in ["deploy/README.md", "docs/hosting.md", "CHANGELOG.md"] {
        assert!(files.iter().any(|(name, _)| name == path), "{path}");
    }
}

#[test]
fn everything_that_the_units_name_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new();
    root.install(&package(folder.path(), "1.2.3", None), &[]);
    let units = "usr/lib/systemd/system";
    let unit = root.text(&format!("{units}/platform-server.service"));
    let dropped_in = root.text(&format!(
        "{units}/platform-server.service.d/handed-out.conf"
    ));
    // Each socket is there, and is stopped before the program is removed.
    let removal = fs::read_to_string(workspace().join("deploy/debian/prerm")).unwrap();
    for socket in ["platform-server.socket", "platform-server-redirect.socket"] {
        assert!(
            root.path(&format!("{units}/{socket}")).is_file(),
            "{socket}"
        );
        assert!(removal.contains(&format!(" {socket} ")), "{socket}");
    }
    let mut named: Vec<&str> = values(&unit, "ExecStart")
        .iter()
        .flat_map(|line| line.split(' '))
        .filter(|word| word.starts_with('/'))
        .collect();
    assert_eq!(
        named,
        ["/usr/bin/platform-server", "/etc/platform/platform.toml"]
    );
    let documents = values(&unit, "Documentation");
    named.extend(
        documents
            .iter()
            .filter_map(|url| url.strip_prefix("file://")),
    );
    let handed_out = values(&dropped_in, "Environment");
    named.extend(handed_out[0].strip_prefix("PLATFORM_CLI_FOLDER="));
    assert_eq!(named.len(), 4, "{named:?}");
    for path in named {
        assert!(root.path(path).exists(), "{path}");
    }
    let users = root.text("etc/passwd");
    let user = values(&unit, "User")[0];
    let line = users
        .lines()
        .find(|line| line.starts_with(&format!("{user}:")));
    let line = line.expect("the package makes the user");
    assert!(
        line.ends_with(":/var/lib/platform:/usr/sbin/nologin"),
        "{line}"
    );
    let groups = root.text("etc/group");
    assert!(
        groups.contains(&format!("{}:", values(&unit, "Group")[0])),
        "{groups}"
    );
    let data = fs::metadata(root.path("var/lib/platform")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&data.permissions());
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn the_operators_command_runs_as_the_service_does() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new();
    root.install(&package(folder.path(), "1.2.3", None), &[]);
    let mode = fs::metadata(root.path("usr/sbin/platformctl")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
    assert_eq!(mode & 0o777, 0o755);
    let command = root.text("usr/sbin/platformctl");
    let unit = root.text("usr/lib/systemd/system/platform-server.service");
    let (user, group) = (values(&unit, "User")[0], values(&unit, "Group")[0]);
    let started = values(&unit, "ExecStart")[0];
    for part in [
        format!("--uid={user} --gid={group} "),
        format!("=EnvironmentFile={} ", values(&unit, "EnvironmentFile")[0]),
        format!("=UMask={} ", values(&unit, "UMask")[0]),
        format!("--setenv={} ", values(&unit, "Environment")[0]),
        started.replace(" serve ", " ") + " \"$@\"",
    ] {
        assert!(command.contains(&part), "{part} in {command}");
    }
    assert!(
        root.path("usr/share/platform-server/first-game/index.html")
            .is_file()
    );
}

#[test]
fn an_upgrade_keeps_the_settings_and_a_removal_keeps_settings_and_data() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new();
    root.install(&package(folder.path(), "1.2.3", None), &[]);
    let own = "origin = \"https://games.example\"\n";
    fs::write(root.path(SETTINGS), own).unwrap();
    fs::write(root.path("var/lib/platform/platform.db"), "players").unwrap();
    root.install(&package(folder.path(), "1.2.4", None), &[]);
    assert_eq!(root.text(SETTINGS), own);
    // The operator may keep them as well where the package has new ones.
    let new = Some("# new\n");
    root.install(&package(folder.path(), "1.2.5", new), &["--force-confold"]);
    assert_eq!(root.text(SETTINGS), own);
    assert_eq!(root.text("etc/platform/platform.toml.dpkg-dist"), "# new\n");

    root.dpkg(&["--remove", "platform-server"]);
    assert!(!root.path("usr/bin/platform-server").exists());
    assert_eq!(root.text(SETTINGS), own);
    root.dpkg(&["--purge", "platform-server"]);
    assert!(!root.path(SETTINGS).exists());
    assert_eq!(root.text("var/lib/platform/platform.db"), "players");
}
