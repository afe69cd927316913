//! A response of the platform, and the failure that a bad one means.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header, response};
use platform_protocol::problem::{MEDIA_TYPE, ProblemCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::origin::PlatformOrigin;

const REQUEST_ID: &str = "x-request-id";

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The body.
    pub(crate) body: Bytes,
    headers: HeaderMap,
    origin: PlatformOrigin,
}

impl Answer {
    pub(super) fn new(origin: &PlatformOrigin, head: &response::Parts, body: Bytes) -> Self {
        Self {
            status: head.status,
            headers: head.headers.clone(),
            body,
            origin: origin.clone(),
        }
    }

    /// The id under which the platform logged the request.
    pub(crate) fn request_id(&self) -> Option<String> {
        let id = self.headers.get(REQUEST_ID)?.to_str().ok()?;
        (!id.is_empty()).then(|| id.to_owned())
    }

    /// Whether the body is of this media type, with any parameters.
    pub(crate) fn is_of_type(&self, media_type: &str) -> bool {
        is_of_type(&self.headers, media_type)
    }

    /// Returns the response if its status means success.
    ///
    /// # Errors
    /// What a bad status means; see [`Answer::failure`].
    pub(crate) fn done(self) -> Result<Self, Failure> {
        self.done_for(Caller::Account)
    }

    /// The same for a caller that may be a deploy token, which needs other advice.
    ///
    /// # Errors
    /// What a bad status means; see [`Answer::failure`].
    pub(crate) fn done_for(self, caller: Caller) -> Result<Self, Failure> {
        if self.status.is_success() {
            Ok(self)
        } else {
            Err(self.failure(caller))
        }
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// A bad status, or a body that was not expected.
    pub(crate) fn json<T: DeserializeOwned>(self) -> Result<T, Failure> {
        let answer = self.done()?;
        serde_json::from_slice(&answer.body).map_err(|_| answer.not_understood())
    }

    /// The failure for a response of an unexpected form.
    pub(crate) fn not_understood(&self) -> Failure {
        let sentence = format!(
            "The response of {} was not understood: check --origin, and that this program is not \
             older than the platform.",
            self.origin
        );
        Failure::unavailable(&self.origin, sentence).with_request_id(self.request_id())
    }

    /// The failure for a bad status: the sentence of the Problem Details (RFC 9457) if there are
    /// some. 401 means that no account is signed in.
    pub(crate) fn failure(&self, caller: Caller) -> Failure {
        let problem = self.problem();
        let text = |member: &str| {
            let text = problem.as_ref()?.get(member)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let sentence = text("detail").unwrap_or_else(|| {
            format!(
                "{} responded with {} and gave no reason.",
                self.origin, self.status
            )
        });
        let failure = if self.status == StatusCode::UNAUTHORIZED {
            let advice = format!("Run {}.", self.origin.login_command());
            Failure::not_signed_in(&self.origin, format!("{sentence} {advice}"))
        } else {
            let problem = text("type").unwrap_or_default();
            let advice = match caller {
                Caller::Account => advice(self.status, &problem),
                Caller::DeployToken => advice_to_token(self.status, &problem),
            };
            Failure::failed(format!("{sentence}{advice}"))
        };
        let failure = failure.with_request_id(text("request_id").or_else(|| self.request_id()));
        match problem {
            Some(problem) => failure.with_problem(problem),
            None => failure,
        }
    }

    /// The Problem Details of the response, if it has some.
    pub(crate) fn problem(&self) -> Option<Value> {
        if !self.is_of_type(MEDIA_TYPE) {
            return None;
        }
        let problem: Value = serde_json::from_slice(&self.body).ok()?;
        problem.is_object().then_some(problem)
    }
}

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// An account, or nobody yet.
    Account,
    /// A deploy token, which belongs to one project and is nobody's account.
    DeployToken,
}

/// What a pipeline's developer can do, who is not signed in there.
fn advice_to_token(status: StatusCode, problem_type: &str) -> &'static str {
    match ProblemCode::from_slug(slug_of(problem_type)) {
        Some(ProblemCode::NotFound | ProblemCode::UnknownHost) => {
            " Check the project's slug: a deploy token works for its own project only."
        }
        Some(ProblemCode::NotAllowed) => {
            " PLATFORM_TOKEN is a deploy token, which may only do what its scopes say: where you are signed in, `platform tokens list` shows them and `platform tokens create` makes another."
        }
        _ => advice(status, problem_type),
    }
}

/// The slug in the address of a problem's type.
fn slug_of(problem_type: &str) -> &str {
    problem_type.rsplit('/').next().unwrap_or_default()
}

/// What a developer can do about a problem whose sentence is written for players.
fn advice(status: StatusCode, problem_type: &str) -> &'static str {
    match ProblemCode::from_slug(slug_of(problem_type)) {
        Some(ProblemCode::NotFound | ProblemCode::UnknownHost) => {
            " Check the project's slug: `platform projects list` shows yours, `platform projects create` makes one."
        }
        Some(ProblemCode::StepUpRequired) => {
            " This sign-in cannot administer the platform; `platform projects list` shows your projects."
        }
        Some(ProblemCode::NotAllowed) => {
            " `platform whoami` shows who you are, `platform projects list` shows your projects."
        }
        _ if status.is_server_error() => {
            " Try again. If the error persists, send the request id to the platform's operator."
        }
        _ => "",
    }
}

/// Whether the body is of this media type, with any parameters.
pub(crate) fn is_of_type(headers: &HeaderMap, media_type: &str) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let essence = content_type
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media_type))
}
