//! Games on a site of their own: how their visitors become players, and who cannot become one.

use std::collections::BTreeMap;

use platform_server::domain::audit::Actor;
use platform_server::domain::clock::Clock as _;
use platform_server::domain::game_session::HAND_OFF_MILLIS;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use crate::support::{Answer, TestApp, send};

/// A platform whose games are on a site of their own.
async fn apart() -> TestApp {
    let port = free_port();
    TestApp::with(|config| {
        config.listen = format!("127.0.0.1:{port}").parse().unwrap();
        config.games_origin = Some(format!("http://games.localhost:{port}").parse().unwrap());
    })
    .await
}

/// Returns a port that nobody listens on: the games' origin contains it before the server starts.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn games(app: &TestApp, label: &str) -> String {
    app.running.state.platform.games_origin.sub_domain(label)
}

/// A browser, as far as redirects, cookies and Fetch Metadata go.
struct Browser<'app> {
    app: &'app TestApp,
    /// The cookies, by host.
    jar: BTreeMap<String, BTreeMap<String, String>>,
    keeps_cookies: bool,
}

/// Where a navigation ended, and what led there.
struct Visit {
    /// Every address, the first one as well.
    addresses: Vec<String>,
    answers: Vec<Answer>,
}

impl Visit {
    fn page(&self) -> (&str, &Answer) {
        (self.addresses.last().unwrap(), self.answers.last().unwrap())
    }

    /// The code that the auth service put into an address.
    fn code_address(&self) -> &str {
        let mut addresses = self.addresses.iter();
        addresses.find(|address| address.contains("code=")).unwrap()
    }
}

impl<'app> Browser<'app> {
    fn new(app: &'app TestApp) -> Self {
        Self {
            app,
            jar: BTreeMap::new(),
            keeps_cookies: true,
        }
    }

    fn host(address: &str) -> String {
        let url = Url::parse(address).unwrap();
        format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
    }

    fn cookies(&self, address: &str) -> String {
        let jar = self.jar.get(&Self::host(address));
        let pairs = jar.into_iter().flatten();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("; ")
    }

    fn has(&self, address: &str, name: &str) -> bool {
        let jar = self.jar.get(&Self::host(address));
        jar.is_some_and(|jar| jar.keys().any(|known| known.starts_with(name)))
    }

