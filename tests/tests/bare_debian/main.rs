//! A new machine with Debian 12 and the Debian package: the commands of `docs/hosting.md`, played as they stand
//! there, lead to a game over https. systemd runs as process 1 and starts the server by its units; pebble stands
//! for Let's Encrypt, and `/etc/hosts` for the name server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports by failing"
)]

mod document;
mod machine;

use std::path::Path;
use std::process::Command;

use platform_test_pebble::TestPebble;
use platform_tests::server::built;

use self::document::{SECTION, commands};
use self::machine::{Machine, begin_network, inside, run_inside, text};

const HOSTING: &str = include_str!("../../../docs/hosting.md");
/// What the document writes in place of the token.
const TOKEN: &str = "pdt_…";
/// The address of the platform in the document.
const HOST: &str = "play.example";
/// The game in the document.
const GAME: &str = "first-game.play.example";
/// The file of the package in the folder of this test.
const PACKAGE: &str = "platform-server.deb";
/// The file of the ACME server's own authority on the machine.
const CA: &str = "/etc/acme-ca.pem";

#[tokio::test]
async fn the_commands_of_the_document_lead_from_a_new_machine_to_a_game_over_https() {
    match inside() {
        Some(folder) => play(&folder).await,
        None => {
            let folder = tempfile::tempdir().unwrap();
            pack(folder.path());
            let name = "the_commands_of_the_document_lead_from_a_new_machine_to_a_game_over_https";
            let said = run_inside(name, folder.path());
            assert!(said.contains("1 passed"), "{said}");
        }
    }
}

/// Packs the programs of this build. Without what a debugger reads, they are as small as those of a release.
fn pack(folder: &Path) {
    let programs = [
        ("platform-server", "platform-server"),
        ("platform-cli", "platform"),
    ];
    let programs = programs.map(|(package, name)| {
        let to = folder.join(name);
        let mut strip = Command::new("strip");
        strip.arg("--strip-debug").arg("-o").arg(&to);
        assert!(strip.arg(built(package, name)).status().unwrap().success());
        to
    });
    let packed = Command::new(built("platform-dist", "dist"))
        .arg("debian-package")
        .args(&programs)
        .arg(folder)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");
    let path = String::from_utf8(packed.stdout).unwrap();
    std::fs::rename(path.trim(), folder.join(PACKAGE)).unwrap();
}

async fn play(folder: &Path) {
    let commands = commands(HOSTING, SECTION);
    assert!((1..=5).contains(&commands.len()), "{commands:?}");
    begin_network();
    let pebble = TestPebble::start(443);
    let package = package_of(&commands[0]);
    let machine = Machine::boot(|root| {
        std::fs::copy(folder.join(PACKAGE), root.join("root").join(package)).unwrap();
        give_names_and_authorities(root, &pebble);
    })
    .await;
    let mut said: Vec<String> = Vec::new();
    for (number, command) in commands.iter().enumerate() {
        // Each is one command.
        assert!(!command.contains(['&', ';', '|', '`', '$']), "{command}");
        let before: String = said.concat();
        let command = command.replace(TOKEN, &token(&before));
        #[expect(
            clippy::disallowed_methods,
            reason = "how long an operator waits for real"
        )]
        let begun = std::time::Instant::now();
        let output = machine.run(&command);
        let text = text(&output);
        eprintln!(
            "{:.1} s: {}\n{text}",
            begun.elapsed().as_secs_f32(),
            commands[number]
        );
        assert!(output.status.success(), "{}", log(&machine));
        if let Some(next) = commands.get(number + 1) {
            assert_says_next(&text, next);
        }
        said.push(text);
    }
    let deployed = said.pop().unwrap();
    assert!(!deployed.contains("warning"), "{deployed}");
    assert!(
        deployed.contains(&format!("https://{GAME}\n")),
        "{deployed}"
    );
    let roots = folder.join("roots.pem");
    std::fs::write(&roots, pebble.root()).unwrap();
    visit(&roots);
    assert_is_kept_safe(&machine);
    assert_runs_as_typed(&machine);
    let setup = commands.iter().find(|command| command.contains("setup"));
    assert_restarts_for_new_settings(&machine, setup.unwrap());
}

