//! In the browser: the object `platform` of the runtime in the page.

use std::time::Duration;

use gloo_timers::future::TimeoutFuture;
use js_sys::{JSON, Reflect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_wasm_bindgen::Serializer;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Window};

use crate::{PlatformError, Player, Problem, Request};

/// The event of another player.
const PLAYER_CHANGE: &str = "platform:playerchange";

#[wasm_bindgen]
extern "C" {
    /// The global `platform`.
    type Platform;

    #[wasm_bindgen(method, catch)]
    async fn player(this: &Platform) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch)]
    async fn fetch(this: &Platform, path: &str, init: &RequestInit) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, js_name = getAccessToken)]
    async fn get_access_token(this: &Platform, options: &JsValue) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, js_name = loginUrl)]
    fn login_url(this: &Platform, redirect: Option<&str>) -> Result<String, JsValue>;
    #[wasm_bindgen(method, catch, js_name = profileUrl)]
    fn profile_url(this: &Platform, redirect: Option<&str>) -> Result<String, JsValue>;
    #[wasm_bindgen(method, catch, js_name = signOut)]
    async fn sign_out(this: &Platform) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, js_name = reportError)]
    fn report_error(this: &Platform, message: &str, metadata: &JsValue)
    -> Result<JsValue, JsValue>;
}

/// An answer of the backend.
#[derive(Debug)]
pub(crate) struct Answer(web_sys::Response);

/// Calls a function at every change of the player, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the calls; `forget` keeps them for as long as the page is open"]
pub struct PlayerChange(Option<Closure<dyn FnMut()>>);

fn platform() -> Result<Platform, PlatformError> {
    let found = Reflect::get(&js_sys::global(), &"platform".into());
    match found {
        Ok(platform) if platform.is_object() => Ok(platform.unchecked_into()),
        _ => Err(PlatformError::NoRuntime),
    }
}

fn window() -> Result<Window, PlatformError> {
    web_sys::window().ok_or(PlatformError::NoRuntime)
}

pub(crate) async fn player() -> Result<Player, PlatformError> {
    let player = platform()?.player().await;
    parsed(player.map_err(|thrown| error(&thrown))?)
}

pub(crate) async fn access_token(force_refresh: bool) -> Result<String, PlatformError> {
    let options = js_sys::Object::new();
    let set = Reflect::set(&options, &"forceRefresh".into(), &force_refresh.into());
    set.map_err(|thrown| error(&thrown))?;
    let token = platform()?.get_access_token(&options).await;
    parsed(token.map_err(|thrown| error(&thrown))?)
}

pub(crate) fn login_url(redirect: Option<&str>) -> Result<String, PlatformError> {
    let url = platform()?.login_url(redirect);
    url.map_err(|thrown| error(&thrown))
}

pub(crate) fn profile_url(redirect: Option<&str>) -> Result<String, PlatformError> {
    let url = platform()?.profile_url(redirect);
    url.map_err(|thrown| error(&thrown))
}

pub(crate) fn open(url: &str) -> Result<(), PlatformError> {
    let opened = window()?.location().set_href(url);
    opened.map_err(|thrown| error(&thrown))
}

pub(crate) async fn sign_out() -> Result<(), PlatformError> {
    let done = platform()?.sign_out().await;
    done.map(drop).map_err(|thrown| error(&thrown))
}

pub(crate) fn report_error<T: Serialize + ?Sized>(message: &str, metadata: &T) {
    let metadata = metadata.serialize(&Serializer::json_compatible());
    if let Ok(platform) = platform() {
        // It never rejects, and need not be waited for.
        let _ = platform.report_error(message, &metadata.unwrap_or_default());
    }
}

pub(crate) async fn fetch(request: &Request) -> Result<Answer, PlatformError> {
    let init = RequestInit::new();
    init.set_method(&request.method);
    if let Some(body) = &request.body {
        init.set_body(&body.into());
    }
    let headers = js_sys::Array::new();
    for (name, value) in &request.headers {
        headers.push(&js_sys::Array::of2(&name.into(), &value.into()));
    }
    init.set_headers(&headers);
    let answer = platform()?.fetch(&request.path, &init).await;
    let answer = answer.map_err(|thrown| error(&thrown))?;
    Ok(Answer(answer.unchecked_into()))
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.0.status()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.0.headers().get(name).ok().flatten()
    }

    pub(crate) async fn text(self) -> Result<String, PlatformError> {
        let text = self.0.text().map_err(|thrown| error(&thrown))?;
        parsed(JsFuture::from(text).await.map_err(|_| broken_off())?)
    }

    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T, PlatformError> {
        let text = self.text().await?;
        let value = JSON::parse(&text);
        parsed(value.map_err(|thrown| PlatformError::NotUnderstood(sentence(&thrown)))?)
    }
}

pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, PlatformError> {
    let value = value.serialize(&Serializer::json_compatible());
    let value = value.map_err(|error| PlatformError::NotUnderstood(error.to_string()))?;
    let json = JSON::stringify(&value).map_err(|thrown| error(&thrown))?;
    Ok(json.into())
}

pub(crate) async fn pause(time: Duration) {
    TimeoutFuture::new(u32::try_from(time.as_millis()).unwrap_or(u32::MAX)).await;
}

impl PlayerChange {
    pub(crate) fn listen(handler: impl FnMut() + 'static) -> Self {
        let Ok(window) = window() else {
            return Self(None);
        };
        let handler = Closure::<dyn FnMut()>::new(handler);
        let listener = handler.as_ref().unchecked_ref();
        let added = window.add_event_listener_with_callback(PLAYER_CHANGE, listener);
        Self(added.is_ok().then_some(handler))
    }

    /// Goes on for as long as the page is open.
    pub fn forget(mut self) {
        if let Some(handler) = self.0.take() {
            handler.forget();
        }
    }
}

impl Drop for PlayerChange {
    fn drop(&mut self) {
        if let (Some(handler), Ok(window)) = (&self.0, window()) {
            let listener = handler.as_ref().unchecked_ref();
            let _ = window.remove_event_listener_with_callback(PLAYER_CHANGE, listener);
        }
    }
}

fn parsed<T: DeserializeOwned>(value: JsValue) -> Result<T, PlatformError> {
    let parsed = serde_wasm_bindgen::from_value(value);
    parsed.map_err(|error| PlatformError::NotUnderstood(error.to_string()))
}

/// The error that JavaScript threw.
fn error(thrown: &JsValue) -> PlatformError {
    let text = |name: &str| {
        let value = Reflect::get(thrown, &name.into());
        value.ok().and_then(|value| value.as_string())
    };
    if text("name").as_deref() != Some("PlatformError") {
        return PlatformError::Misused(sentence(thrown));
    }
    let status = Reflect::get(thrown, &"status".into());
    let status = status.ok().and_then(|status| status.as_f64());
    PlatformError::of(Problem {
        message: text("message").unwrap_or_default(),
        // A status has three digits.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "three digits"
        )]
        status: status.unwrap_or_default() as u16,
        kind: text("type").unwrap_or_default(),
        request_id: text("requestId").unwrap_or_default(),
    })
}

/// What a thrown value says.
fn sentence(thrown: &JsValue) -> String {
    let message = Reflect::get(thrown, &"message".into());
    let message = message.ok().and_then(|message| message.as_string());
    message.unwrap_or_else(|| format!("{thrown:?}"))
}

fn broken_off() -> PlatformError {
    PlatformError::of(Problem {
        message: "The connection broke off.".into(),
        ..Problem::default()
    })
}
