//! Why a command did not do what was asked: one sentence that says what to do,
//! the request's id, and the exit status.

use std::fmt;

use platform_protocol::problem::ProblemCode;
use serde_json::{Value, json};

use crate::origin::PlatformOrigin;
use crate::terminal::plain;

/// The exit statuses besides 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 1: it was tried and failed.
    Failed,
    /// 2: it cannot be asked like this.
    Usage,
    /// 3: nobody is signed in.
    NotSignedIn,
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotSignedIn => 3,
        }
    }
}

/// What ends a command early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read the results has gone, which is nobody's fault.
    ReaderGone,
    /// Something to be told.
    Told(Box<Told>),
}

/// A failure to be told.
#[derive(Debug)]
pub(crate) struct Told {
    /// The exit status.
    pub(crate) exit: Exit,
    /// What is the matter and what to do about it.
    pub(crate) sentence: String,
    /// Under which id the platform logged the request.
    pub(crate) request_id: Option<String>,
    /// The same as Problem Details (RFC 9457), for programs; none where the
    /// results have said it already.
    pub(crate) problem: Option<Value>,
}

impl Failure {
    fn told(exit: Exit, sentence: String) -> Self {
        // RFC 9457 §4.2.1: without a type of its own, the title is the status's.
        let problem = json!({
            "type": "about:blank",
            "title": "Internal Server Error",
            "status": 500,
            "detail": sentence,
        });
        Self::Told(Box::new(Told {
            exit,
            sentence,
            request_id: None,
            problem: Some(problem),
        }))
    }

    /// It was tried and failed.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self::told(Exit::Failed, sentence.into())
    }

    /// It cannot be asked like this.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self::told(Exit::Usage, sentence.into())
    }

    /// Nobody is signed in.
    pub(crate) fn not_signed_in(origin: &PlatformOrigin, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        let problem = problem(ProblemCode::NotSignedIn, origin, &sentence);
        Self::Told(Box::new(Told {
            exit: Exit::NotSignedIn,
            sentence,
            request_id: None,
            problem: Some(problem),
        }))
    }

    /// The platform gave no answer.
    pub(crate) fn unavailable(origin: &PlatformOrigin, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        let problem = problem(ProblemCode::Unavailable, origin, &sentence);
        Self::Told(Box::new(Told {
            exit: Exit::Failed,
            sentence,
            request_id: None,
            problem: Some(problem),
        }))
    }

    /// With the id of the request that failed.
    pub(crate) fn with_request_id(mut self, id: Option<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.request_id = id;
        }
        self
    }

    /// With the Problem Details that the platform answered.
    pub(crate) fn with_problem(mut self, problem: Value) -> Self {
        if let Self::Told(told) = &mut self {
            told.problem = Some(problem);
        }
        self
    }

    /// Said by the results as well, which a program reads.
    pub(crate) fn said_by_results(mut self) -> Self {
        if let Self::Told(told) = &mut self {
            told.problem = None;
        }
        self
    }
}

fn problem(slug: ProblemCode, origin: &PlatformOrigin, detail: &str) -> Value {
    json!({
        "type": format!("{}/problems/{}", origin.auth_url(), slug.as_str()),
        "title": slug.title(),
        "status": slug.status(),
        "detail": detail,
    })
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The platform's words are shown, never obeyed by the terminal.
        f.write_str(&plain(&self.sentence))?;
        match &self.request_id {
            Some(id) => write!(f, " (request {})", plain(id)),
            None => Ok(()),
        }
    }
}
