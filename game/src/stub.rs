//! Natively, where there is no browser: a platform that a test sets up. Each thread has its own, so
//! tests that run at the same time do not meet.
//!
//! Without any set-up, test guest 1 plays, and no backend answers.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{PlatformError, Player, Problem, Request};

/// A call that the game made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// Its body.
    pub body: Option<String>,
}

/// What a game's handler of changes is.
type Handler = RefCell<dyn FnMut()>;

struct Platform {
    player: Result<Player, PlatformError>,
    answers: HashMap<(String, String), VecDeque<Result<String, PlatformError>>>,
    sent: Vec<Sent>,
    pauses: Vec<Duration>,
    opened: Vec<String>,
    reported: Vec<String>,
    handlers: Vec<Weak<Handler>>,
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            player: Ok(Player {
                id: "00000000-0000-4000-8000-000000000001".into(),
                username: "test-guest-1".into(),
                is_guest: true,
            }),
            answers: HashMap::new(),
            sent: Vec::new(),
            pauses: Vec::new(),
            opened: Vec::new(),
            reported: Vec::new(),
            handlers: Vec::new(),
        }
    }
}

thread_local! {
    static PLATFORM: RefCell<Platform> = RefCell::default();
}

fn with<T>(change: impl FnOnce(&mut Platform) -> T) -> T {
    PLATFORM.with_borrow_mut(change)
}

/// Lets this player play from now on, or lets calls fail with this error. Tells the game, as a sign-in
/// in another tab does.
pub fn set_player(player: Result<Player, PlatformError>) {
    let handlers = with(|platform| {
        platform.player = player;
        platform.handlers.clone()
    });
    // A handler may call the platform.
    for handler in handlers.iter().filter_map(Weak::upgrade) {
        handler.borrow_mut()();
    }
}

/// Adds an answer of the game's backend, as JSON. Answers of one method and path are given in turn, and
/// the last one again and again.
///
/// # Panics
/// Panics if the value cannot be written as JSON.
#[expect(
    clippy::expect_used,
    reason = "a helper of tests may fail as loudly as a test"
)]
pub fn answer<T: Serialize>(method: &str, path: &str, value: &T) {
    let json = serde_json::to_string(value).expect("JSON");
    add(method, path, Ok(json));
}

/// Adds an answer with an error.
pub fn refuse(method: &str, path: &str, error: PlatformError) {
    add(method, path, Err(error));
}

fn add(method: &str, path: &str, answer: Result<String, PlatformError>) {
    let call = (method.to_owned(), path.to_owned());
    with(|platform| platform.answers.entry(call).or_default().push_back(answer));
}

/// Returns all calls that the game made, in order.
#[must_use]
pub fn sent() -> Vec<Sent> {
    with(|platform| platform.sent.clone())
}

/// Returns the pauses before further attempts. None of them took any time.
#[must_use]
pub fn pauses() -> Vec<Duration> {
    with(|platform| platform.pauses.clone())
}

/// Returns the addresses that the game left its page for.
#[must_use]
pub fn opened() -> Vec<String> {
    with(|platform| platform.opened.clone())
}

/// Returns the messages of the errors that the game reported.
#[must_use]
pub fn reported() -> Vec<String> {
    with(|platform| platform.reported.clone())
}

/// An answer of the backend.
#[derive(Debug)]
pub(crate) struct Answer(String);

/// Calls a function at every change of the player, until it is dropped.
#[must_use = "dropping it ends the calls; `forget` keeps them for as long as the page is open"]
pub struct PlayerChange(Rc<Handler>);

impl std::fmt::Debug for PlayerChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PlayerChange")
    }
}

impl PlayerChange {
    pub(crate) fn listen(handler: impl FnMut() + 'static) -> Self {
        let handler: Rc<Handler> = Rc::new(RefCell::new(handler));
        with(|platform| platform.handlers.push(Rc::downgrade(&handler)));
        Self(handler)
    }

    /// Goes on for as long as the page is open.
    pub fn forget(self) {
        std::mem::forget(self.0);
    }
}

pub(crate) async fn player() -> Result<Player, PlatformError> {
    with(|platform| platform.player.clone())
}

pub(crate) async fn access_token(_force_refresh: bool) -> Result<String, PlatformError> {
    Ok(format!("token-of-{}", player().await?.id))
}

pub(crate) fn login_url(redirect: Option<&str>) -> Result<String, PlatformError> {
    Ok(format!(
        "/__platform/login?redirect={}",
        redirect.unwrap_or("/")
    ))
}

pub(crate) fn profile_url(redirect: Option<&str>) -> Result<String, PlatformError> {
    login_url(redirect)
}

pub(crate) fn open(url: &str) -> Result<(), PlatformError> {
    with(|platform| platform.opened.push(url.to_owned()));
    Ok(())
}

pub(crate) async fn sign_out() -> Result<(), PlatformError> {
    set_player(Platform::default().player);
    open("/")
}

pub(crate) fn report_error<T: Serialize + ?Sized>(message: &str, _metadata: &T) {
    with(|platform| platform.reported.push(message.to_owned()));
}

pub(crate) async fn fetch(request: &Request) -> Result<Answer, PlatformError> {
    let call = (request.method.clone(), request.path.clone());
    with(|platform| {
        platform.player.clone()?;
        platform.sent.push(Sent {
            method: call.0.clone(),
            path: call.1.clone(),
            body: request.body.clone(),
        });
        let answers = platform.answers.get_mut(&call);
        let answer = answers.and_then(|answers| match answers.len() {
            0 | 1 => answers.front().cloned(),
            _ => answers.pop_front(),
        });
        answer.unwrap_or_else(|| {
            Err(PlatformError::of(Problem {
                message: format!("The test has no answer for {} {}.", call.0, call.1),
                status: 404,
                ..Problem::default()
            }))
        })
    })
    .map(Answer)
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        200
    }

    pub(crate) fn header(&self, _name: &str) -> Option<String> {
        None
    }

    pub(crate) async fn text(self) -> Result<String, PlatformError> {
        Ok(self.0)
    }

    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T, PlatformError> {
        let value = serde_json::from_str(&self.0);
        value.map_err(|error| PlatformError::NotUnderstood(error.to_string()))
    }
}

pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, PlatformError> {
    let json = serde_json::to_string(value);
    json.map_err(|error| PlatformError::NotUnderstood(error.to_string()))
}

pub(crate) async fn pause(time: Duration) {
    with(|platform| platform.pauses.push(time));
}
