//! The files of `deploy/` for Compose and Kubernetes are valid by the schemas of the Compose specification and of
//! Kubernetes itself. The schemas are parts of packages from PyPI, so nothing else is fetched.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports by failing"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use platform_tests::python::environment;
use platform_tests::settings;

/// The versions of Kubernetes by whose schemas the files are valid: an old one, and the newest one of the package.
const VERSIONS: [&str; 2] = ["1.29.0", "1.37.0"];
/// What `kubectl apply -k` reads, which is no object of Kubernetes.
const KUSTOMIZATION: &str = "kustomization.yaml";

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(path)
}

fn run(program: &str, arguments: &[&str], file: &Path) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut check = Command::new(environment(&folder, "schemas").join(program));
    check.args(arguments).arg(file).stdin(Stdio::null());
    check.output().unwrap()
}

/// Returns why a file is not valid.
fn refused(output: &Output) -> Result<(), String> {
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    // A kind of object that the schemas do not have is only a warning.
    if output.status.success() && !said.contains("WARN") {
        Ok(())
    } else {
        Err(said)
    }
}

/// Checks objects of Kubernetes by the schemas of a version, in which no unknown field is allowed.
fn check_objects(file: &Path, version: &str) -> Result<(), String> {
    let arguments = ["--strict", "--kubernetes-version", version];
    refused(&run("kubernetes-validate", &arguments, file))
}

/// Checks a file of Compose.
fn check_compose(file: &Path) -> Result<(), String> {
    let arguments = ["--builtin-schema", "vendor.compose-spec"];
    refused(&run("check-jsonschema", &arguments, file))
}

/// Checks a copy of a file with one change, and returns why it is not valid.
fn check_changed(
    file: &str,
    (from, to): (&str, &str),
    check: impl Fn(&Path) -> Result<(), String>,
) -> String {
    let text = std::fs::read_to_string(deploy(file)).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("changed.yaml");
    std::fs::write(&copy, text.replacen(from, to, 1)).unwrap();
    let said = check(&copy).err();
    said.unwrap_or_else(|| panic!("{to} is not found"))
}

#[test]
fn every_object_is_valid_by_the_schemas_of_kubernetes() {
    let files = std::fs::read_dir(deploy("kubernetes")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let files: Vec<_> = files
        .filter(|file| !file.ends_with(KUSTOMIZATION))
        .collect();
    assert!(files.len() >= 8, "{files:?}");
    for version in VERSIONS {
        for file in &files {
            check_objects(file, version).unwrap_or_else(|said| panic!("{version}: {said}"));
        }
    }
}

/// Returns the objects that `kubectl apply -k` would apply of a folder, or what it says instead.
fn apply(folder: &Path) -> Result<String, String> {
    let mut kubectl = Command::new(settings::program("KUBECTL", &["kubectl"]));
    kubectl.arg("kustomize").arg(folder).stdin(Stdio::null());
    let output = kubectl.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

#[test]
fn kubectl_applies_valid_objects_and_no_secret_and_finds_a_mistake() {
    let all = apply(&deploy("kubernetes")).unwrap();
    let kinds = all.lines().filter_map(|line| line.strip_prefix("kind: "));
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_unstable();
    let expected = [
        "ConfigMap",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "Service",
    ];
    assert_eq!(kinds, expected);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.yaml");
    std::fs::write(&file, all).unwrap();
    check_objects(&file, VERSIONS[1]).unwrap_or_else(|said| panic!("{said}"));

    let text = std::fs::read_to_string(deploy("kubernetes").join(KUSTOMIZATION)).unwrap();
    let changed = text.replace("resources:", "resource:");
    std::fs::write(folder.path().join(KUSTOMIZATION), changed).unwrap();
    let said = apply(folder.path()).unwrap_err();
    assert!(said.contains("unknown field"), "{said}");
}

#[test]
fn a_mistake_in_an_object_is_found() {
    for (file, from, to) in [
        (
            "deployment",
            "readOnlyRootFilesystem:",
            "readonlyRootFilesystem:",
        ),
        (
            "deployment",
            "failureThreshold: 300",
            "failureThreshold: many",
        ),
        ("deployment", "kind: Deployment", "kind: Deploiment"),
        ("network-policy", "podSelector:", "podselector:"),
        ("settings", "SECONDS: \"5\"", "SECONDS: 5"),
    ] {
        let file = format!("kubernetes/{file}.yaml");
        let check = |copy: &Path| check_objects(copy, VERSIONS[1]);
        let said = check_changed(&file, (from, to), check);
        assert!(said.contains("changed.yaml"), "{said}");
    }
}

#[test]
fn the_compose_file_is_valid_by_its_schema_and_a_mistake_is_found() {
    check_compose(&deploy("compose.yaml")).unwrap_or_else(|said| panic!("{said}"));
    for (from, to) in [
        ("read_only: true", "readonly: true"),
        ("ip_range:", "ip-range:"),
        ("interval: 10s", "interval: 10"),
        ("condition: service_healthy", "condition: healthy"),
    ] {
        let said = check_changed("compose.yaml", (from, to), check_compose);
        assert!(said.contains("changed.yaml"), "{said}");
    }
}
