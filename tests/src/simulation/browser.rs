//! What a virtual browser does: it sends requests, measures them, and tells the crowd what came of
//! them.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{ETAG, SET_COOKIE};
use platform_protocol::token::TokenAnswer;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use uuid::Uuid;

use super::client::{Answer, Asked, Client};
use super::measure::{Kind, Measure};
use super::requests::{COOKIE_NAME, Requests};
use crate::visitor;

/// A visit of a player to a game.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    /// The place in the crowd.
    pub(super) player: usize,
    /// The number of the visit there.
    pub(super) visit: u32,
    /// The number of the game.
    pub(super) game: usize,
    /// The page's id.
    pub(super) page: String,
}

/// What came of a request. If its response was lost, this is not sure.
#[derive(Debug)]
pub(super) enum News {
    Token {
        visit: Visit,
        cookie: String,
        token: Arc<str>,
        sub: Uuid,
    },
    Beat {
        visit: Visit,
        sub: Uuid,
        is_sure: bool,
    },
    /// A heartbeat was refused.
    Unbeaten {
        visit: Visit,
    },
    Left {
        visit: Visit,
        is_sure: bool,
    },
    Logged {
        texts: Vec<String>,
        is_sure: bool,
    },
}

/// All virtual browsers.
#[derive(Debug)]
pub(super) struct Browser {
    pub(super) client: Client,
    pub(super) requests: Requests,
    pub(super) measure: Measure,
    pub(super) games: Vec<String>,
    /// The version of the runtime that browsers have in their caches.
    pub(super) etag: Mutex<Option<String>>,
}

/// The response to a request, or what is known without one.
enum Outcome {
    Passed(Answer),
    Refused,
    Lost,
}

