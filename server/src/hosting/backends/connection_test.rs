//! Tests whether a backend responds: it gets one request when it is set, in the same way as the
//! game's requests.

use std::error::Error;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use tokio::time::{Instant, timeout};

use super::Backends;
use crate::domain::errors::innermost;
use crate::domain::project::BackendSettings;

/// The timeout.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The status of the response; `None` without a response.
    pub status: Option<u16>,
    /// How long it took.
    pub milliseconds: u64,
    /// A sentence about the response, or about the reason why there was none.
    pub sentence: String,
}

impl Backends {
    /// Sends a request for the first of a backend's paths. Any response shows that the backend is
    /// running.
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
                    sentence: format!(
                        "It responded with {status} to GET {path} in {milliseconds} ms."
                    ),
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
            "It does not respond yet: {why}. Until it does, players get the error \
             `backend-unreachable`."
        ),
    }
}

/// Returns the reason of a failure. The outer causes only say that the request failed.
pub(super) fn reason(error: &(dyn Error + 'static)) -> String {
    innermost(error)
        .to_string()
        .trim_end_matches('.')
        .to_owned()
}
