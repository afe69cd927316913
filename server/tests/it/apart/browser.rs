//! A platform whose games are on a site of their own, and a browser as far as redirects, cookies and
//! Fetch Metadata go.

use std::collections::BTreeMap;

use platform_test_ports::ReservedPort;
use reqwest::{Method, StatusCode};
use url::Url;

use crate::support::{Answer, TestApp, send};

/// A platform whose games are on a site of their own.
pub(super) async fn apart() -> TestApp {
    // The games' origin contains the port before the server listens there. Afterwards, the server itself keeps it.
    let port = ReservedPort::take().unwrap();
    TestApp::with(|config| {
        config.listen = port.address();
        let games = format!("http://games.localhost:{}", port.number());
        config.games_origin = Some(games.parse().unwrap());
    })
    .await
}

pub(super) fn games(app: &TestApp, label: &str) -> String {
    app.running.state.platform.games_origin.sub_domain(label)
}

/// A browser, as far as redirects, cookies and Fetch Metadata go.
pub(super) struct Browser<'app> {
    app: &'app TestApp,
    /// The cookies, by host.
    pub(super) jar: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) keeps_cookies: bool,
}

/// Where a navigation ended, and what led there.
pub(super) struct Visit {
    /// Every address, the first one as well.
    pub(super) addresses: Vec<String>,
    pub(super) answers: Vec<Answer>,
}

impl Visit {
    pub(super) fn page(&self) -> (&str, &Answer) {
        (self.addresses.last().unwrap(), self.answers.last().unwrap())
    }

    /// The code that the auth service put into an address.
    pub(super) fn code_address(&self) -> &str {
        let mut addresses = self.addresses.iter();
        addresses.find(|address| address.contains("code=")).unwrap()
    }
}

impl<'app> Browser<'app> {
    pub(super) fn new(app: &'app TestApp) -> Self {
        Self {
            app,
            jar: BTreeMap::new(),
            keeps_cookies: true,
        }
    }

    /// Returns a browser with the same cookies.
    pub(super) fn copy(&self) -> Self {
        Self {
            app: self.app,
            jar: self.jar.clone(),
            keeps_cookies: self.keeps_cookies,
        }
    }

    pub(super) fn host(address: &str) -> String {
        let url = Url::parse(address).unwrap();
        format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
    }

    pub(super) fn cookies(&self, address: &str) -> String {
        let jar = self.jar.get(&Self::host(address));
        let pairs = jar.into_iter().flatten();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("; ")
    }

    pub(super) fn has(&self, address: &str, name: &str) -> bool {
        let jar = self.jar.get(&Self::host(address));
        jar.is_some_and(|jar| jar.keys().any(|known| known.starts_with(name)))
    }

    pub(super) fn keep(&mut self, address: &str, answer: &Answer) {
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

    pub(super) async fn request(
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
    pub(super) async fn open(&mut self, address: &str) -> Visit {
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
    pub(super) async fn token(&mut self, game: &str) -> Answer {
        self.post(game, "/__platform/token").await
    }

    pub(super) async fn post(&mut self, game: &str, path: &str) -> Answer {
        let headers = [("origin", game), ("sec-fetch-site", "same-origin")];
        let address = format!("{game}{path}");
        self.request(Method::POST, &address, &headers).await
    }

    /// Returns the player of a game.
    pub(super) async fn player(&mut self, game: &str) -> String {
        self.token(game).await.claims().sub
    }
}

/// What a browser sends when it opens an address in a tab.
pub(super) const NAVIGATION: &[(&str, &str)] = &[
    ("accept", "text/html,*/*;q=0.8"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-site", "none"),
];

/// Begins a hand-off, and stops before the code is redeemed. Returns the address with the code.
pub(super) async fn stopped(browser: &mut Browser<'_>, game: &str) -> String {
    let address = format!("{game}/");
    let away = browser.request(Method::GET, &address, NAVIGATION).await;
    let away = away.header("location").unwrap().to_owned();
    let back = browser.request(Method::GET, &away, NAVIGATION).await;
    back.header("location").unwrap().to_owned()
}

/// The text of a cookie header as the value of one cookie.
pub(super) fn session(cookie: &str) -> String {
    cookie.split_once('=').unwrap().1.to_owned()
}

/// The code in a query.
pub(super) fn session_code(query: &str) -> String {
    query.split_once("code=").unwrap().1.to_owned()
}

/// Signs in with the demo provider, and follows the way back to the game.
pub(super) async fn sign_in(browser: &mut Browser<'_>, auth: &str, game: &str, name: &str) {
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

pub(super) async fn post_form(
    browser: &mut Browser<'_>,
    address: &str,
    fields: &[(&str, String)],
) -> Answer {
    let answer = press(browser, address, fields).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
    answer
}

/// Sends a form of the auth service.
pub(super) async fn press(
    browser: &mut Browser<'_>,
    address: &str,
    fields: &[(&str, String)],
) -> Answer {
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

/// Opens the page that hands a player to a frame, and presses its button. Returns the page with the
/// code.
pub(super) async fn pressed(tab: &mut Browser<'_>, page: &str) -> String {
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