impl Browser {
    /// The same browsers, which measure what they do from now on apart.
    pub(super) fn measured_apart(&self) -> Self {
        let known = self.etag.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            client: self.client.another(),
            requests: self.requests.clone(),
            measure: Measure::new(Instant::now()),
            games: self.games.clone(),
            etag: Mutex::new(known.clone()),
        }
    }

    /// Sends a request that was to be sent at `at`, and measures it. `passes` says which status is
    /// right.
    async fn ask(&self, kind: Kind, at: Instant, request: Asked, passes: &[u16]) -> Outcome {
        match self.client.send(request).await {
            Ok(answer) if passes.contains(&answer.status) => {
                self.measure.record(kind, at, Ok(()));
                Outcome::Passed(answer)
            }
            Ok(Answer { status, .. }) => {
                self.measure
                    .record(kind, at, Err(format!("status {status}")));
                // A write that was not acknowledged in time may have happened.
                if status >= 500 {
                    Outcome::Lost
                } else {
                    Outcome::Refused
                }
            }
            Err(what) => {
                self.measure.record(kind, at, Err(what.to_owned()));
                Outcome::Lost
            }
        }
    }

    /// Opens a game's page: its HTML, the runtime, a token.
    pub(super) async fn open(
        &self,
        news: &UnboundedSender<News>,
        visit: Visit,
        at: Instant,
        cookie: Option<String>,
        knows_runtime: bool,
    ) {
        if self.page(visit.game, at).await
            && self
                .runtime(visit.game, Instant::now(), knows_runtime)
                .await
        {
            self.token(news, visit, Instant::now(), cookie).await;
        }
    }

    /// Gets the HTML of a game's page. Returns whether it came.
    pub(super) async fn page(&self, game: usize, at: Instant) -> bool {
        let request = self.requests.page(&self.games[game]);
        let outcome = self.ask(Kind::Page, at, request, &[200]).await;
        matches!(outcome, Outcome::Passed(_))
    }

    /// Gets the runtime, or learns that the copy in the browser's cache is still right. Returns
    /// whether it came.
    pub(super) async fn runtime(&self, game: usize, at: Instant, knows_runtime: bool) -> bool {
        let etag = {
            let known = self.etag.lock().unwrap_or_else(PoisonError::into_inner);
            known.clone().filter(|_| knows_runtime)
        };
        let request = self.requests.runtime(&self.games[game], etag.as_deref());
        let Outcome::Passed(answer) = self.ask(Kind::Runtime, at, request, &[200, 304]).await
        else {
            return false;
        };
        if let Some(etag) = answer.headers.get(ETAG).and_then(|etag| etag.to_str().ok()) {
            let mut known = self.etag.lock().unwrap_or_else(PoisonError::into_inner);
            known.get_or_insert_with(|| etag.to_owned());
        }
        true
    }

    /// Exchanges the cookie, if there is one, for a token.
    pub(super) async fn token(
        &self,
        news: &UnboundedSender<News>,
        visit: Visit,
        at: Instant,
        cookie: Option<String>,
    ) {
        let game = &self.games[visit.game];
        let request = self.requests.token(game, cookie.as_deref());
        let kind = match cookie {
            Some(_) => Kind::KnownGuest,
            None => Kind::NewGuest,
        };
        let Outcome::Passed(answer) = self.ask(kind, at, request, &[200]).await else {
            return;
        };
        let Some(cookie) = cookie_of(&answer).or(cookie) else {
            return;
        };
        let Ok(token) = serde_json::from_slice::<TokenAnswer>(&answer.body) else {
            return;
        };
        let token = if token.is_new {
            // A new guest counts once its cookie came back.
            self.token_again(game, &cookie).await
        } else {
            Some(token)
        };
        let Some(TokenAnswer {
            access_token: token,
            ..
        }) = token
        else {
            return;
        };
        if let Ok(sub) = visitor::claims(&token).sub.parse() {
            let token = token.into();
            // The crowd ends only after every request.
            let _ = news.send(News::Token {
                visit,
                cookie,
                token,
                sub,
            });
        }
    }

    /// Exchanges the cookie of a new guest for a token once more. Pages do so with their first
    /// heartbeat.
    async fn token_again(&self, game: &str, cookie: &str) -> Option<TokenAnswer> {
        let request = self.requests.token(game, Some(cookie));
        let kind = Kind::KnownGuest;
        match self.ask(kind, Instant::now(), request, &[200]).await {
            Outcome::Passed(answer) => serde_json::from_slice(&answer.body).ok(),
            Outcome::Refused | Outcome::Lost => None,
        }
    }

    /// Says that the player plays.
    pub(super) async fn beat(
        &self,
        news: &UnboundedSender<News>,
        visit: Visit,
        at: Instant,
        token: &str,
        sub: Uuid,
    ) {
        let game = &self.games[visit.game];
        let request = self.requests.heartbeat(game, token, &visit.page);
        let told = match self.ask(Kind::Heartbeat, at, request, &[204]).await {
            Outcome::Passed(_) => News::Beat {
                visit,
                sub,
                is_sure: true,
            },
            Outcome::Lost => News::Beat {
                visit,
                sub,
                is_sure: false,
            },
            Outcome::Refused => News::Unbeaten { visit },
        };
        let _ = news.send(told);
    }

    /// Says that the page goes away.
    pub(super) async fn leave(
        &self,
        news: &UnboundedSender<News>,
        visit: Visit,
        at: Instant,
        token: &str,
    ) {
        let game = &self.games[visit.game];
        let request = self.requests.leave(game, Some(token), &visit.page);
        let outcome = self.ask(Kind::Leave, at, request, &[204]).await;
        let is_sure = matches!(outcome, Outcome::Passed(_));
        let _ = news.send(News::Left { visit, is_sure });
    }

    /// Sends log records.
    pub(super) async fn log(
        &self,
        news: &UnboundedSender<News>,
        visit: Visit,
        at: Instant,
        token: &str,
        texts: Vec<String>,
    ) {
        let game = &self.games[visit.game];
        let request = self.requests.logs(game, token, &visit.page, &texts);
        let is_sure = match self.ask(Kind::Logs, at, request, &[204]).await {
            Outcome::Passed(_) => true,
            Outcome::Lost => false,
            Outcome::Refused => return,
        };
        let _ = news.send(News::Logged { texts, is_sure });
    }
}

/// Returns the session's cookie that an answer sets.
fn cookie_of(answer: &Answer) -> Option<String> {
    let cookies = answer.headers.get_all(SET_COOKIE).iter();
    let mut cookies = cookies.filter_map(|cookie| cookie.to_str().ok());
    cookies.find_map(|cookie| {
        let (name, rest) = cookie.split_once('=')?;
        (name == COOKIE_NAME).then(|| rest.split(';').next().unwrap_or(rest).to_owned())
    })
}

/// Returns an id for a page, as the runtime makes it: 128 random bits.
pub(super) fn page_id(random: &mut fastrand::Rng) -> String {
    URL_SAFE_NO_PAD.encode(random.u128(..).to_be_bytes())
}