/// Returns the file that the first command installs: that of this version.
fn package_of(command: &str) -> &str {
    let file = command.split(' ').find_map(|word| word.strip_prefix("./"));
    let file = file.unwrap_or_else(|| panic!("no package is installed: {command}"));
    let beginning = format!("platform-server_{}_", env!("CARGO_PKG_VERSION"));
    assert!(file.starts_with(&beginning), "{file}");
    file
}

/// Prepares what a machine in the Internet has: names that lead to it, and a certificate authority that it trusts.
fn give_names_and_authorities(root: &Path, pebble: &TestPebble) {
    let file = |path: &str| root.join(path.trim_start_matches('/'));
    let labels = ["", "auth.", "first-game.", "dev-first-game."];
    let names = labels.map(|label| format!("127.0.0.1 {label}{HOST}\n"));
    let hosts = format!("127.0.0.1 localhost new-machine\n{}", names.concat());
    std::fs::write(file("/etc/hosts"), hosts).unwrap();
    std::fs::write(file("/etc/hostname"), "new-machine\n").unwrap();
    std::fs::write(file("/etc/resolv.conf"), "").unwrap();
    // The command line trusts those of the machine.
    let bundle = file("/etc/ssl/certs/ca-certificates.crt");
    let trusted = std::fs::read_to_string(&bundle).unwrap() + pebble.root().as_str();
    std::fs::write(bundle, trusted).unwrap();
    // In place of Let's Encrypt.
    std::fs::copy(pebble.ca(), file(CA)).unwrap();
    let unit = file("/etc/systemd/system/platform-server.service.d");
    std::fs::create_dir_all(&unit).unwrap();
    let directory = pebble.directory();
    let acme = format!(
        "[Service]\nEnvironment=PLATFORM_ACME_DIRECTORY={directory} PLATFORM_ACME_CA={CA}\n"
    );
    std::fs::write(unit.join("acme.conf"), acme).unwrap();
}

/// Returns the deploy token that was printed; an empty text before.
fn token(said: &str) -> String {
    let body = said.split("PLATFORM_TOKEN=").nth(1).unwrap_or_default();
    body.split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// What a command says leads to the next one.
fn assert_says_next(said: &str, next: &str) {
    let Some((_, deploy)) = next.split_once("platform deploy ") else {
        let words: Vec<&str> = next.split(' ').take(2).collect();
        let next = words.join(" ");
        assert!(
            said.lines().any(|line| line.starts_with(&next)),
            "{next}: {said}"
        );
        return;
    };
    let (folder, _) = deploy.split_once(' ').unwrap();
    let printed = said
        .lines()
        .find(|line| line.starts_with("PLATFORM_TOKEN="));
    let printed = printed.unwrap_or_else(|| panic!("{said}"));
    let printed = printed.replace(&token(said), TOKEN);
    assert_eq!(printed.replace("<folder>", folder), next);
}

/// A visitor, who trusts this authority alone.
fn visit(roots: &Path) {
    let ask = |arguments: &[&str], url: &str| {
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--show-error",
            "--max-time",
            "40",
            "--include",
            "--cacert",
        ])
        .arg(roots);
        for name in [GAME, &format!("auth.{HOST}"), HOST] {
            for port in [80, 443] {
                curl.args(["--resolve", &format!("{name}:{port}:127.0.0.1")]);
            }
        }
        let output = curl.args(arguments).arg(url).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    let is_ok = |answer: &str| {
        let mut words = answer.split_whitespace();
        words.nth(1) == Some("200")
    };
    let page = ask(&[], &format!("https://{GAME}/"));
    assert!(
        is_ok(&page) && page.contains("<title>First game</title>"),
        "{page}"
    );
    let tag = "<script defer src=\"/__platform/runtime.js\"></script>";
    assert!(page.contains(tag), "{page}");
    let runtime = ask(&[], &format!("https://{GAME}/__platform/runtime.js"));
    assert!(is_ok(&runtime), "{}", runtime.lines().next().unwrap());
    assert!(
        runtime.contains(&format!("https://auth.{HOST}")),
        "the runtime knows the platform"
    );
    let origin = format!("Origin: https://{GAME}");
    let player = ask(
        &["--request", "POST", "--header", &origin],
        &format!("https://auth.{HOST}/token"),
    );
    assert!(player.contains("access_token"), "{player}");
    assert!(player.contains("__Host-platform-session="), "{player}");
    let plain = ask(&[], &format!("http://{GAME}/"));
    assert!(
        plain.contains(" 308 ") && plain.contains(&format!("https://{GAME}/")),
        "{plain}"
    );
    let console = ask(&[], &format!("https://{HOST}/"));
    assert!(is_ok(&console), "{console}");
}

