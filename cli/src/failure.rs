//! Why a command failed: one sentence that says what to do, the request's id, and the exit status.

use std::fmt;

use platform_protocol::problem::ProblemCode;
use serde_json::{Value, json};

use crate::origin::PlatformOrigin;

/// The exit statuses besides 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 1: the attempt failed.
    Failed,
    /// 2: the command is used wrongly.
    Usage,
    /// 3: no account is signed in.
    NotSignedIn,
}

impl Exit {
    /// The exit code.
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
    /// The reader of the results has closed the pipe, which is no error.
    ReaderGone,
    /// A failure with a message.
    Told(Box<Told>),
}

/// A failure with a message.
#[derive(Debug)]
pub(crate) struct Told {
    /// The exit status.
    pub(crate) exit: Exit,
    /// What is wrong and what to do about it.
    pub(crate) sentence: String,
    /// The id under which the platform logged the request.
    pub(crate) request_id: Option<String>,
    /// The same as Problem Details (RFC 9457), for programs; `None` if the results contain it
    /// already.
    pub(crate) problem: Option<Value>,
}

impl Failure {
    fn told(exit: Exit, sentence: String) -> Self {
        // No server answered, so there is no status (RFC 9457 §3.1.2), and no page about the problem.
        let problem = json!({
            "type": "urn:platform:command-failed",
            "title": "The command failed",
            "detail": sentence,
        });
        Self::Told(Box::new(Told {
            exit,
            sentence,
            request_id: None,
            problem: Some(problem),
        }))
    }

    /// The attempt failed.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self::told(Exit::Failed, sentence.into())
    }

    /// The folder cannot be deployed, which this program found out by itself.
    pub(crate) fn invalid_folder(sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        let code = ProblemCode::DeploymentInvalid;
        let problem = json!({
            "type": format!("urn:platform:{}", code.as_str()),
            "title": code.title(),
            "detail": sentence,
        });
        Self::told(Exit::Failed, sentence).with_problem(problem)
    }

    /// The command is used wrongly.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self::told(Exit::Usage, sentence.into())
    }

    /// No account is signed in.
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

    /// The platform did not respond.
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

    /// Adds the id of the request that failed.
    pub(crate) fn with_request_id(mut self, id: Option<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.request_id = id;
        }
        self
    }

    /// Adds the Problem Details of the platform's response.
    pub(crate) fn with_problem(mut self, problem: Value) -> Self {
        if let Self::Told(told) = &mut self {
            told.problem = Some(problem);
        }
        self
    }

    /// Marks it as contained in the results that a program reads.
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
        f.write_str(&self.sentence)?;
        match &self.request_id {
            Some(id) => write!(f, " (request {id})"),
            None => Ok(()),
        }
    }
}
