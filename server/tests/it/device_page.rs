//! The page on which a person approves a device, and the list of devices on the profile page.

use crate::browser::{Browser, hidden_field};
use crate::device::{Device, account, error, refresh, refresh_token, signed_in};
use crate::pages::assert_is_page;
use crate::support::{Answer, TestApp, send};

async fn enter(app: &TestApp, browser: &mut Browser<'_>, code: &str) -> Answer {
    let token = browser.form_token().to_owned();
    let address = format!("{}/device", app.origin("auth"));
    let fields = [("csrf", token.as_str()), ("user_code", code)];
    browser.post(&address, &fields).await
}

#[tokio::test]
async fn a_code_is_typed_in_any_spelling_and_nothing_happens_before_the_decision() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let name = browser.token().await.claims().username;
    let device = Device::begin(&app).await;
    let page = browser.get(&format!("{}/device", app.origin("auth"))).await;
    assert_eq!(page.status, 200);
    assert_is_page(&page, "device");
    let code = &device.user_code;
    for typed in [
        code.clone(),
        code.to_lowercase(),
        code.replace('-', ""),
        code.replace('-', " "),
        format!(" {code} "),
    ] {
        let entered = enter(&app, &mut browser, &typed).await.location();
        let proof = entered.strip_prefix(&device.complete).unwrap();
        assert!(proof.starts_with("&proof="), "{typed}: {entered}");
        let asked = browser.get(&entered).await;
        assert!(asked.text().contains(">Approve<"), "{}", asked.text());
    }
    let asked = browser.type_address(&device.complete).await;
    assert_is_page(&asked, "device");
    assert_eq!(asked.header("cache-control"), Some("no-store"));
    for part in [
        code.as_str(),
        "The command line",
        "127.0.0.1, the network that you are in",
        "less than a minute ago",
        ">Approve<",
        ">Deny<",
        "Only if you started this yourself",
        name.as_str(),
    ] {
        assert!(asked.text().contains(part), "{part}: {}", asked.text());
    }
    assert_eq!(error(&device.poll().await, 400), "authorization_pending");

    let done = device.decide(&mut browser, "approve").await.location();
    assert!(browser.get(&done).await.text().contains("is signed in"));
    assert_eq!(device.poll().await.status, 200);
    let again = browser.type_address(&device.complete).await;
    assert_eq!(again.status, 404);
    assert!(
        again
            .text()
            .contains("No device is waiting with this code.")
    );
}

#[tokio::test]
async fn a_denied_device_is_told_and_its_code_is_used_up() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let device = Device::begin(&app).await;
    let done = device.decide(&mut browser, "deny").await.location();
    assert!(browser.get(&done).await.text().contains("turned away"));
    assert_eq!(error(&device.poll().await, 400), "access_denied");
    assert_eq!(browser.type_address(&device.complete).await.status, 404);
}

#[tokio::test]
async fn what_is_no_code_is_told_and_kept_in_the_field() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    for (typed, status, told) in [
        ("", 400, "A code has eight letters"),
        ("BCDF-GHJ1", 400, "A code has eight letters"),
        ("<b>", 400, "value=\"&#60;b&#62;\""),
    ] {
        let answer = enter(&app, &mut browser, typed).await;
        assert_eq!(answer.status, status, "{typed}");
        for part in [told, "id=\"code-error\" role=\"alert\"", "aria-invalid"] {
            assert!(answer.text().contains(part), "{part}: {}", answer.text());
        }
    }
    let unknown = enter(&app, &mut browser, "bcdfghjk").await.location();
    assert_eq!(browser.get(&unknown).await.status, 404);
    // The code expires while its page is open.
    let device = Device::begin(&app).await;
    let page = browser.type_address(&device.complete).await;
    app.clock.advance(10 * 60_000);
    let late = device.press(&mut browser, &page, "approve").await;
    assert_eq!(late.status, 404);
    assert!(late.text().contains("older than ten minutes"));
    for twice in [
        "/device?user_code=A&user_code=B",
        "/device?done=approve&done=deny",
    ] {
        let answer = browser.get(&format!("{}{twice}", app.origin("auth"))).await;
        assert_eq!(answer.problem(), "invalid-request", "{twice}");
    }
}

