//! Tests of the cookie's attributes, and of accepted and rejected forms.

use super::*;
use platform_domain::entropy::SystemEntropy;

const AUTH: &str = "http://auth.platform.localhost:8787";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn cookie(secret: &BrowserSecret) -> String {
    let set = secret.set_cookie(false);
    set.to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[test]
fn the_cookie_goes_with_the_browser_and_stays_on_the_host() {
    let secret = BrowserSecret([0; 32]);
    let value = "A".repeat(43);
    assert_eq!(
        secret.set_cookie(false).to_str().unwrap(),
        format!("platform-form={value}; HttpOnly; SameSite=Lax; Path=/; Priority=High")
    );
    let secure = secret.set_cookie(true);
    assert_eq!(
        secure.to_str().unwrap(),
        format!(
            "__Host-platform-form={value}; HttpOnly; SameSite=Lax; Secure; Path=/; Priority=High"
        )
    );
    assert!(secure.is_sensitive());
}

#[test]
fn nothing_that_leaves_the_secret_gives_it_away() {
    let secret = BrowserSecret::generate(&SystemEntropy);
    let held = cookie(&secret);
    let value = held.strip_prefix("platform-form=").unwrap();
    assert_ne!(secret.form_token(), value);
    assert_ne!(
        URL_SAFE_NO_PAD.encode(secret.binding()),
        secret.form_token()
    );
    assert_eq!(format!("{secret:?}"), "BrowserSecret(hidden)");
    let read = BrowserSecret::read(&headers(&[("cookie", &held)]), false).unwrap();
    assert_eq!(read.form_token(), secret.form_token());
    assert_eq!(read.binding(), secret.binding());
}

#[test]
fn only_one_readable_cookie_counts() {
    let secret = BrowserSecret::generate(&SystemEntropy);
    let held = cookie(&secret);
    let huge = format!("platform-form={}", "x".repeat(8_192));
    for lines in [
        &[][..],
        &["platform-form="],
        &["platform-form"],
        &["platform-form=short"],
        &[&huge],
        &[&format!("{held}A")],
        &[&format!("__Host-{held}")],
        &[&format!("{held}; {held}")],
        &[&held, "platform-form=tossed"],
    ] {
        let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
        assert!(
            BrowserSecret::read(&headers(&lines), false).is_none(),
            "{lines:?}"
        );
    }
}

#[test]
fn only_our_own_form_of_this_browser_is_taken() {
    let secret = BrowserSecret::generate(&SystemEntropy);
    let other = BrowserSecret::generate(&SystemEntropy);
    let held = cookie(&secret);
    let token = secret.form_token();
    let ask = |more: &[(&'static str, &str)], token: Option<&str>| {
        let mut headers = headers(more);
        headers.append("cookie", HeaderValue::from_str(&held).unwrap());
        check_form(&headers, false, AUTH, token).map_err(|refusal| refusal.slug())
    };
    for good in [
        &[][..],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
        &[("origin", AUTH)],
        &[("sec-fetch-site", "same-origin"), ("origin", AUTH)],
    ] {
        let taken = ask(good, Some(&token)).unwrap();
        assert_eq!(taken.binding(), secret.binding(), "{good:?}");
    }
    for bad in [
        &[("sec-fetch-site", "cross-site")][..],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "SAME-ORIGIN")],
        &[("sec-fetch-site", "")],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "cross-site"),
        ],
        &[("origin", "null")],
        &[("origin", "")],
        &[("origin", "http://demo.platform.localhost:8787")],
        &[("origin", "http://platform.localhost:8787")],
        &[("origin", "https://auth.platform.localhost:8787")],
        &[("origin", "http://auth.platform.localhost")],
        &[("origin", "http://auth.platform.localhost:8787/")],
        &[("origin", AUTH), ("origin", AUTH)],
    ] {
        let refused = ask(bad, Some(&token)).unwrap_err();
        assert_eq!(refused, ProblemCode::NotAllowed, "{bad:?}");
    }
    let wrong = other.form_token();
    let short = &token[..42];
    let long = format!("{token}A");
    for bad in [None, Some(""), Some(&wrong), Some(short), Some(&long)] {
        assert_eq!(
            ask(&[], bad).unwrap_err(),
            ProblemCode::NotAllowed,
            "{bad:?}"
        );
    }
    let twice = ask(&[("cookie", &held)], Some(&token)).unwrap_err();
    assert_eq!(twice, ProblemCode::InvalidRequest);
    let without = check_form(&HeaderMap::new(), false, AUTH, Some(&token));
    assert_eq!(without.unwrap_err().slug(), ProblemCode::NotAllowed);
}

#[test]
fn the_cookie_takes_the_way_back_with_it() {
    let secret = BrowserSecret::generate(&SystemEntropy);
    let address = "http://demo.platform.localhost:8787/level?n=1&m=2#start";
    let set = secret.set_cookie_going_back(false, address);
    let held = set.to_str().unwrap().split(';').next().unwrap().to_owned();
    let held = headers(&[("cookie", &held)]);
    let read = BrowserSecret::read(&held, false).unwrap();
    assert_eq!(read.form_token(), secret.form_token());
    assert_eq!(
        address_to_go_back_to(&held, false).as_deref(),
        Some(address)
    );
    let bare = headers(&[("cookie", &cookie(&secret))]);
    assert_eq!(address_to_go_back_to(&bare, false), None);
}
