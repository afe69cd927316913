//! Calls of the game's own backend, as the player.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::retry::{Retry, retry};
use crate::{PlatformError, place};

/// A call of the game's backend that has not been sent yet.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before `send`, `text` or `json` is awaited"]
pub struct Request {
    pub(crate) path: String,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    retry: Option<Retry>,
    /// Why it cannot be sent.
    fault: Option<PlatformError>,
}

/// The answer of the backend, with a status from 200 to 299.
#[derive(Debug)]
pub struct Response(pub(crate) place::Answer);

/// Begins a call of the game's backend: a path such as `/api/score`, on the game's own address.
pub fn fetch(path: impl Into<String>) -> Request {
    Request {
        path: path.into(),
        method: "GET".into(),
        headers: Vec::new(),
        body: None,
        retry: None,
        fault: None,
    }
}

impl Request {
    /// Sets the method. It is `GET` unless it is set.
    pub fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    /// Adds a header. The runtime adds the player's token.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends this text.
    pub fn body(mut self, text: impl Into<String>) -> Self {
        self.body = Some(text.into());
        self
    }

    /// Sends a value as JSON, with `POST`.
    pub fn post<T: Serialize + ?Sized>(self, value: &T) -> Self {
        self.method("POST").json_body(value)
    }

    /// Sends a value as JSON, with `PUT`.
    pub fn put<T: Serialize + ?Sized>(self, value: &T) -> Self {
        self.method("PUT").json_body(value)
    }

    /// Sends a value as JSON.
    pub fn json_body<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match place::to_json(value) {
            Ok(json) => self.body = Some(json),
            Err(error) => self.fault = Some(error),
        }
        self.header("content-type", "application/json")
    }

    /// Tries again if the call fails for a reason that may pass. A call of which no answer arrived may
    /// have had an effect: set this only for what may happen twice.
    pub fn retry(mut self, how: Retry) -> Self {
        self.retry = Some(how);
        self
    }

    /// Sends it.
    ///
    /// # Errors
    /// The backend or the platform answers with an error, or there is no answer.
    pub async fn send(&self) -> Result<Response, PlatformError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        match self.retry {
            Some(how) => retry(how, || place::fetch(self)).await,
            None => place::fetch(self).await,
        }
        .map(Response)
    }

    /// Sends it, and reads the answer as text.
    ///
    /// # Errors
    /// As for [`Request::send`].
    pub async fn text(&self) -> Result<String, PlatformError> {
        self.send().await?.text().await
    }

    /// Sends it, and reads the answer as JSON.
    ///
    /// # Errors
    /// As for [`Request::send`]; and [`PlatformError::NotUnderstood`].
    pub async fn json<T: DeserializeOwned>(&self) -> Result<T, PlatformError> {
        self.send().await?.json().await
    }
}

impl Response {
    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.0.status()
    }

    /// A header, if the answer has it.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        self.0.header(name)
    }

    /// Reads the body as text.
    ///
    /// # Errors
    /// The connection broke off.
    pub async fn text(self) -> Result<String, PlatformError> {
        self.0.text().await
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// The connection broke off; or [`PlatformError::NotUnderstood`].
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, PlatformError> {
        self.0.json().await
    }
}