#[tokio::test]
async fn who_has_no_account_signs_in_first_and_comes_back_to_the_code() {
    let app = TestApp::start().await;
    let device = Device::begin(&app).await;
    let mut stranger = Browser::new(&app);
    let mut guest = Browser::new(&app);
    let token = guest.token().await;
    assert!(token.claims().is_anon);
    for browser in [&mut stranger, &mut guest] {
        let login = browser.type_address(&device.complete).await.location();
        let auth = app.origin("auth");
        let page = browser.get(&format!("{auth}{login}")).await;
        let redirect = hidden_field(&page, "redirect").replace("&#38;", "&");
        let proof = redirect.strip_prefix(&device.complete).unwrap();
        assert!(proof.starts_with("&proof="), "{redirect}");
        assert!(page.text().contains("to let your device in"));
        assert!(!page.text().contains("without signing in"));
        let back = browser.sign_in("ada", &redirect).await;
        assert_eq!(back.location(), redirect);
        let asked = browser.get(&redirect).await;
        assert!(asked.text().contains(&device.user_code));
        assert!(asked.text().contains(">Approve<"));
    }
    // An invalid code is not passed on, nor is one to which another page led.
    let odd = format!("{}/device?user_code=%22%3E", app.origin("auth"));
    let login = Browser::new(&app).type_address(&odd).await.location();
    assert!(login.ends_with("%2Fdevice"), "{login}");
    let login = Browser::new(&app).get(&device.complete).await.location();
    assert!(login.ends_with("%2Fdevice"), "{login}");
}

#[tokio::test]
async fn only_our_own_form_of_this_account_decides() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let device = Device::begin(&app).await;
    let page = browser.type_address(&device.complete).await;
    let player = hidden_field(&page, "account");
    let address = format!("{}/device", app.origin("auth"));
    let shown = hidden_field(&page, "shown");
    let token = browser.form_token().to_owned();
    app.clock.advance(2_000);
    let good = [
        ("csrf", token.as_str()),
        ("user_code", device.user_code.as_str()),
        ("account", player.as_str()),
        ("shown", shown.as_str()),
        ("action", "approve"),
    ];
    // Without the token, and with a token of another browser.
    for fields in [
        &good[1..],
        &[("csrf", "x"), good[1], good[2], good[3], good[4]],
    ] {
        let refused = browser.post(&address, fields).await;
        assert_eq!(refused.problem(), "not-allowed");
    }
    for (name, value) in [
        ("sec-fetch-site", "cross-site".to_owned()),
        ("sec-fetch-site", "same-site".to_owned()),
        ("origin", app.origin("demo")),
    ] {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&good)
            .finish();
        let request = browser
            .request(reqwest::Method::POST, &address)
            .header("content-type", "application/x-www-form-urlencoded")
            .header(name, value)
            .body(body);
        assert_eq!(send(request).await.problem(), "not-allowed");
    }
    let odd = browser
        .post(
            &address,
            &[good[0], good[1], good[2], good[3], ("action", "maybe")],
        )
        .await;
    assert_eq!(odd.problem(), "invalid-request");

    // Another person signs in with this browser while the page is open: they are shown the page
    // before anything is decided for them.
    let game = format!("{}/", app.origin("demo"));
    browser.sign_in("eve", &game).await;
    let led_back = browser.post(&address, &good).await;
    assert!(led_back.location().starts_with(&device.complete));
    assert_eq!(error(&device.poll().await, 400), "authorization_pending");
    // Opening an address decides nothing.
    let url = format!("{}&action=approve&account={player}", device.complete);
    assert_eq!(browser.type_address(&url).await.status, 200);
    app.clock.advance(5_000);
    assert_eq!(error(&device.poll().await, 400), "authorization_pending");
}