    fn keep(&mut self, address: &str, answer: &Answer) {
        if !self.keeps_cookies {
            return;
        }
        let jar = self.jar.entry(Self::host(address)).or_default();
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (pair, attributes) = line.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                jar.remove(name);
            } else {
                jar.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    async fn request(
        &mut self,
        method: Method,
        address: &str,
        headers: &[(&'static str, &str)],
    ) -> Answer {
        let url = Url::parse(address).unwrap();
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let host = Self::host(address);
        let mut request = self.app.request_host(method, &host, &path);
        let cookies = self.cookies(address);
        if !cookies.is_empty() {
            request = request.header("cookie", cookies);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = send(request).await;
        self.keep(address, &answer);
        answer
    }

    /// Opens an address in a tab, and follows redirects.
    async fn open(&mut self, address: &str) -> Visit {
        let mut visit = Visit {
            addresses: vec![address.to_owned()],
            answers: Vec::new(),
        };
        for _ in 0..9 {
            let address = visit.addresses.last().unwrap().clone();
            let answer = self.request(Method::GET, &address, NAVIGATION).await;
            let location = answer.header("location").map(str::to_owned);
            let is_redirect = answer.status.is_redirection();
            visit.answers.push(answer);
            match location.filter(|_| is_redirect) {
                Some(location) => {
                    let base = Url::parse(&address).unwrap();
                    visit.addresses.push(base.join(&location).unwrap().into());
                }
                None => return visit,
            }
        }
        panic!("a loop of redirects: {:?}", visit.addresses);
    }

    /// What the runtime of a game asks for.
    async fn token(&mut self, game: &str) -> Answer {
        self.post(game, "/__platform/token").await
    }

    async fn post(&mut self, game: &str, path: &str) -> Answer {
        let headers = [("origin", game), ("sec-fetch-site", "same-origin")];
        let address = format!("{game}{path}");
        self.request(Method::POST, &address, &headers).await
    }

    /// Returns the player of a game.
    async fn player(&mut self, game: &str) -> String {
        self.token(game).await.claims().sub
    }
}

/// What a browser sends when it opens an address in a tab.
const NAVIGATION: &[(&str, &str)] = &[
    ("accept", "text/html,*/*;q=0.8"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-site", "none"),
];

#[tokio::test]
async fn a_first_visit_goes_once_over_the_auth_service_and_every_game_has_the_same_player() {
    let app = apart().await;
    let (one, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    let visit = browser.open(&format!("{one}/?level=2&x=%2F")).await;
    let (address, page) = visit.page();
    assert_eq!(address, format!("{one}/?level=2&x=%2F"));
    assert_eq!(page.status, StatusCode::OK);
    let statuses: Vec<u16> = visit
        .answers
        .iter()
        .map(|one| one.status.as_u16())
        .collect();
    assert_eq!(statuses, [302, 303, 303, 200]);
    for redirect in visit.answers.iter().take(3) {
        assert_eq!(redirect.header("cache-control"), Some("no-store"));
        assert_eq!(redirect.header("referrer-policy"), Some("no-referrer"));
    }
    let auth = app.origin("auth");
    assert!(visit.addresses[1].starts_with(&format!("{auth}/continue?to=")));
    assert!(visit.addresses[2].starts_with(&format!("{one}/__platform/continue?code=")));
    assert!(browser.has(&one, "platform-game"));
    assert!(!browser.has(&one, "platform-continue"), "the nonce is gone");
    assert!(browser.has(&auth, "platform-session"));

    // Nobody has played yet.
    assert_eq!(app.count_players(), 0);
    let token = browser.token(&one).await.claims();
    assert_eq!((token.aud.as_str(), token.is_anon), ("game:demo", true));
    assert_eq!(app.count_players(), 1);

    let again = browser.open(&format!("{one}/")).await;
    assert_eq!(again.answers.len(), 1, "no redirect");
    assert_eq!(browser.player(&one).await, token.sub);
    browser.open(&format!("{other}/")).await;
    let elsewhere = browser.token(&other).await.claims();
    assert_eq!(
        (elsewhere.sub, elsewhere.aud.as_str()),
        (token.sub, "game:dev-demo")
    );
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn the_console_and_games_that_are_asked_at_once_make_one_guest() {
    let app = apart().await;
    let (one, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{one}/")).await;
    browser.open(&format!("{other}/")).await;
    let console = app.running.state.platform.origin.to_string();
    let address = format!("{}/token", app.origin("auth"));
    let headers = [("origin", console.as_str())];
    let first = browser.request(Method::POST, &address, &headers).await;
    let sub = first.claims().sub;
    assert_eq!(browser.player(&one).await, sub);
    assert_eq!(browser.player(&other).await, sub);
    let again = browser.request(Method::POST, &address, &headers).await;
    assert_eq!(again.claims().sub, sub);
    assert_eq!(app.count_players(), 1);
}

#[tokio::test]
async fn what_is_no_navigation_of_a_tab_gets_the_page_at_once() {
    let app = apart().await;
    let address = format!("{}/", games(&app, "demo"));
    let (mode, dest) = (
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    );
    for (method, headers) in [
        (Method::GET, &[][..]),
        (Method::GET, &[("accept", "text/html")]),
        (Method::GET, &[mode]),
        (Method::GET, &[mode, ("sec-fetch-dest", "iframe")]),
        (
            Method::GET,
            &[("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")],
        ),
        (Method::GET, &[mode, dest, ("sec-purpose", "prefetch")]),
        (Method::HEAD, &[mode, dest]),
    ] {
        let mut browser = Browser::new(&app);
        let answer = browser.request(method.clone(), &address, headers).await;
        assert_eq!(answer.status, StatusCode::OK, "{method} {headers:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let mut browser = Browser::new(&app);
    let answer = browser.request(Method::POST, &address, &[mode, dest]).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    // A file that is no page.
    let file = format!("{address}picture.png");
    let answer = browser.request(Method::GET, &file, NAVIGATION).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn without_cookies_the_page_is_shown_once_and_plays_with_a_guest() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    browser.keeps_cookies = false;
    let visit = browser.open(&format!("{game}/?a=1")).await;
    let (address, page) = visit.page();
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(address, format!("{game}/?a=1&platform-continued=1"));
    assert_eq!(visit.answers.len(), 4);
    assert!(browser.token(&game).await.claims().is_anon);
}

#[tokio::test]
async fn a_game_without_a_session_has_a_guest_of_its_own_who_stays() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    let sub = browser.player(&game).await;
    assert_eq!(browser.player(&game).await, sub);
    // Nobody knows a player of this browser, so it stays who it is here.
    let visit = browser.open(&format!("{game}/")).await;
    assert_eq!(visit.page().0, format!("{game}/"));
    assert_eq!(browser.player(&game).await, sub);
    assert_eq!(
        browser.open(&format!("{game}/")).await.answers.len(),
        1,
        "for an hour"
    );
    // The same cookie at another game is another guest.
    let value = browser.jar[&Browser::host(&game)]["platform-game"].clone();
    let jar = browser.jar.entry(Browser::host(&other)).or_default();
    jar.insert("platform-game".to_owned(), value);
    assert_ne!(browser.player(&other).await, sub);
}

#[tokio::test]
async fn only_the_games_own_page_asks_for_its_token() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let address = format!("{game}/__platform/token");
    let mut browser = Browser::new(&app);
    let origin = ("origin", game.as_str());
    for headers in [
        &[("origin", other.as_str())][..],
        &[("origin", "null")],
        &[origin, ("sec-fetch-site", "same-site")],
        &[origin, ("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "none")],
    ] {
        let answer = browser.request(Method::POST, &address, headers).await;
        assert_eq!(answer.problem(), "unknown-origin", "{headers:?}");
    }
    assert_eq!(app.count_players(), 0);
    let bare = browser.request(Method::POST, &address, &[]).await;
    assert_eq!(bare.status, StatusCode::OK);
    // The auth service's cookie never comes from such a page, so it gives it nothing.
    let auth = format!("{}/token", app.origin("auth"));
    let answer = browser.request(Method::POST, &auth, &[origin]).await;
    assert_eq!(answer.problem(), "unknown-origin");
}

#[tokio::test]
async fn a_game_that_shares_the_platforms_site_has_no_session_of_its_own() {
    let app = TestApp::start().await;
    let game = app.origin("demo");
    let mut browser = Browser::new(&app);
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 1);
    for path in ["/__platform/token", "/__platform/sign-out"] {
        assert_eq!(browser.post(&game, path).await.problem(), "not-found");
    }
    let path = "/__platform/continue?to=/";
    let answer = browser.open(&format!("{game}{path}")).await;
    assert_eq!(answer.page().1.status, StatusCode::NOT_FOUND);
}

/// Begins a hand-off, and stops before the code is redeemed. Returns the address with the code.
async fn stopped(browser: &mut Browser<'_>, game: &str) -> String {
    let address = format!("{game}/");
    let away = browser.request(Method::GET, &address, NAVIGATION).await;
    let away = away.header("location").unwrap().to_owned();
    let back = browser.request(Method::GET, &away, NAVIGATION).await;
    back.header("location").unwrap().to_owned()
}

#[tokio::test]
async fn a_code_is_worth_nothing_elsewhere_later_or_again() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut owner = Browser::new(&app);
    let mut thief = Browser::new(&app);

    // Another browser, even one that has a hand-off of its own under way.
    let code = stopped(&mut owner, &game).await;
    stopped(&mut thief, &game).await;
    thief.open(&code).await;
    assert!(!thief.has(&game, "platform-game"));
    assert!(
        !thief.has(&game, "platform-tried"),
        "anybody may lead a browser there"
    );

    // Another game.
    let elsewhere = code.replace(&game, &other);
    owner.open(&elsewhere).await;
    assert!(!owner.has(&other, "platform-game"));

    // The owner, once.
    let visit = owner.open(&code).await;
    assert_eq!(visit.page().0, format!("{game}/"));
    let sub = owner.player(&game).await;
    let again = owner.open(&code).await;
    assert_eq!(
        again.page().0,
        format!("{game}/"),
        "going back changes nothing"
    );
    assert_eq!(owner.player(&game).await, sub);
    thief.open(&code).await;
    assert!(!thief.has(&game, "platform-game"));

    // After a minute.
    let mut late = Browser::new(&app);
    let code = stopped(&mut late, &game).await;
    app.clock.advance(HAND_OFF_MILLIS);
    let visit = late.open(&code).await;
    let (address, page) = visit.page();
    assert_eq!(
        (address, page.status),
        (&*format!("{game}/"), StatusCode::OK)
    );
    assert!(!late.has(&game, "platform-game") && late.has(&game, "platform-tried"));
    // The mark ends the attempts for an hour.
    assert_eq!(late.open(&format!("{game}/")).await.answers.len(), 1);
}

#[tokio::test]
async fn the_attackers_code_does_not_sign_the_victim_in() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut attacker = Browser::new(&app);
    let code = stopped(&mut attacker, &game).await;
    let mut victim = Browser::new(&app);
    victim.open(&code).await;
    attacker.open(&code).await;
    let theirs = attacker.player(&game).await;
    assert_ne!(victim.player(&game).await, theirs);
}

#[tokio::test]
async fn the_way_over_the_auth_service_leads_to_games_alone() {
    let app = apart().await;
    let game = games(&app, "demo");
    let auth = app.origin("auth");
    let mut browser = Browser::new(&app);
    let state = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.Lw";
    let console = app.running.state.platform.origin.to_string();
    for to in [
        "https://evil.example",
        "",
        "null",
        &format!("{game}/"),
        &format!("{game}.evil.example"),
        &game.replace("demo", "DEMO"),
        &games(&app, "nobody"),
        &console,
        &app.origin("demo"),
    ] {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("to", to)
            .append_pair("state", state)
            .finish();
        let visit = browser.open(&format!("{auth}/continue?{query}")).await;
        let (_, page) = visit.page();
        assert_eq!(
            (visit.answers.len(), page.status.as_u16()),
            (1, 400),
            "{to}"
        );
    }
    let query = |state: &str| {
        url::form_urlencoded::Serializer::new(String::new())
            .append_pair("to", &game)
            .append_pair("state", state)
            .finish()
    };
    for state in ["", "x", "x.Lw", &state.replace("Lw", "ZXZpbC5leGFtcGxl")] {
        let visit = browser
            .open(&format!("{auth}/continue?{}", query(state)))
            .await;
        assert_eq!(visit.page().1.status, StatusCode::BAD_REQUEST, "{state}");
    }
    // In a frame, or from a script, there is no way.
    let address = format!("{auth}/continue?{}", query(state));
    let headers = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
    let answer = browser.request(Method::GET, &address, &headers).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    // A path is the game's own.
    for to in ["//evil.example", "/\\evil.example", "https://evil.example/"] {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("to", to)
            .finish();
        let start = format!("{game}/__platform/continue?{query}");
        let visit = browser.open(&start).await;
        for address in &visit.addresses {
            let host = Url::parse(address).unwrap().host_str().unwrap().to_owned();
            assert!(host.ends_with(".localhost"), "{to}: {address}");
        }
    }
}

/// The text of a cookie header as the value of one cookie.
fn session(cookie: &str) -> String {
    cookie.split_once('=').unwrap().1.to_owned()
}

#[tokio::test]
async fn who_signs_in_keeps_the_guest_in_every_game_and_who_signs_out_leaves_all() {
    let app = apart().await;
    let (one, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let auth = app.origin("auth");
    let mut browser = Browser::new(&app);
    browser.open(&format!("{one}/")).await;
    browser.open(&format!("{other}/")).await;
    let guest = browser.player(&one).await;
    // The demo provider signs a person in.
    sign_in(&mut browser, &auth, &one, "Ann").await;
    let claims = browser.token(&one).await.claims();
    assert_eq!((claims.sub.clone(), claims.is_anon), (guest.clone(), false));
    let claims = browser.token(&other).await.claims();
    assert_eq!(
        (claims.sub, claims.is_anon),
        (guest.clone(), false),
        "it followed"
    );

    // A second browser becomes the same account, and leaves its guest.
    let mut second = Browser::new(&app);
    second.open(&format!("{one}/")).await;
    second.open(&format!("{other}/")).await;
    assert_ne!(second.player(&one).await, guest);
    second.player(&other).await;
    sign_in(&mut second, &auth, &one, "Ann").await;
    assert_eq!(second.player(&one).await, guest);
    assert_eq!(second.token(&other).await.problem(), "session-expired");
    assert_eq!(second.open(&format!("{other}/")).await.answers.len(), 4);
    assert_eq!(second.player(&other).await, guest);

    // Signing out in one game ends all, at once.
    let code: Value = browser.post(&one, "/__platform/sign-out").await.json();
    let code = code["code"].as_str().unwrap().to_owned();
    assert!(!browser.has(&one, "platform-game"));
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &format!("{one}/"))
        .append_pair("code", &code)
        .finish();
    let away = format!("{auth}/sign-out?{query}");
    // The code of another browser ends nothing at once.
    let shown = second.open(&away).await;
    assert!(shown.page().1.text().contains("Sign out of every game?"));
    let code: Value = browser.post(&other, "/__platform/sign-out").await.json();
    let query = query.replace(&session_code(&query), code["code"].as_str().unwrap());
    browser.open(&format!("{auth}/sign-out?{query}")).await;
    assert_ne!(browser.player(&one).await, guest);
    assert_ne!(browser.player(&other).await, guest);
    assert_eq!(second.player(&one).await, guest, "the other browser stays");
}

/// The code in a query.
fn session_code(query: &str) -> String {
    query.split_once("code=").unwrap().1.to_owned()
}

/// Signs in with the demo provider, and follows the way back to the game.
async fn sign_in(browser: &mut Browser<'_>, auth: &str, game: &str, name: &str) {
    let app = browser.app;
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &format!("{game}/?back=1"))
        .finish();
    let page = browser.open(&format!("{auth}/login?{query}")).await;
    let html = page.page().1.text().to_owned();
    app.clock.advance(2_000);
    let field = |html: &str, name: &str| {
        let (_, rest) = html
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap();
        rest.split('"').next().unwrap().replace("&amp;", "&")
    };
    let fields = [
        ("csrf", field(&html, "csrf")),
        ("redirect", field(&html, "redirect")),
    ];
    let away = post_form(browser, &format!("{auth}/login/demo"), &fields).await;
    let mut address = away.header("location").unwrap().to_owned();
    let asked = browser.open(&address).await;
    let html = asked.page().1.text().to_owned();
    let fields = [
        ("request", field(&html, "request")),
        ("name", name.to_owned()),
    ];
    address = asked.page().0.split('?').next().unwrap().to_owned();
    let back = post_form(browser, &address, &fields).await;
    let visit = browser.open(back.header("location").unwrap()).await;
    let (address, page) = visit.page();
    assert_eq!(
        (address, page.status),
        (&*format!("{game}/?back=1"), StatusCode::OK)
    );
}

async fn post_form(browser: &mut Browser<'_>, address: &str, fields: &[(&str, String)]) -> Answer {
    let answer = press(browser, address, fields).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
    answer
}

/// Sends a form of the auth service.
async fn press(browser: &mut Browser<'_>, address: &str, fields: &[(&str, String)]) -> Answer {
    let app = browser.app;
    let url = Url::parse(address).unwrap();
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let request = app
        .request_host(Method::POST, &Browser::host(address), url.path())
        .header("cookie", browser.cookies(address))
        .header("origin", url.origin().ascii_serialization())
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body);
    let answer = send(request).await;
    browser.keep(address, &answer);
    answer
}

#[tokio::test]
async fn a_link_that_stops_a_hand_off_does_so_once() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    let mut browser = Browser::new(&app);
    browser.open(&format!("{other}/")).await;
    let sub = browser.player(&other).await;
    // Somebody has put the mark into the address of a link.
    let visit = browser.open(&format!("{game}/?platform-continued=1")).await;
    assert_eq!(visit.answers.len(), 1);
    assert_ne!(browser.player(&game).await, sub);
    browser.open(&format!("{game}/")).await;
    assert_eq!(browser.player(&game).await, sub);
}

#[tokio::test]
async fn a_suspended_player_does_not_leave_the_suspension_by_signing_out() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    let sub = browser.player(&game).await.parse().unwrap();
    let now = app.clock.now();
    let store = &app.running.state.platform.store;
    let suspended = store.suspend_player(sub, None, Actor::Operator.into(), now);
    suspended.await.unwrap();
    assert_eq!(browser.token(&game).await.problem(), "account-suspended");
    browser.post(&game, "/__platform/sign-out").await;
    assert_eq!(browser.token(&game).await.problem(), "account-suspended");
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 1);
}

#[tokio::test]
async fn the_cookie_of_a_siblings_frame_says_nothing_in_a_tab() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    let framed = browser
        .post(&game, "/__platform/token?framed")
        .await
        .claims()
        .sub;
    let visit = browser.open(&format!("{game}/")).await;
    assert_eq!(visit.answers.len(), 4);
    assert_ne!(browser.player(&game).await, framed);
}

#[tokio::test]
async fn a_session_that_the_operator_ends_ends_in_every_game() {
    let app = apart().await;
    let game = games(&app, "demo");
    let auth = app.origin("auth");
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let cookie = app.sign_in("ann", None).await;
    let jar = browser.jar.entry(Browser::host(&auth)).or_default();
    jar.insert("platform-session".to_owned(), session(&cookie));
    browser
        .open(&format!("{game}/__platform/continue?to=%2F"))
        .await;
    let claims = browser.token(&game).await.claims();
    assert!(!claims.is_anon);
    let player = claims.sub.parse().unwrap();
    let state = &app.running.state;
    let now = app.clock.now();
    let ended = state
        .platform
        .store
        .end_other_sessions(player, None, Actor::Operator.into(), now);
    ended.await.unwrap();
    assert_eq!(browser.token(&game).await.problem(), "session-expired");
    // Its page is shown, and not sent away again and again.
    browser.open(&format!("{game}/")).await;
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 1);
    assert_eq!(browser.token(&game).await.problem(), "session-expired");
}

