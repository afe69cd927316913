//! Requests that tell a project's webhook about an event: to the same addresses as backends, and
//! with the same client. Nothing of a response is read but its status.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use tokio::time::{Instant, timeout};

use super::Backends;
use super::connection_test::reason;

/// The timeout.
const PATIENCE: Duration = Duration::from_secs(5);

/// A signed event.
#[derive(Clone, Debug)]
pub struct Event {
    /// The id of the message.
    pub id: String,
    /// When it is sent, in seconds since the Unix epoch.
    pub seconds: i64,
    /// The signature.
    pub signature: String,
    /// The body, as JSON.
    pub body: String,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The status of the response, or the reason why there was none.
    pub answer: Result<u16, String>,
    /// How long it took.
    pub milliseconds: u64,
}

impl Backends {
    /// Sends an event to this address, with the trace to which it belongs. No redirect is followed.
    pub async fn send_event(&self, url: &str, event: &Event) -> Sent {
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::VIA, format!("1.1 {}", self.name))
            .header(header::USER_AGENT, "platform-server (webhook)")
            .header("webhook-id", &event.id)
            .header("webhook-timestamp", event.seconds)
            .header("webhook-signature", &event.signature)
            .body(Body::from(event.body.clone()));
        let mut request = match request {
            Ok(request) => request,
            Err(error) => {
                return Sent {
                    answer: Err(error.to_string()),
                    milliseconds: 0,
                };
            }
        };
        let mut step = self.telemetry.begin("webhook delivery");
        step.note("http.request.method", "POST");
        step.pass_on(request.headers_mut());
        let began = Instant::now();
        let answer = timeout(PATIENCE, self.client.request(request)).await;
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let answer = match answer {
            // The response is dropped, which closes the connection if it has a body.
            Ok(Ok(response)) => Ok(response.status().as_u16()),
            Ok(Err(error)) => Err(reason(&error)),
            Err(_) => Err(format!(
                "no answer came within {} seconds",
                PATIENCE.as_secs()
            )),
        };
        match &answer {
            Ok(status) => step.answered(*status),
            Err(_) => step.fail("no answer"),
        }
        Sent {
            answer,
            milliseconds,
        }
    }
}
