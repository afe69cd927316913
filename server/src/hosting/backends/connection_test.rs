//! Whether a backend answers: it is asked once when it is set, by the way that
//! the game's requests take.

use std::error::Error;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use tokio::time::{Instant, timeout};

use super::Backends;
use crate::domain::errors::innermost;
use crate::domain::project::BackendSettings;

/// How long it is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The status that it answered with; none where no answer came.
    pub status: Option<u16>,
    /// How long that took.
    pub milliseconds: u64,
    /// A sentence that says so, or why no answer came.
    pub sentence: String,
}

impl Backends {
    /// Asks a backend for the first of its paths. Whatever it answers, it is there.
    pub async fn try_out(&self, settings: &BackendSettings) -> Trial {
        let path = settings.paths.first().map_or("/", String::as_str);
        let request = Request::get(format!("{}{path}", settings.url))
            .header(header::VIA, format!("1.1 {}", self.name))
            .header(
                header::USER_AGENT,
                "platform-server (is the backend there?)",
            )
            .body(Body::empty());
        let began = Instant::now();
        let answer = match request {
            Ok(request) => timeout(PATIENCE, self.client.request(request)).await,
            Err(error) => return unreached(0, &error.to_string()),
        };
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match answer {
            Ok(Ok(answer)) => {
                let status = answer.status();
                Trial {
                    status: Some(status.as_u16()),
                    milliseconds,
                    sentence: format!("It answered {status} to GET {path} in {milliseconds} ms."),
                }
            }
            Ok(Err(error)) => unreached(milliseconds, &reason(&error)),
            Err(_) => unreached(
                milliseconds,
                &format!("no answer came within {} seconds", PATIENCE.as_secs()),
            ),
        }
    }
}

fn unreached(milliseconds: u64, why: &str) -> Trial {
    Trial {
        status: None,
        milliseconds,
        sentence: format!(
            "It does not answer yet: {why}. Until it does, players get `backend-unreachable`."
        ),
    }
}

/// Why it could not be asked. The outer causes say only that it could not.
fn reason(error: &(dyn Error + 'static)) -> String {
    innermost(error)
        .to_string()
        .trim_end_matches('.')
        .to_owned()
}
