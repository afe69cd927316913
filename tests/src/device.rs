//! A device that signs in without a browser (RFC 8628), and stays signed in (RFC 6749 §6), over plain
//! HTTP. Each request may go to another node.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::person;
use crate::visitor::Visitor;

/// Where a sign-in begins.
const AUTHORIZATION: &str = "/device/authorization";
/// Where the device gets its tokens.
const TOKEN: &str = "/device/token";
/// The only client.
const CLIENT: (&str, &str) = ("client_id", "platform-cli");

/// A device whose sign-in has begun.
#[derive(Clone, Debug)]
pub struct Device {
    /// The code that the person types.
    pub user_code: String,
    code: String,
}

impl Device {
    /// Begins to sign in.
    ///
    /// # Panics
    /// Panics if that is refused.
    pub async fn begin(visitor: &Visitor) -> Self {
        let begun = ask(visitor, AUTHORIZATION, &[CLIENT]).await;
        let begun = begun.unwrap_or_else(|refusal| panic!("{refusal}"));
        Self {
            user_code: text(&begun, "user_code"),
            code: text(&begun, "device_code"),
        }
    }

    /// Returns the refresh token, once a person has approved.
    ///
    /// # Errors
    /// The response, if there is no token.
    pub async fn redeem(&self, visitor: &Visitor) -> Result<String, String> {
        let grant = "urn:ietf:params:oauth:grant-type:device_code";
        let fields = [("grant_type", grant), ("device_code", &self.code), CLIENT];
        let tokens = ask(visitor, TOKEN, &fields).await?;
        Ok(text(&tokens, "refresh_token"))
    }
}

/// Exchanges a refresh token for the next one, which is returned.
///
/// # Errors
/// The response, if there is no token.
pub async fn refresh(visitor: &Visitor, token: &str) -> Result<String, String> {
    let grant = "refresh_token";
    let fields = [("grant_type", grant), (grant, token), CLIENT];
    let tokens = ask(visitor, TOKEN, &fields).await?;
    Ok(text(&tokens, "refresh_token"))
}

async fn ask(visitor: &Visitor, path: &str, fields: &[(&str, &str)]) -> Result<Value, String> {
    let request = visitor
        .request(Method::POST, "auth", path)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(person::query(fields));
    let answer = request.send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let body = answer.text().await.map_err(|error| error.to_string())?;
    if status != StatusCode::OK {
        return Err(format!("{status}: {body}"));
    }
    serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))
}

fn text(answer: &Value, member: &str) -> String {
    let text = answer[member].as_str();
    text.unwrap_or_else(|| panic!("no {member} in {answer}"))
        .to_owned()
}
