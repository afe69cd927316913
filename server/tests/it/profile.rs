//! The profile page: the name, the identity, the sessions, and the protection of its forms.

use platform_server::domain::audit::Actor;
use platform_server::domain::session::SESSION_MILLIS;
use uuid::Uuid;

use crate::pages::assert_is_page;
use crate::support::{Answer, NOW, Opened, TestApp, send};

/// A visitor with a session who has opened the profile page.
pub(crate) struct Player {
    session: String,
    id: Uuid,
    pub(crate) name: String,
    opened: Opened,
}

impl Player {
    /// Creates a guest.
    pub(crate) async fn guest(app: &TestApp) -> Self {
        let first = send(app.post_token()).await;
        let claims = first.claims();
        Self::with(app, first.cookie().unwrap(), &claims.sub, claims.username).await
    }

    async fn account(app: &TestApp, subject: &str) -> Self {
        let guest = Self::guest(app).await;
        let session = app.sign_in(subject, Some(guest.id)).await;
        Self::with(app, &session, &guest.id.to_string(), guest.name).await
    }

    async fn with(app: &TestApp, session: &str, id: &str, name: String) -> Self {
        let opened = app.open("/profile", Some(session)).await;
        assert_eq!(opened.answer.status, 200);
        Self {
            session: session.to_owned(),
            id: id.parse().unwrap(),
            name,
            opened,
        }
    }

    async fn post(&self, app: &TestApp, fields: &[(&str, &str)]) -> Answer {
        app.clock.advance(2_000);
        self.press(app, fields).await
    }

    /// Submits the form immediately.
    async fn press(&self, app: &TestApp, fields: &[(&str, &str)]) -> Answer {
        let opened = &self.opened;
        let mut all = vec![("csrf", opened.token()), ("shown", opened.shown())];
        all.extend_from_slice(fields);
        send(app.post_form("/profile", &opened.cookies, &all)).await
    }

    /// Submits the form with another name.
    pub(crate) async fn rename(&self, app: &TestApp, name: &str) -> Answer {
        let redirect = format!("{}/level?n=1", app.origin("demo"));
        let fields = [
            ("redirect", redirect.as_str()),
            ("action", "rename"),
            ("username", name),
        ];
        self.press(app, &fields).await
    }

    /// Returns the name in the player's next token.
    pub(crate) async fn name_in_token(&self, app: &TestApp) -> String {
        let token = send(app.post_token().header("cookie", &self.session)).await;
        assert_eq!(token.claims().sub, self.id.to_string());
        token.claims().username
    }
}

