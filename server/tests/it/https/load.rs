//! A load generator of others, `h2load` of nghttp2, on a server that speaks TLS itself.

use tokio::process::Command;

use super::Secure;

/// How many requests there are, over how many connections, and at a time on each.
const REQUESTS: u32 = 5_000;
const CONNECTIONS: u32 = 20;
const AT_A_TIME: u32 = 20;

/// Returns the number before a word of what h2load says.
fn number_before(said: &str, word: &str) -> u32 {
    let numbers = said
        .lines()
        .filter(|line| line.starts_with("requests: "))
        .flat_map(|line| line.trim_start_matches("requests: ").split(", "));
    let mut numbers = numbers.filter_map(|part| part.strip_suffix(word)?.trim().parse().ok());
    numbers.next().unwrap_or_else(|| panic!("{word}: {said}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_generator_gets_every_answer_over_http_2_and_over_http_1() {
    let secure = Secure::start().await;
    let address = secure.app.running.address;
    for protocol in ["h2", "http/1.1"] {
        // `cargo xtask test` installs it. It checks no certificate.
        let mut load = Command::new("h2load");
        load.args(["--requests", &REQUESTS.to_string()])
            .args(["--clients", &CONNECTIONS.to_string()])
            .args(["--max-concurrent-streams", &AT_A_TIME.to_string()])
            .args([&format!("--npn-list={protocol}"), "--threads=1"])
            .arg(format!("--connect-to={address}"))
            .arg("https://demo.platform.localhost/__platform/runtime.js");
        let output = load.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(
            said.contains(&format!("Application protocol: {protocol}")),
            "{said}"
        );
        assert_eq!(number_before(&said, "succeeded"), REQUESTS, "{said}");
        for bad in ["failed", "errored", "timeout"] {
            assert_eq!(number_before(&said, bad), 0, "{said}");
        }
    }
}
