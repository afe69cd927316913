//! The paths that the runtime requests from a dev server: the script, the page to pick a test player
//! on, and tokens of test players.

use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, Method, Response, StatusCode};
use platform_protocol::paths::{LOCAL_LOGIN, LOCAL_TOKEN_GUEST, LOCAL_TOKEN_USER, RUNTIME_JS};
use platform_protocol::problem::ProblemCode;

use super::own_page::is_own_page;
use super::problem::{Problem, respond};
use super::runtime_copy::Runtime;
use crate::client::Body;
use crate::commands::test_token;
use crate::failure::Failure;
use crate::origin::PlatformOrigin;
use crate::session::Session;
use crate::terminal;

/// The page to pick a test player on: the runtime draws it.
const LOGIN_PAGE: &str = "<!doctype html>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<script defer src=\"/__platform/runtime.js\"></script>
";

/// What the platform gives a dev server.
pub(super) struct Players {
    session: Session,
    slug: String,
    runtime: Runtime,
    /// The failure that was shown in the terminal last.
    told: Mutex<String>,
}

/// What a path under `/__platform/` is for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Runtime,
    Login,
    Token { number: u8, guest: bool },
}

impl Players {
    pub(super) fn new(session: Session, slug: &str, runtime: Runtime) -> Self {
        Self {
            session,
            slug: slug.to_owned(),
            runtime,
            told: Mutex::default(),
        }
    }

    /// The platform.
    pub(super) const fn origin(&self) -> &PlatformOrigin {
        self.session.http().origin()
    }

    /// Responds on a path under `/__platform/`. The request's `host` is one of this machine.
    pub(super) async fn answer(
        &self,
        method: &Method,
        path: &str,
        host: &str,
        headers: &HeaderMap,
    ) -> Response<Body> {
        let answer = self.try_answer(method, path, host, headers).await;
        answer.unwrap_or_else(Problem::into_response)
    }

    async fn try_answer(
        &self,
        method: &Method,
        path: &str,
        host: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Problem> {
        let problem = |code, detail: String| Problem::new(self.origin(), code, detail);
        let wanted = wanted(path).ok_or_else(|| {
            let detail = format!("`platform dev` has no {path}.");
            problem(ProblemCode::NotFound, detail)
        })?;
        let (allowed, methods) = match wanted {
            Wanted::Token { .. } => (*method == Method::POST, "POST"),
            _ => (matches!(*method, Method::GET | Method::HEAD), "GET, HEAD"),
        };
        if !allowed {
            let detail = format!("{path} accepts only {methods}.");
            return Err(problem(ProblemCode::MethodNotAllowed, detail).allowing(methods));
        }
        match wanted {
            Wanted::Login => Ok(respond(
                StatusCode::OK,
                "text/html; charset=utf-8",
                LOGIN_PAGE,
            )),
            Wanted::Runtime => {
                let script = self.runtime.get(self.session.http()).await;
                let script = script.map_err(|failure| self.told(failure))?;
                let kind = "text/javascript; charset=utf-8";
                Ok(respond(StatusCode::OK, kind, script))
            }
            Wanted::Token { number, guest } => {
                if !is_own_page(host, headers) {
                    let detail = "Only the game's own page may ask for a test token.".to_owned();
                    return Err(problem(ProblemCode::NotAllowed, detail));
                }
                self.token(number, guest).await
            }
        }
    }

    async fn token(&self, number: u8, guest: bool) -> Result<Response<Body>, Problem> {
        let token = test_token::issue(&self.session, &self.slug, number, guest).await;
        let token = token.and_then(|token| test_token::json_of(&token));
        let token = token.map_err(|failure| self.told(failure))?;
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        Ok(respond(StatusCode::OK, "application/json", token))
    }

    /// The problem for a failed call. The terminal shows it as well, once until a call succeeds: the
    /// page asks again and again.
    fn told(&self, failure: Failure) -> Problem {
        let Some((problem, sentence)) = Problem::of(failure) else {
            let detail = "The platform did not respond.";
            return Problem::new(self.origin(), ProblemCode::Unavailable, detail);
        };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != sentence {
            terminal::warn(&sentence);
            *told = sentence;
        }
        problem
    }
}

fn wanted(path: &str) -> Option<Wanted> {
    match path {
        RUNTIME_JS => return Some(Wanted::Runtime),
        LOCAL_LOGIN => return Some(Wanted::Login),
        _ => {}
    }
    let (number, guest) = match path.strip_prefix(LOCAL_TOKEN_USER) {
        Some(number) => (number, false),
        None => (path.strip_prefix(LOCAL_TOKEN_GUEST)?, true),
    };
    // One spelling for each: `03` and `+3` are numbers as well.
    let number = (1..=10).find(|known: &u8| known.to_string() == number)?;
    Some(Wanted::Token { number, guest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_test_players_have_a_path() {
        let token = |number, guest| Some(Wanted::Token { number, guest });
        assert_eq!(wanted("/__platform/token/user/1"), token(1, false));
        assert_eq!(wanted("/__platform/token/guest/10"), token(10, true));
        assert_eq!(wanted("/__platform/runtime.js"), Some(Wanted::Runtime));
        assert_eq!(wanted("/__platform/login"), Some(Wanted::Login));
        for path in [
            "/__platform/token/user/0",
            "/__platform/token/user/11",
            "/__platform/token/user/03",
            "/__platform/token/user/+3",
            "/__platform/token/user/3/",
            "/__platform/token/user/",
            "/__platform/token/other/3",
            "/__platform/heartbeat",
            "/__platform/",
        ] {
            assert_eq!(wanted(path), None, "{path}");
        }
    }
}
