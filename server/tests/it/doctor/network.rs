//! What the doctor finds on the way of a visitor: the proxy, the addresses, the clock, and the providers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use platform_server::app::doctor::State;
use platform_server::clock::{ManualClock, SystemClock};
use platform_server::config::Config;
use platform_test_ports::ReservedPort;

use super::{by, examined, the};
use crate::sign_in::providers::{Metadata, good, named};
use crate::support::{NOW, TestApp};

/// The settings of a doctor who looks at a running server, from a data folder of its own.
fn settings(app: &TestApp, data: &tempfile::TempDir) -> Config {
    Config {
        data: data.path().to_owned(),
        listen: app.running.address,
        ..app.running.state.platform.config.clone()
    }
}

#[tokio::test]
async fn a_proxy_that_the_server_does_not_trust_is_a_warning() {
    let trusted = || vec!["127.0.0.0/8".parse().unwrap()];
    for (server_trusts, state, found) in [
        (trusted(), State::Fine, "the server trusts it"),
        (
            vec!["192.0.2.0/24".parse().unwrap()],
            State::Warning,
            "did not come through a trusted proxy",
        ),
        (Vec::new(), State::Skipped, "there is none"),
    ] {
        let app = TestApp::with(|config| config.trusted_proxies = server_trusts).await;
        let data = tempfile::tempdir().unwrap();
        let findings = examined(&settings(&app, &data), Arc::new(SystemClock)).await;
        let proxy = the(&findings, "proxy");
        assert_eq!(proxy.state, state, "{proxy:?}");
        assert!(proxy.found.contains(found), "{proxy:?}");
        let advice = proxy.advice.as_deref().unwrap_or_default();
        let names_setting = advice.contains("PLATFORM_TRUSTED_PROXIES");
        assert_eq!(names_setting, state == State::Warning, "{proxy:?}");
    }
}

#[tokio::test]
async fn an_address_that_leads_elsewhere_or_nowhere_is_said() {
    let (app, data) = (TestApp::start().await, tempfile::tempdir().unwrap());
    let other = TestApp::with(|config| {
        config.origin = Some("http://other.localhost:8787".parse().unwrap());
    });
    let (good, other) = (settings(&app, &data), other.await);
    let closed = ReservedPort::take().unwrap();
    let nobody = closed.number();
    let at = |host: &str, port: u16| Some(format!("http://{host}:{port}").parse().unwrap());
    let visits = async |config: &Config| {
        let findings = examined(config, Arc::new(SystemClock)).await;
        let visits = by(&findings, "visit").into_iter().cloned();
        visits.collect::<Vec<_>>()
    };

    let fine = visits(&good).await;
    assert_eq!(fine.len(), 2);
    assert!(fine.iter().all(|one| one.state == State::Fine), "{fine:?}");

    // The names lead to a server that has others.
    let mut wrong = good.clone();
    wrong.origin = at("platform.localhost", other.port());
    let elsewhere = &visits(&wrong).await[0];
    assert_eq!(elsewhere.state, State::Wrong, "{elsewhere:?}");
    let words = "is not this platform";
    assert!(elsewhere.found.contains(words), "{elsewhere:?}");
    let advice = elsewhere.advice.as_deref().unwrap();
    assert!(advice.contains("the header `Host` unchanged"), "{advice}");

    // Nobody listens: a server that does not run is no fault of the settings.
    let mut wrong = good.clone();
    wrong.origin = at("platform.localhost", nobody);
    let nowhere = visits(&wrong).await;
    assert_eq!(nowhere.len(), 1);
    assert_eq!(nowhere[0].state, State::Warning, "{nowhere:?}");
    let words = format!("auth.platform.localhost:{nobody}");
    assert!(nowhere[0].found.contains(&words), "{nowhere:?}");

    // Only games cannot be reached.
    let mut wrong = good;
    wrong.games_origin = at("games.localhost", nobody);
    let game = &visits(&wrong).await[1];
    assert_eq!(game.state, State::Wrong, "{game:?}");
    let advice = game.advice.as_deref().unwrap();
    let words = format!("PLATFORM_GAMES_ORIGIN has port {nobody}");
    assert!(advice.starts_with(&words), "{advice}");
}

#[tokio::test]
async fn each_provider_is_asked_and_the_clock_compared_with_the_first() {
    let (app, data) = (TestApp::start().await, tempfile::tempdir().unwrap());
    let [one, down] = [
        Metadata::start("", good).await,
        Metadata::start("", good).await,
    ];
    down.down.store(1, Ordering::SeqCst);
    let other = Metadata::start("", |_| good("https://evil.example")).await;
    let closed = ReservedPort::take().unwrap();
    let nobody = format!("http://id.localhost:{}", closed.number());
    let config = Config {
        identity_providers: vec![
            named("one", &one.issuer),
            named("down", &down.issuer),
            named("other", &other.issuer),
            named("nobody", &nobody),
        ],
        ..settings(&app, &data)
    };
    let findings = examined(&config, Arc::new(SystemClock)).await;
    let found = by(&findings, "sign-in");
    assert_eq!(found.len(), 4, "{findings:?}");
    assert_eq!(found[0].state, State::Fine, "{found:?}");
    assert_eq!(found[0].found, "`one` can be used");
    for (finding, id) in found[1..].iter().zip(["down", "other", "nobody"]) {
        assert_eq!(finding.state, State::Wrong, "{finding:?}");
        let begins = format!("`{id}`: the provider is not available: ");
        assert!(finding.found.starts_with(&begins), "{finding:?}");
        let advice = finding.advice.as_deref().unwrap();
        assert!(advice.contains("`issuer`"), "{advice}");
        assert!(!finding.found.contains("secret"), "{finding:?}");
    }
    let clock = the(&findings, "clock");
    assert_eq!(clock.state, State::Fine, "{clock:?}");
    assert!(clock.found.ends_with("that of one"), "{clock:?}");

    // A machine whose clock is months behind.
    let behind = examined(&config, Arc::new(ManualClock::new(NOW))).await;
    let clock = the(&behind, "clock");
    assert_eq!(clock.state, State::Wrong, "{clock:?}");
    let advice = clock.advice.as_deref().unwrap();
    assert!(advice.contains("NTP"), "{advice}");
}
