//! Queries and forms of the auth service, and what it reads of their fields: states of hand-offs,
//! answers of providers, return addresses, user codes and seals. A field is found once or refused, a
//! query survives being written again, and so does every value.

#![no_main]

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use platform_domain::device::UserCode;
use platform_domain::entropy::Entropy;
use platform_openid::returned::{MAX_CODE_BYTES, MAX_SHORT_BYTES, MAX_STATE_BYTES};
use platform_openid::returned::{Outcome, Returned};
use platform_web::api::query::{self, Within};
use platform_web::csrf::BrowserSecret;
use platform_web::form::Form;
use platform_web::hand_off_state::{HandOffState, is_path};
use platform_web::return_address::{MAX_BYTES, canonical, device_page};
use platform_web::seal::{Sealed, may_be_seal};
use serde::Deserialize;
use tokio::runtime::{Builder, Runtime};
use url::{Url, form_urlencoded};

const AUTH_URL: &str = "https://auth.example.com";
const ORIGINS: [&str; 2] = [
    "https://demo.example.com",
    "http://demo.platform.localhost:8787",
];
const NOW: i64 = 1_767_225_600_000;
/// The most fields and values that are looked at.
const MOST: usize = 40;
/// The largest form that the server reads, in bytes.
const MAX_FORM: usize = 8 * 1_024;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_current_thread();
    builder
        .enable_time()
        .build()
        .expect("a runtime can be made")
});
static SECRET: LazyLock<BrowserSecret> = LazyLock::new(|| BrowserSecret::generate(&Sevens));

/// No randomness: every run does the same.
#[derive(Debug)]
struct Sevens;

impl Entropy for Sevens {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// A query of the project API.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    limit: Option<Within<1, 100>>,
    offset: Option<Within<-720, 840>>,
}

fuzz_target!(|text: &str| {
    let pairs: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect();
    let form = Form::of_query(Some(text));
    check_fields(&form, &pairs);
    let mut writer = form_urlencoded::Serializer::new(String::new());
    let written = writer.extend_pairs(&pairs).finish();
    check_fields(&Form::of_query(Some(&written)), &pairs);
    let posted = post(&written);
    assert_eq!(posted.is_some(), written.len() <= MAX_FORM);
    if let Some(posted) = posted {
        check_fields(&posted, &pairs);
    }
    check_returned(&form);
    if let Ok(wanted) = query::read::<Wanted>(text) {
        assert!(
            wanted
                .limit
                .is_none_or(|limit| (1..=100).contains(&limit.get()))
        );
        assert!(
            wanted
                .offset
                .is_none_or(|offset| (-720..=840).contains(&offset.get()))
        );
    }
    check_value(text);
    for (_, value) in pairs.iter().take(MOST) {
        check_value(value);
    }
});

/// Reads a form as the server does; `None` if it refuses it.
fn post(written: &str) -> Option<Form> {
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]);
    let body = Body::from(written.to_owned());
    RUNTIME.block_on(Form::read(&headers, body)).ok()
}

fn check_fields(form: &Form, pairs: &[(String, String)]) {
    let mut fields: HashMap<&str, Vec<&str>> = HashMap::new();
    for (name, value) in pairs {
        fields.entry(name).or_default().push(value);
    }
    for (name, _) in pairs.iter().take(MOST) {
        let expected = fields.get(&**name).map(Vec::as_slice);
        match form.field(name) {
            Ok(value) => assert_eq!(value.as_slice(), expected.unwrap_or_default()),
            Err(_) => assert!(expected.is_some_and(|values| values.len() > 1)),
        }
    }
    if !fields.contains_key("redirect") {
        assert!(matches!(form.field("redirect"), Ok(None)));
    }
}

fn check_returned(form: &Form) {
    let Some(returned) = Returned::read(form) else {
        return;
    };
    assert!(returned.state.len() <= MAX_STATE_BYTES);
    assert!(
        returned
            .issuer
            .is_none_or(|issuer| issuer.len() <= MAX_SHORT_BYTES)
    );
    match returned.outcome {
        Outcome::Code(code) => assert!((1..=MAX_CODE_BYTES).contains(&code.len())),
        Outcome::Error(error) => assert!(error.len() <= MAX_SHORT_BYTES),
    }
}

fn check_value(text: &str) {
    if let Some(state) = HandOffState::parse(text) {
        assert_eq!(state.text(), text, "a state has one spelling");
        assert!(is_path(&state.path), "it leads to the game's own files");
        let address = Url::parse(&format!("{}{}", ORIGINS[0], state.path));
        let origin = address.expect("it is an address").origin();
        assert_eq!(origin.ascii_serialization(), ORIGINS[0]);
    }
    if let Some(code) = UserCode::parse(text) {
        assert_eq!(UserCode::parse(&code.to_string()), Some(code));
    }
    if let Some(page) = device_page(AUTH_URL, text) {
        assert_eq!(page, text);
        assert!(page.starts_with(AUTH_URL) && page.bytes().all(|byte| byte.is_ascii_graphic()));
    }
    check_address(text);
    if may_be_seal(text) {
        let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        assert_eq!(encoded, text, "a seal stands in an address as it is");
    }
    if let Some(age) = SECRET.age_of_seal(Sealed::Form, text, NOW) {
        assert_eq!(
            SECRET.seal(Sealed::Form, NOW - age),
            text,
            "it is another seal"
        );
    }
}

/// A return address is one of ours, and stays as it is when it comes back.
fn check_address(text: &str) {
    let known = |origin: &str| ORIGINS.contains(&origin);
    let Some(address) = canonical(text, known) else {
        return;
    };
    assert!(address.len() <= MAX_BYTES);
    assert!(
        address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    );
    let rest = ORIGINS
        .iter()
        .find_map(|origin| address.strip_prefix(origin));
    assert!(rest.is_some_and(|rest| rest.starts_with('/')), "{address}");
    assert_eq!(canonical(&address, known), Some(address));
}
