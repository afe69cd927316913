//! Common setups and events of tests: a player is suspended, a developer has a game, a job of the
//! server runs, the server restarts.
//!
//! An operator's command runs in another process, so it only changes the store. The server learns
//! of the change when the job runs.

use platform_server::clock::Clock as _;
use platform_server::config::Config;
use platform_server::domain::audit::{Actor, AuditEvent, AuditKind, AuditQuery};
use platform_server::projects::deploy;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::caller::{Caller, archive};
use crate::support::{Answer, TestApp, send};

impl TestApp {
    /// Suspends a player as the operator's command does.
    pub(crate) async fn suspend(&self, player: Uuid, reason: Option<&str>) {
        let (store, now) = (&self.running.state.platform.store, self.clock.now());
        let suspended = store.suspend_player(player, reason, Actor::Operator.into(), now);
        assert!(suspended.await.unwrap(), "they were not suspended before");
    }

    /// Lifts a suspension as the operator's command does.
    pub(crate) async fn unsuspend(&self, player: Uuid) {
        let (store, now) = (&self.running.state.platform.store, self.clock.now());
        let lifted = store.unsuspend_player(player, Actor::Operator.into(), now);
        assert!(lifted.await.unwrap(), "they were suspended before");
    }

    /// Ends all sessions and devices of a player as the operator's command does. Returns how many
    /// there were.
    pub(crate) async fn end_sessions(&self, player: Uuid) -> usize {
        let (store, now) = (&self.running.state.platform.store, self.clock.now());
        let ended = store.end_other_sessions(player, None, Actor::Operator.into(), now);
        ended.await.unwrap()
    }

    /// Signs a browser out, as the page of the demo does.
    pub(crate) async fn sign_out(&self, cookie: &str) {
        let request = self
            .request(Method::POST, "auth", "/sign-out")
            .header("origin", self.origin("demo"))
            .header("cookie", cookie);
        let answer = send(request).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }

    /// Requests a console token, and returns the response.
    pub(crate) async fn console_token(&self, cookie: &str) -> Answer {
        let request = self
            .request(Method::POST, "auth", "/token")
            .header("origin", self.running.state.platform.origin.to_string())
            .header("cookie", cookie);
        send(request).await
    }

    /// Runs the job that reads which players are suspended and which sessions have ended.
    pub(crate) async fn learn_who_may_play(&self) {
        let (state, now) = (&self.running.state, self.clock.now());
        let (store, life) = (&*state.platform.store, state.platform.config.token_seconds);
        let suspended = state.auth.suspensions.refresh(store, life, now);
        suspended.await.unwrap();
        let ended = state.auth.endings.refresh(store, life, now);
        ended.await.unwrap();
    }

    /// Runs the job that reads the games and their backends.
    pub(crate) async fn learn_games(&self) {
        let state = &self.running.state;
        state.hosting.refresh_all().await.unwrap();
    }

    /// Runs the job that removes expired sessions, guests and events.
    pub(crate) async fn sweep_sessions(&self) {
        let (store, now) = (&*self.running.state.platform.store, self.clock.now());
        let swept = platform_server::auth::sessions::sweep(store, now);
        swept.await.unwrap();
    }

    /// Runs the job that removes files without a deployment.
    pub(crate) async fn sweep_files(&self) {
        let state = &self.running.state;
        let swept = deploy::sweep(&*state.platform.store, &state.games.files);
        swept.await.unwrap();
    }

    /// Events, newest first.
    pub(crate) async fn events(&self, query: AuditQuery) -> Vec<AuditEvent> {
        let store = &self.running.state.platform.store;
        store.list_audit_events(query).await.unwrap()
    }

    /// The newest events of one kind.
    pub(crate) async fn events_of(&self, kind: AuditKind) -> Vec<AuditEvent> {
        let query = AuditQuery {
            kind: Some(kind),
            ..AuditQuery::newest(1_000)
        };
        self.events(query).await
    }

    /// Stops the server and starts it again with its data, at the same time, with other settings.
    pub(crate) async fn restart(self, change: impl FnOnce(&mut Config)) -> Self {
        let now = self.clock.now();
        let Self {
            running, directory, ..
        } = self;
        running.stop().await.unwrap();
        let app = Self::in_directory(directory, change).await;
        app.clock.advance(now - app.clock.now());
        app
    }
}

impl<'a> Caller<'a> {
    /// Creates a developer with the project `game`.
    pub(crate) async fn with_project(app: &'a TestApp) -> Self {
        let developer = Self::account(app).await;
        let made = developer.create("game").await;
        assert_eq!(made.status, 201, "{made:?}");
        developer
    }

    /// Invites an account to this caller's project `game`, which joins it with this role.
    pub(crate) async fn invite(&self, role: &str) -> Self {
        let member = Self::account(self.app).await;
        let body = json!({ "role": role });
        let made = self.post("/api/projects/game/invitations", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let made: Value = made.json();
        let (_, secret) = made["link"].as_str().unwrap().split_once('#').unwrap();
        let body = json!({ "secret": secret });
        let joined = member.post("/api/invitations/accept", body).await;
        assert_eq!(joined.status, 200, "{joined:?}");
        member
    }

    /// Creates a developer who has deployed the project `game`, and returns the response to the
    /// deploy, too.
    pub(crate) async fn with_game(app: &'a TestApp, environment: &str) -> (Self, Value) {
        let developer = Self::with_project(app).await;
        let files = archive(&[("index.html", b"x")]);
        let deployed = developer.deploy(environment, files).await;
        assert_eq!(deployed.status, 201, "{deployed:?}");
        let deployed = deployed.json();
        (developer, deployed)
    }
}