#[tokio::test]
async fn a_new_name_is_in_the_next_token() {
    let app = TestApp::start().await;
    for player in [Player::guest(&app).await, Player::account(&app, "7").await] {
        let name = format!("\u{c4}da_{}", player.name.rsplit('-').next().unwrap());
        let saved = player.rename(&app, &format!(" {name}  ")).await;
        assert_eq!(saved.status, 303);
        let location = saved.header("location").unwrap();
        assert!(
            location.starts_with("/profile?redirect=http%3A%2F%2Fdemo.")
                && location.ends_with("%2Flevel%3Fn%3D1&saved=rename"),
            "{location}"
        );
        assert_eq!(player.name_in_token(&app).await, name);
        let page = app.open(location, Some(&player.session)).await.answer;
        let html = page.text();
        for part in [
            "role=\"status\"",
            &format!("You are <b class=\"who\"><bdi>{name}</bdi></b> now."),
            &format!("value=\"{name}\""),
            "Back to Firefly",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        // A player's own name in another spelling is available.
        let again = player.rename(&app, &name.to_uppercase()).await;
        assert_eq!(again.status, 303);
        assert_eq!(player.rename(&app, &name).await.status, 303);
    }
}

#[tokio::test]
async fn a_name_that_another_player_has_is_refused_in_every_spelling() {
    let app = TestApp::start().await;
    let first = Player::guest(&app).await;
    let other = Player::account(&app, "7").await;
    assert_eq!(first.rename(&app, "PayPal_100").await.status, 303);
    for taken in [
        "PayPal_100",
        "paypal_100",
        "PAYPAL_100",
        "PayPaI_l0O",
        "\u{ff50}aypal_100",
        "paypa1_100",
        "\u{440}\u{430}\u{443}\u{440}\u{430}\u{4cf}_100",
    ] {
        let refused = other.rename(&app, taken).await;
        assert_eq!(refused.status, 409, "{taken}");
        assert_form_has(&refused, taken, "Another player has this name");
    }
    assert_eq!(other.name_in_token(&app).await, other.name);
    assert_eq!(first.name_in_token(&app).await, "PayPal_100");
}

/// Asserts that the response contains the form again, with the input and the error.
fn assert_form_has(answer: &Answer, typed: &str, error: &str) {
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let html = answer.text();
    for part in [
        format!("value=\"{typed}\""),
        format!("id=\"username-error\" role=\"alert\">{error}"),
        "aria-describedby=\"username-error username-rules\"".to_owned(),
        "aria-invalid=\"true\"".to_owned(),
        "name=\"csrf\"".to_owned(),
    ] {
        assert!(html.contains(&part), "{part}: {html}");
    }
}

#[tokio::test]
async fn what_is_no_name_is_told_and_kept_in_the_field() {
    let app = TestApp::start().await;
    let player = Player::guest(&app).await;
    let long = "x".repeat(25);
    for (typed, error) in [
        ("ab", "This name is too short."),
        ("", "Please type a name."),
        (long.as_str(), "This name has 25 characters."),
        ("two words", "Names have no spaces."),
        ("p\u{430}ypal", "This name mixes letters"),
        ("Admin", "This name is reserved for the platform."),
        ("test-user-1", "This name is reserved for the platform."),
    ] {
        let refused = player.rename(&app, typed).await;
        assert_eq!(refused.status, 422, "{typed}");
        assert_form_has(&refused, typed, error);
    }
    let refused = player.rename(&app, "\"><script>alert(1)</script>").await;
    assert_eq!(refused.status, 422);
    assert!(!refused.text().contains("<script"), "{}", refused.text());
    assert_eq!(player.name_in_token(&app).await, player.name);
}

#[tokio::test]
async fn a_player_takes_ten_new_names_an_hour() {
    let app = TestApp::start().await;
    let player = Player::guest(&app).await;
    for number in 0..10 {
        let name = format!("name-{number}-x");
        assert_eq!(player.rename(&app, &name).await.status, 303);
    }
    let refused = player.rename(&app, "one-more").await;
    assert_eq!(refused.problem(), "too-many-requests");
    assert_eq!(refused.header("retry-after"), Some("360"));
    let other = Player::guest(&app).await;
    assert_eq!(other.rename(&app, "one-more").await.status, 303);
    app.clock.advance(360_000);
    assert_eq!(player.rename(&app, "another").await.status, 303);
}

#[tokio::test]
async fn a_name_of_24_letters_fits_in_whatever_script() {
    let app = TestApp::start().await;
    let player = Player::guest(&app).await;
    for letter in ["x", "\u{e9}", "\u{6f22}", "\u{20bb7}"] {
        let name = letter.repeat(24);
        assert_eq!(player.rename(&app, &name).await.status, 303, "{letter}");
        assert_eq!(player.name_in_token(&app).await, name);
        // The schema counts characters in the same way as the check.
        let store = &app.running.state.platform.store;
        for other in [letter.repeat(25), letter.repeat(2)] {
            let refused = store
                .rename_player(player.id, &other, Actor::Own.into(), NOW)
                .await;
            assert!(refused.is_err(), "{other}");
        }
    }
}

#[tokio::test]
async fn only_the_browser_that_has_the_page_can_send_its_form() {
    let app = TestApp::start().await;
    let player = Player::guest(&app).await;
    let other = Player::guest(&app).await;
    let fields = |token: &str| {
        [
            ("csrf", token.to_owned()),
            ("action", "rename".to_owned()),
            ("username", "mallory".to_owned()),
        ]
    };
    let post = |token: &str, cookies: &str| {
        let fields = fields(token);
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        app.post_form("/profile", cookies, &fields)
    };
    let (token, cookies) = (player.opened.token(), player.opened.cookies.as_str());
    let form_cookie = cookies.split("; ").nth(1).unwrap();
    let huge = format!("{}; platform-form={}", player.session, "x".repeat(8_192));

    for (what, request) in [
        ("without a token", post("", cookies)),
        ("a wrong token", post(&"A".repeat(43), cookies)),
        (
            "the cookie as the token",
            post(form_cookie.split_once('=').unwrap().1, cookies),
        ),
        (
            "another browser's token",
            post(other.opened.token(), cookies),
        ),
        ("without the cookie", post(token, &player.session)),
        ("a cookie of 8 kB", post(token, &huge)),
        (
            "another scheme's cookie",
            post(
                token,
                &cookies.replace("platform-form", "__Host-platform-form"),
            ),
        ),
        (
            "another game",
            post(token, cookies).header("origin", app.origin("demo")),
        ),
    ] {
        let refused = send(request).await;
        assert_eq!(refused.status, 403, "{what}");
        assert_eq!(refused.header("location"), None, "{what}");
    }
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "null"),
        ("origin", "https://evil.example"),
        ("origin", &app.origin("demo")),
        ("origin", &app.running.origin),
    ] {
        let mut request = post(token, cookies).build().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        let refused = app.execute(request).await;
        assert_eq!(refused.status, 403, "{name} {value}");
        assert_eq!(refused.problem(), "not-allowed");
    }
    let twice = send(post(token, &format!("{cookies}; {form_cookie}"))).await;
    assert_eq!(twice.problem(), "invalid-request");
    let fields_twice = [("csrf", token), ("csrf", token), ("action", "rename")];
    let twice = send(app.post_form("/profile", cookies, &fields_twice)).await;
    assert_eq!(twice.problem(), "invalid-request");

    assert_eq!(player.name_in_token(&app).await, player.name);
    assert_eq!(player.rename(&app, "mallory").await.status, 303);
}