/// Opens the page that hands a player to a frame, and presses its button. Returns the page with the
/// code.
async fn pressed(tab: &mut Browser<'_>, page: &str) -> String {
    let address = page.split('?').next().unwrap().to_owned();
    let asked = tab.open(page).await;
    let (_, asked) = asked.page();
    assert_eq!(asked.header("cross-origin-opener-policy"), None);
    assert!(
        !asked.text().contains("code"),
        "nothing is handed over before a press"
    );
    let field = |name: &str| {
        let (_, rest) = asked
            .text()
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap();
        rest.split('"')
            .next()
            .unwrap()
            .replace("&amp;", "&")
            .replace("&#38;", "&")
    };
    let fields = [
        ("csrf", field("csrf")),
        ("shown", field("shown")),
        ("redirect", page.to_owned()),
    ];
    let hurried = press(tab, &address, &fields).await;
    assert_eq!(hurried.status, StatusCode::SEE_OTHER);
    tab.app.clock.advance(2_000);
    let shown = press(tab, &address, &fields).await;
    assert_eq!(shown.header("cross-origin-opener-policy"), None);
    shown.text().to_owned()
}

#[tokio::test]
async fn a_frame_of_another_site_has_a_player_of_its_own_and_gets_the_browsers_from_a_tab() {
    let app = apart().await;
    let game = games(&app, "demo");
    let auth = app.origin("auth");
    let mut frame = Browser::new(&app);
    let answer = frame.post(&game, "/__platform/token?framed").await;
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.contains("SameSite=None") && cookie.contains("Partitioned"),
        "{cookie}"
    );
    assert!(
        cookie.contains("Secure") && cookie.contains("HttpOnly"),
        "{cookie}"
    );
    let guest = answer.claims().sub;

    // The page that its login address names, in a tab of the same browser.
    let mut tab = Browser::new(&app);
    let secret = "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA";
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("to", &game)
        .append_pair("state", secret)
        .finish();
    let page = format!("{auth}/frame?{query}");
    let login = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &page)
        .finish();
    let login = tab.open(&format!("{auth}/login?{login}")).await;
    assert_eq!(login.page().1.status, StatusCode::OK);
    assert_eq!(login.page().1.header("cross-origin-opener-policy"), None);
    let html = pressed(&mut tab, &page).await;
    let attribute = |name: &str| {
        let (_, rest) = html.split_once(&format!("data-{name}=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    assert_eq!(attribute("to"), game, "nobody else hears the code");
    let redeem = |code: String, state: String| {
        let body = json!({ "code": code, "state": state }).to_string();
        app.request_host(Method::POST, &Browser::host(&game), "/__platform/continue")
            .header("origin", &game)
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/json")
            .body(body)
    };
    let wrong = "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCA";
    let refused = send(redeem(attribute("code"), wrong.to_owned())).await;
    assert_eq!(refused.problem(), "not-allowed");
    let taken = send(redeem(attribute("code"), attribute("state"))).await;
    assert_eq!(taken.status, StatusCode::NO_CONTENT);
    frame.keep(&game, &taken);
    let player = frame.post(&game, "/__platform/token?framed").await.claims();
    assert_ne!(player.sub, guest);
    tab.open(&format!("{game}/")).await;
    assert_eq!(tab.player(&game).await, player.sub);
    // Other return addresses of the auth service are no pages for it.
    let other = page.replace("/frame?", "/frame?x=1&");
    let login = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &other)
        .finish();
    let refused = tab.open(&format!("{auth}/login?{login}")).await;
    assert_eq!(refused.page().1.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn three_thousand_cookies_of_a_sibling_do_not_push_the_player_out() {
    let app = apart().await;
    let game = games(&app, "demo");
    let auth = app.origin("auth");
    let mut browser = Browser::new(&app);
    browser.open(&format!("{game}/")).await;
    let sub = browser.player(&game).await;
    // Cookies of games never reach the auth service: what is left to fill is the game's own host.
    assert_eq!(browser.jar[&Browser::host(&auth)].len(), 1);
    let jar = browser.jar.get_mut(&Browser::host(&game)).unwrap();
    jar.clear();
    let visit = browser.open(&format!("{game}/")).await;
    assert_eq!(visit.answers.len(), 4, "the auth service knows the player");
    assert_eq!(browser.player(&game).await, sub);
}

#[tokio::test]
async fn a_code_of_the_address_is_in_no_page_of_the_game() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    let visit = browser.open(&format!("{game}/")).await;
    let code = visit.code_address().split_once("code=").unwrap().1;
    let code = code.split('&').next().unwrap();
    let (address, page) = visit.page();
    assert!(!address.contains(code) && !page.text().contains(code));
}