/// The secret is root's alone, the server has no rights, and it will be started with the machine.
fn assert_is_kept_safe(machine: &Machine) {
    let says = |command: &str| text(&machine.run(command)).trim().to_owned();
    assert_eq!(
        says("stat -c '%a %U' /etc/platform/secrets.env"),
        "600 root"
    );
    assert_eq!(says("stat -c '%a %U' /var/lib/platform"), "700 platform");
    let user = says("ps -o user= -C platform-server");
    assert_eq!(user, "platform");
    let bounding =
        says("grep CapBnd /proc/$(systemctl show --value -p MainPID platform-server)/status");
    assert!(bounding.ends_with("0000000000000000"), "{bounding}");
    for unit in [
        "platform-server",
        "platform-server.socket",
        "platform-server-redirect.socket",
    ] {
        assert_eq!(says(&format!("systemctl is-enabled {unit}")), "enabled");
        assert_eq!(says(&format!("systemctl is-active {unit}")), "active");
    }
    let tokens = says("platformctl project token list first-game");
    assert!(
        tokens.starts_with("operator  deploy-dev, deploy-prod, valid until "),
        "{tokens}"
    );
}

/// An operator's command gets its words as they are, the journal does not, and it ends with who runs it.
fn assert_runs_as_typed(machine: &Machine) {
    let says = |command: &str| text(&machine.run(command)).trim().to_owned();
    let word = "${PLATFORM_KEY_SECRET}_$PLATFORM_KEY_SECRET_$$";
    let refusal = says(&format!(
        "platformctl project token list '{word}' '$HOME' || true"
    ));
    assert!(refusal.contains("$HOME"), "an argument too many: {refusal}");
    let refusal = says(&format!("platformctl project token list '{word}' || true"));
    assert!(refusal.contains(word), "{refusal}");
    let journal = log(machine);
    assert!(journal.contains("platformctl project"), "{journal}");
    assert!(!journal.contains("_$PLATFORM_KEY_SECRET"), "{journal}");
    let interrupted = "platformctl events --follow & pid=$!; unit=platformctl-$pid.service; \
                       until systemctl is-active --quiet $unit; do sleep 0.1; done; \
                       kill -TERM $pid; wait $pid; systemctl is-active $unit";
    let said = says(&format!("timeout 60 sh -c '{interrupted}'"));
    assert!(said.ends_with("inactive"), "{said}");
}

/// `setup` leaves a server alone that has read its settings, and restarts it after one that was interrupted when
/// it had written them.
fn assert_restarts_for_new_settings(machine: &Machine, setup: &str) {
    let says = |command: &str| text(&machine.run(command)).trim().to_owned();
    let again = || {
        let output = machine.run(setup);
        assert!(output.status.success(), "{}", text(&output));
        says("systemctl show --value -p MainPID platform-server")
    };
    let server = again();
    assert_eq!(again(), server);
    // A second later, as systemd counts.
    machine.run("touch -d '+2 seconds' /etc/platform/platform.toml");
    assert_ne!(again(), server);
}

/// The log of the server, and of systemd about it.
fn log(machine: &Machine) -> String {
    text(&machine.run("journalctl --no-pager --lines 60"))
}