#[tokio::test]
async fn what_is_no_form_is_refused() {
    let app = TestApp::start().await;
    let player = Player::guest(&app).await;
    for action in [&[][..], &[("action", "")], &[("action", "delete")]] {
        let refused = player.post(&app, action).await;
        assert_eq!(refused.problem(), "invalid-request", "{action:?}");
    }
    let large = "x".repeat(9_000);
    let refused = player.rename(&app, &large).await;
    assert_eq!(refused.problem(), "payload-too-large");
    let mut json = app
        .post_form("/profile", &player.opened.cookies, &[])
        .build()
        .unwrap();
    let kind = "application/json".parse().unwrap();
    json.headers_mut().insert("content-type", kind);
    let refused = app.execute(json).await;
    assert_eq!(refused.problem(), "unsupported-media-type");
}

#[tokio::test]
async fn signing_out_everywhere_else_ends_the_other_sessions_alone() {
    let app = TestApp::start().await;
    let here = Player::account(&app, "7").await;
    let bystander = Player::account(&app, "8").await;
    let html = here.opened.answer.text();
    assert!(html.contains("In this browser alone"), "{html}");
    assert!(!html.contains("Sign out everywhere else"), "{html}");
    let there = [app.sign_in("7", None).await, app.sign_in("7", None).await];
    let page = app.open("/profile", Some(&here.session)).await.answer;
    assert!(page.text().contains("<b>2 others</b>"), "{}", page.text());
    assert!(page.text().contains("Sign out everywhere else"));

    let done = here.post(&app, &[("action", "sign-out-others")]).await;
    assert_eq!(done.status, 303);
    let location = done.header("location").unwrap();
    assert!(location.ends_with("&saved=sign-out-others"), "{location}");
    let page = app.open(location, Some(&here.session)).await.answer;
    assert!(page.text().contains("You are signed out everywhere else."));
    assert!(page.text().contains("In this browser alone"));
    for session in &there {
        let ended = send(app.post_token().header("cookie", session)).await;
        assert_eq!(ended.problem(), "session-expired");
    }
    for player in [&here, &bystander] {
        assert_eq!(player.name_in_token(&app).await, player.name);
    }
}