#[tokio::test]
async fn an_account_looks_at_no_more_than_a_few_codes() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let device = Device::begin(&app).await;
    let wrong = format!("{}/device?user_code=BCDF-GHJK", app.origin("auth"));
    for _ in 0..20 {
        assert_eq!(browser.type_address(&wrong).await.status, 404);
    }
    for address in [&wrong, &device.complete] {
        let refused = browser.type_address(address).await;
        assert_eq!(refused.problem(), "too-many-requests");
        assert_eq!(refused.header("retry-after"), Some("6"));
    }
    let mut other = account(&app, "bob").await;
    assert_eq!(other.type_address(&device.complete).await.status, 200);
    app.clock.advance(6_000);
    assert_eq!(browser.type_address(&device.complete).await.status, 200);
}

#[tokio::test]
async fn another_network_is_named_as_one() {
    let app = TestApp::with(|config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let mut browser = account(&app, "ada").await;
    let device = Device::begin(&app).await;
    for (address, same) in [("127.0.0.1", true), ("203.0.113.7", false)] {
        let request = browser
            .request(reqwest::Method::GET, &device.complete)
            .header("sec-fetch-site", "none")
            .header("x-forwarded-for", address);
        let page = browser.send(request).await;
        let html = page.text();
        assert_eq!(html.contains("the network that you are in"), same);
        assert_eq!(html.contains("It asks from another network"), !same);
    }
}

#[tokio::test]
async fn the_profile_page_lists_devices_and_ends_them() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let address = format!("{}/profile", app.origin("auth"));
    let page = browser.get(&address).await;
    assert!(!page.text().contains("<h2>Devices</h2>"));

    let tokens = [
        refresh_token(&signed_in(&app, &mut browser).await),
        refresh_token(&signed_in(&app, &mut browser).await),
        refresh_token(&signed_in(&app, &mut browser).await),
    ];
    app.clock.advance(24 * 60 * 60_000);
    // The device that was used last is listed first.
    let next = refresh_token(&refresh(&app, &tokens[0]).await);
    let page = browser.get(&address).await;
    assert_is_page(&page, "profile");
    let html = page.text();
    for part in [
        "<h2>Devices</h2>",
        "From 127.0.0.1<",
        "Since <time datetime=\"2026-01-01\">",
        "last used <time datetime=\"2026-01-02\">",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert_eq!(html.matches("name=\"device\"").count(), 3);
    let first = hidden_field(&page, "device");
    let mut eve = account(&app, "eve").await;
    let eves_page = eve.get(&address).await;

    app.clock.advance(2_000);
    let token = browser.form_token().to_owned();
    let shown = hidden_field(&page, "shown");
    let end = [
        ("csrf", token.as_str()),
        ("shown", shown.as_str()),
        ("action", "end-device"),
        ("device", first.as_str()),
    ];
    let eves = eve.form_token().to_owned();
    let eves_shown = hidden_field(&eves_page, "shown");
    let fields = [
        ("csrf", eves.as_str()),
        ("shown", eves_shown.as_str()),
        end[2],
        end[3],
    ];
    eve.post(&address, &fields).await.location();
    let next = refresh_token(&refresh(&app, &next).await);
    let ended = browser.post(&address, &end).await.location();
    assert!(ended.ends_with("&saved=end-device"), "{ended}");
    assert_eq!(error(&refresh(&app, &next).await, 400), "invalid_grant");
    let left = refresh_token(&refresh(&app, &tokens[1]).await);
    let odd = [end[0], end[1], end[2], ("device", "1")];
    let odd = browser.post(&address, &odd).await;
    assert_eq!(odd.problem(), "invalid-request");

    let others = [end[0], end[1], ("action", "sign-out-others")];
    browser.post(&address, &others).await.location();
    for token in [&left, &tokens[2]] {
        assert_eq!(error(&refresh(&app, token).await, 400), "invalid_grant");
    }
    let page = browser.get(&address).await;
    assert!(!page.text().contains("<h2>Devices</h2>"));
}

#[tokio::test]
async fn a_code_that_another_page_brought_is_left_out() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let device = Device::begin(&app).await;
    for site in ["same-origin", "same-site", "cross-site", ""] {
        let request = browser.request(reqwest::Method::GET, &device.complete);
        let led = browser.send(request.header("sec-fetch-site", site)).await;
        assert_eq!(led.status, 200);
        let html = led.text();
        assert!(html.contains("name=\"user_code\" type=\"text\" value=\"\""));
        assert!(
            html.contains("brought a code, which was left out"),
            "{html}"
        );
        for part in [device.user_code.as_str(), "Approve", "another network"] {
            assert!(!html.contains(part), "{site}: {part}: {html}");
        }
    }
    // A proof of somebody else, or an old one, is not accepted either.
    let mut eve = account(&app, "eve").await;
    let eves = enter(&app, &mut eve, &device.user_code).await.location();
    assert!(eves.contains("&proof="), "{eves}");
    let led = browser.get(&eves).await;
    assert!(!led.text().contains("Approve"), "{}", led.text());
    let own = enter(&app, &mut browser, &device.user_code)
        .await
        .location();
    assert!(browser.get(&own).await.text().contains("Approve"));
    app.clock.advance(10 * 60_000);
    let late = browser.get(&own).await;
    assert!(late.text().contains("was left out"), "{}", late.text());
}

