//! How long events and addresses are kept, as the settings say.

use platform_server::auth::retention;
use platform_server::clock::Clock as _;
use platform_server::domain::audit::AuditKind;

use crate::support::{TestApp, send};

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Makes a guest who renames itself from the address `203.0.113.77`.
async fn rename(app: &TestApp) {
    let token = send(app.post_token()).await;
    let opened = app.open("/profile", token.cookie()).await;
    let fields = [
        ("csrf", opened.token()),
        ("action", "rename"),
        ("username", "another-name"),
    ];
    let request = app.post_form("/profile", &opened.cookies, &fields);
    let renamed = send(request.header("x-forwarded-for", "203.0.113.77")).await;
    assert_eq!(renamed.status, 303, "{}", renamed.text());
}

/// Runs the job.
async fn apply(app: &TestApp) -> usize {
    let platform = &app.running.state.platform;
    let applied = retention::apply(&*platform.store, &platform.config, app.clock.now());
    applied.await.unwrap()
}

/// Returns the networks of the events about names.
async fn networks(app: &TestApp) -> Vec<Option<String>> {
    let events = app.events_of(AuditKind::Renamed).await.into_iter();
    events.map(|event| event.network).collect()
}

#[tokio::test]
async fn an_address_is_shortened_after_thirty_days_and_events_stay() {
    let app = TestApp::with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    rename(&app).await;
    app.clock.advance(30 * DAY - 1);
    apply(&app).await;
    assert_eq!(networks(&app).await, [Some("203.0.113.77".to_owned())]);
    app.clock.advance(2);
    assert!(apply(&app).await > 0);
    assert_eq!(networks(&app).await, [Some("203.0.113.0/24".to_owned())]);
    app.clock.advance(1_000 * DAY);
    apply(&app).await;
    assert_eq!(networks(&app).await.len(), 1);
}

#[tokio::test]
async fn the_settings_say_how_long_events_and_addresses_are_kept() {
    let app = TestApp::with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        config.event_retention_days = 100;
        config.address_days = 2;
    })
    .await;
    rename(&app).await;
    app.clock.advance(2 * DAY + 1);
    apply(&app).await;
    assert_eq!(networks(&app).await, [Some("203.0.113.0/24".to_owned())]);
    app.clock.advance(97 * DAY);
    apply(&app).await;
    assert_eq!(networks(&app).await.len(), 1);
    app.clock.advance(2 * DAY);
    apply(&app).await;
    assert_eq!(networks(&app).await, []);
}