#[tokio::test]
async fn signing_out_ends_this_session_alone_and_leads_to_the_sign_in_page() {
    let app = TestApp::start().await;
    let guest = Player::guest(&app).await;
    let html = guest.opened.answer.text();
    assert!(!html.contains("value=\"sign-out\""), "{html}");
    let here = Player::account(&app, "7").await;
    let html = here.opened.answer.text();
    assert!(html.contains("value=\"sign-out\""), "{html}");
    let there = app.sign_in("7", None).await;

    let game = format!("{}/level?n=1", app.origin("demo"));
    let wrong = [("action", "sign-out"), ("csrf", "wrong")];
    let cookies = &here.opened.cookies;
    let refused = send(app.post_form("/profile", cookies, &wrong)).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("set-cookie"), None);
    let fields = [("redirect", game.as_str()), ("action", "sign-out")];
    let done = here.post(&app, &fields).await;
    assert_eq!(done.status, 303);
    let location = done.header("location").unwrap();
    assert!(location.starts_with("/login?redirect=http%3A%2F%2Fdemo."));
    let cookie = done.header("set-cookie").unwrap();
    assert!(cookie.starts_with("platform-session=;"), "{cookie}");
    assert!(cookie.contains("; Max-Age=0"), "{cookie}");

    let page = app.open(location, None).await.answer;
    assert!(page.text().contains("Sign in with Demo"), "{}", page.text());
    let kept = send(app.post_token().header("cookie", &here.session)).await;
    assert_eq!(kept.problem(), "session-expired");
    let other = send(app.post_token().header("cookie", &there)).await;
    assert_eq!(other.claims().sub, here.id.to_string());
    assert_eq!(guest.name_in_token(&app).await, guest.name);
}

#[tokio::test]
async fn a_guest_is_asked_to_sign_in_and_an_account_sees_how_it_did() {
    let app = TestApp::start().await;
    let guest = Player::guest(&app).await;
    let html = guest.opened.answer.text();
    assert!(html.contains("Sign in to keep your progress"), "{html}");
    assert!(html.contains("href=\"/login?redirect=http%3A%2F%2Fplatform."));
    assert!(!html.contains("How you sign in"), "{html}");

    let account = Player::account(&app, "7").await;
    let html = account.opened.answer.text();
    assert!(!html.contains("Sign in to keep your progress"), "{html}");
    // A provider that is no longer in the settings is shown by its id.
    let since =
        "Signed in with <b>google</b> since <time datetime=\"2026-01-01\">1 January 2026</time>";
    assert!(html.contains(since), "{html}");
}

#[tokio::test]
async fn who_has_no_session_is_led_to_sign_in_with_the_way_back() {
    let app = TestApp::start().await;
    let guest = Player::guest(&app).await;
    let account = Player::account(&app, "7").await;
    let merged = Player::guest(&app).await;
    app.sign_in("7", Some(merged.id)).await;
    let game = format!("{}/level?n=1", app.origin("demo"));
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &game)
        .finish();
    let path = format!("/profile?{query}");
    let expected = format!("/login?{query}");
    let unknown = format!("platform-session={}", "A".repeat(43));
    for session in [None, Some(unknown.as_str()), Some(&merged.session)] {
        let answer = app.open(&path, session).await.answer;
        assert_eq!(answer.status, 303, "{session:?}");
        assert_eq!(answer.header("location"), Some(expected.as_str()));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    app.clock.advance(SESSION_MILLIS);
    for player in [&guest, &account] {
        let answer = app.open(&path, Some(&player.session)).await.answer;
        assert_eq!(answer.status, 303);
        let answer = player.rename(&app, "too_late").await;
        assert_eq!(answer.status, 303);
        let said = format!("{expected}&problem=not-saved");
        assert_eq!(answer.header("location"), Some(said.as_str()));
    }
    let said = format!("{expected}&problem=not-saved");
    let page = app.open(&said, None).await.answer;
    assert!(
        page.text()
            .contains("Nothing was saved: you are not signed in any more.")
    );
}