#[tokio::test]
async fn a_press_within_two_seconds_of_the_page_decides_nothing() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let device = Device::begin(&app).await;
    for action in ["approve", "deny"] {
        let page = browser.type_address(&device.complete).await;
        app.clock.advance(1_999);
        let hurried = device.press(&mut browser, &page, action).await;
        assert_eq!(hurried.status, 409);
        assert_is_page(&hurried, "device");
        let html = hurried.text();
        assert!(html.contains("less than two seconds"), "{html}");
        assert!(html.contains(&device.user_code), "{html}");
        // The page that explains this is a new page: the player has to wait for it to be readable
        // again.
        let again = device.press(&mut browser, &hurried, action).await;
        assert_eq!(again.status, 409);
        app.clock.advance(5_000);
        assert_eq!(error(&device.poll().await, 400), "authorization_pending");
    }
    let page = browser.type_address(&device.complete).await;
    let mut eve = account(&app, "eve").await;
    let eves = eve.type_address(&device.complete).await;
    app.clock.advance(2_000);
    // The time of another browser does not count.
    let shown = hidden_field(&page, "shown");
    let eves_shown = hidden_field(&eves, "shown");
    assert_ne!(shown, eves_shown);
    let html = page.text().replace(&shown, &eves_shown);
    let forged = Answer {
        status: page.status,
        headers: page.headers.clone(),
        body: html.into_bytes(),
    };
    let refused = device.press(&mut browser, &forged, "approve").await;
    assert_eq!(refused.status, 409);
    device
        .press(&mut browser, &page, "approve")
        .await
        .location();
    app.clock.advance(5_000);
    assert_eq!(device.poll().await.status, 200);
}

#[tokio::test]
async fn an_address_that_says_what_was_decided_is_believed_of_this_decision_alone() {
    let app = TestApp::start().await;
    let mut browser = account(&app, "ada").await;
    let device = Device::begin(&app).await;
    let done = device.decide(&mut browser, "approve").await.location();
    let said = browser.get(&done).await;
    assert!(said.text().contains("The device is signed in"));
    let auth = app.origin("auth");
    let denied = done.replace("approve", "deny");
    let mut eve = account(&app, "eve").await;
    for address in [format!("{auth}/device?done=approve"), denied] {
        let shown = browser.type_address(&address).await;
        assert_eq!(shown.status, 200);
        assert!(shown.text().contains("<h1>Sign in a device</h1>"));
    }
    let shown = eve.type_address(&done).await;
    assert!(shown.text().contains("<h1>Sign in a device</h1>"));
    app.clock.advance(10 * 60_000);
    let shown = browser.get(&done).await;
    assert!(shown.text().contains("<h1>Sign in a device</h1>"));
}