#[tokio::test]
async fn suspended_players_read_why_instead_of_their_profile() {
    let app = TestApp::start().await;
    let player = Player::account(&app, "7").await;
    app.sql("UPDATE players SET suspended_at = 1, suspension_reason = 'You were unkind.'");
    let request = app
        .get("auth", "/profile")
        .header("cookie", &player.session)
        .header("accept", "text/html");
    let refused = send(request).await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("You were unkind."));
    let refused = player.rename(&app, "somebody").await;
    assert_eq!(refused.problem(), "account-suspended");
    app.sql("UPDATE players SET suspended_at = NULL, suspension_reason = NULL");
    assert_eq!(player.name_in_token(&app).await, player.name);
}

#[tokio::test]
async fn a_form_that_is_too_old_says_why_nothing_was_saved_and_keeps_what_was_typed() {
    let app = TestApp::start().await;
    let player = Player::guest(&app).await;
    // The browser was closed and opened again: it has another cookie, or none.
    let other = Player::guest(&app).await;
    let others = other.opened.cookies.split("; ").nth(1).unwrap();
    let form_cookie = format!("{}; {others}", player.session);
    for cookies in [player.session.as_str(), &form_cookie] {
        let fields = [
            ("csrf", player.opened.token()),
            ("shown", player.opened.shown()),
            ("action", "rename"),
            ("username", "Ada_Lovelace"),
        ];
        let stale = send(app.post_form("/profile", cookies, &fields)).await;
        assert_eq!(stale.status, 403);
        assert_is_page(&stale, "profile");
        let html = stale.text();
        for part in [
            "role=\"alert\">Nothing was saved: your browser no longer has its cookie",
            "value=\"Ada_Lovelace\"",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(player.name_in_token(&app).await, player.name);
        // The name can be saved from the page that reports the error.
        let set = stale
            .cookie()
            .map(|cookie| format!("{}; {cookie}", player.session));
        let cookies = set.unwrap_or_else(|| cookies.to_owned());
        let opened = Opened {
            answer: stale,
            cookies,
        };
        let fields = [
            ("csrf", opened.token()),
            ("account", opened.hidden("account")),
            ("action", "rename"),
            ("username", "ab"),
        ];
        let sent = send(app.post_form("/profile", &opened.cookies, &fields)).await;
        assert_eq!(sent.status, 422, "the form counts, the name does not");
    }
    // If a request does not show that our own page sent it, the response reveals nothing.
    let bare = app.post_form("/profile", &player.session, &[("username", "x")]);
    let mut bare = bare.build().unwrap();
    bare.headers_mut().remove("origin");
    bare.headers_mut().remove("sec-fetch-site");
    assert_eq!(app.execute(bare).await.problem(), "not-allowed");
}

#[tokio::test]
async fn a_form_that_was_shown_to_another_player_saves_nothing() {
    let app = TestApp::start().await;
    let first = Player::account(&app, "7").await;
    let second = Player::account(&app, "8").await;
    let form_cookie = first.opened.cookies.split("; ").nth(1).unwrap();
    let cookies = format!("{}; {form_cookie}", second.session);
    let fields = [
        ("csrf", first.opened.token()),
        ("account", first.opened.hidden("account")),
        ("action", "rename"),
        ("username", "Ada_Lovelace"),
    ];
    let refused = send(app.post_form("/profile", &cookies, &fields)).await;
    assert_eq!(refused.status, 409);
    let html = refused.text();
    for part in [
        "Nothing was saved: another player now plays",
        "value=\"Ada_Lovelace\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    for player in [&first, &second] {
        assert_eq!(player.name_in_token(&app).await, player.name);
    }
}

#[tokio::test]
async fn a_press_within_two_seconds_of_the_page_ends_nothing() {
    let app = TestApp::start().await;
    let here = Player::account(&app, "7").await;
    let there = app.sign_in("7", None).await;
    app.clock.advance(1_999);
    for action in ["sign-out", "sign-out-others", "end-device"] {
        let hurried = here.press(&app, &[("action", action)]).await;
        assert_eq!(hurried.status, 409, "{action}");
        assert_is_page(&hurried, "profile");
        assert!(hurried.text().contains("less than two seconds"), "{action}");
        assert_eq!(hurried.header("set-cookie"), None);
    }
    for session in [&here.session, &there] {
        let token = send(app.post_token().header("cookie", session)).await;
        assert_eq!(token.status, 200);
    }
    // A name has to be typed, which takes longer anyway.
    assert_eq!(here.rename(&app, "quick").await.status, 303);
}

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 \
                     (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1";

#[tokio::test]
async fn the_profile_lists_each_browser_and_ends_one_alone() {
    let app = TestApp::start().await;
    let mut here = Player::account(&app, "7").await;
    let (phone, unknown) = (app.sign_in("7", None).await, app.sign_in("7", None).await);
    let token = async |session: &str, agent: &str| {
        let request = app.post_token().header("cookie", session);
        send(request.header("user-agent", agent)).await
    };
    assert_eq!(token(&phone, PHONE).await.status, 200);
    assert_eq!(token(&here.session, FIREFOX).await.status, 200);
    // The name of a session changes only when the session is renewed.
    assert_eq!(token(&phone, FIREFOX).await.status, 200);
    here.opened = app.open("/profile", Some(&here.opened.cookies)).await;
    let html = here.opened.answer.text();
    for part in [
        "<b>Firefox on Linux</b> \u{b7} this browser<",
        "<b>Safari on iPhone</b><span",
        "<b>A browser</b><span",
        "last used <time datetime=\"2026-01-01\">1 January 2026</time>",
        "<b>2 others</b>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert_eq!(html.matches("this browser<").count(), 1);
    assert_eq!(html.matches("value=\"end-session\"").count(), 2);
    let (before, _) = html.split_once("the session in Safari on iPhone").unwrap();
    let (_, id) = before.rsplit_once("name=\"session\" value=\"").unwrap();
    let id = id.split('"').next().unwrap();

    // Players cannot end the sessions of others.
    let eve = Player::account(&app, "8").await;
    let fields = [("action", "end-session"), ("session", id)];
    assert_eq!(eve.post(&app, &fields).await.status, 303);
    assert_eq!(token(&phone, PHONE).await.status, 200);
    let ended = here.post(&app, &fields).await;
    assert_eq!(ended.status, 303);
    let location = ended.header("location").unwrap().to_owned();
    assert!(location.ends_with("&saved=end-session"), "{location}");
    assert_eq!(token(&phone, PHONE).await.problem(), "session-expired");
    for session in [&here.session, &unknown] {
        assert_eq!(token(session, FIREFOX).await.status, 200);
    }
    let page = app.open(&location, Some(&here.session)).await.answer;
    let html = page.text();
    assert!(
        html.contains("You are signed out of that browser."),
        "{html}"
    );
    assert!(!html.contains("Safari on iPhone"), "{html}");
    // Ending it again has no effect, and neither has ending a session without a name.
    assert_eq!(here.post(&app, &fields).await.status, 303);
    let odd = here.post(&app, &[("action", "end-session")]).await;
    assert_eq!(odd.problem(), "invalid-request");
}
