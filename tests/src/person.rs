//! A person without a browser: a jar with the cookies of the auth service, and the single steps of
//! signing in.

use std::collections::BTreeMap;

use platform_protocol::claims::GameTokenClaims;
use platform_protocol::paths;
use platform_protocol::problem::Problem;
use platform_protocol::token::TokenAnswer;
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, ORIGIN,
    SET_COOKIE,
};
use reqwest::{Client, Method, StatusCode, Url};

use crate::forms::{self, Form};
use crate::platform::Site;
use crate::visitor;

/// The game from which people come and to which they return.
pub const GAME: &str = "demo";

/// A person with a cookie jar.
#[derive(Clone, Debug)]
pub struct Person {
    client: Client,
    site: Site,
    /// The cookies of the auth service, by name.
    pub jar: BTreeMap<String, String>,
    /// Headers that every request carries, such as those of a proxy.
    pub headers: HeaderMap,
}

/// A response that arrived completely.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: String,
}

impl Answer {
    /// Returns the header `name`, or an empty string.
    #[must_use]
    pub fn header(&self, name: impl reqwest::header::AsHeaderName) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Returns the target of its redirect.
    ///
    /// # Panics
    /// Panics if it is not a 303 to a URL or path.
    #[must_use]
    pub fn see_other(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.body);
        self.header(LOCATION)
    }

    /// Returns the slug of its problem.
    ///
    /// # Panics
    /// Panics if it has no problem body.
    #[must_use]
    pub fn slug(&self) -> String {
        let type_uri = self.problem().type_uri;
        type_uri.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// Returns its problem.
    ///
    /// # Panics
    /// Panics if it has no problem body.
    #[must_use]
    pub fn problem(&self) -> Problem {
        assert_eq!(
            self.header(CONTENT_TYPE),
            "application/problem+json",
            "{self:?}"
        );
        serde_json::from_str(&self.body).expect("a problem body")
    }

    /// Returns the problem that is named in the redirect to the sign-in page.
    ///
    /// # Panics
    /// Panics if it redirects elsewhere.
    #[must_use]
    pub fn login_problem(&self) -> String {
        let address = self.see_other();
        let base = Url::parse("http://relative.invalid").expect("a URL");
        let url = base.join(address).expect("an address");
        assert_eq!(url.path(), paths::LOGIN, "{address}");
        let mut members = url.query_pairs();
        let problem = members.find(|(name, _)| name == "problem");
        problem
            .unwrap_or_else(|| panic!("no problem in {address}"))
            .1
            .into_owned()
    }
}

impl Person {
    /// Creates a person who visits `site` for the first time.
    #[must_use]
    pub fn new(site: &Site) -> Self {
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(crate::poll::BOUND)
            .build()
            .expect("a client can be made");
        let mut person = Self {
            client,
            site: site.clone(),
            jar: BTreeMap::new(),
            headers: HeaderMap::new(),
        };
        if site.is_secure() {
            person.say("x-forwarded-proto", "https");
        }
        person
    }

    /// Creates a visitor who is a guest, and whose cookie has come back once.
    ///
    /// # Panics
    /// Panics if the guest is not the same after that.
    pub async fn guest(site: &Site) -> (Self, GameTokenClaims) {
        let mut person = Self::new(site);
        let first = person.play().await;
        assert!(first.is_anon, "a first visitor is a guest");
        let claims = person.play().await;
        assert_eq!(claims.sub, first.sub, "the cookie is that guest's");
        (person, claims)
    }

    /// Returns the same browser, whose requests go to another address of the same platform, such as
    /// another node.
    #[must_use]
    pub fn through(mut self, site: &Site) -> Self {
        self.site = site.clone();
        self
    }

    /// Sends `name: value` with every request from now on.
    pub fn say(&mut self, name: &'static str, value: &str) {
        let value = HeaderValue::from_str(value).expect("a header's value");
        self.headers.insert(HeaderName::from_static(name), value);
    }

    /// Sets this person's address, as a trusted proxy names it.
    #[must_use]
    pub fn from_address(mut self, address: &str) -> Self {
        self.say("x-forwarded-for", address);
        self
    }

    /// Returns the name of the session cookie on this site.
    #[must_use]
    pub fn session_name(&self) -> &'static str {
        if self.site.is_secure() {
            "__Host-platform-session"
        } else {
            "platform-session"
        }
    }

    /// Returns the name of the cookie that binds forms to this browser.
    #[must_use]
    pub fn form_name(&self) -> &'static str {
        if self.site.is_secure() {
            "__Host-platform-form"
        } else {
            "platform-form"
        }
    }

    /// Returns the session cookie's value.
    ///
    /// # Panics
    /// Panics if there is none.
    #[must_use]
    pub fn session(&self) -> String {
        let session = self.jar.get(self.session_name());
        session.expect("a session cookie").clone()
    }

    /// Sends a request to `path` of the auth service with the cookies of the jar, and stores the
    /// cookies that the response sets.
    ///
    /// # Panics
    /// Panics if no complete response arrives.
    pub async fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Option<String>,
    ) -> Answer {
        let url = format!("http://{}{path}", self.site.address);
        let mut request = self
            .client
            .request(method, url)
            .header(HOST, self.site.host("auth"))
            .headers(self.headers.clone());
        if !self.jar.is_empty() {
            let cookies = self
                .jar
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            request = request.header(COOKIE, cookies.collect::<Vec<_>>().join("; "));
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let answer = request.send().await;
        let answer = answer.unwrap_or_else(|error| panic!("{path} was not answered: {error:?}"));
        let (status, headers) = (answer.status(), answer.headers().clone());
        self.keep(&headers);
        let body = answer.text().await.expect("a whole answer");
        Answer {
            status,
            headers,
            body,
        }
    }

    fn keep(&mut self, headers: &HeaderMap) {
        for cookie in headers.get_all(SET_COOKIE) {
            let cookie = cookie.to_str().expect("a cookie of visible ASCII");
            let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
            let (name, value) = pair.split_once('=').expect("a cookie has a name");
            if attributes.to_ascii_lowercase().contains("max-age=0") {
                self.jar.remove(name);
            } else {
                self.jar.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// Opens `path` of the auth service as a browser opens a page.
    pub async fn open(&mut self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[(ACCEPT, "text/html")], None)
            .await
    }

    /// Opens an address of the auth service as if the person typed it, or followed a link from
    /// another program.
    pub async fn type_address(&mut self, address: &str) -> Answer {
        let none = (HeaderName::from_static("sec-fetch-site"), "none");
        let path = self.path_of(address);
        self.ask(Method::GET, &path, &[(ACCEPT, "text/html"), none], None)
            .await
    }

    /// Returns the path of an address of the auth service.
    fn path_of(&self, address: &str) -> String {
        let path = address.strip_prefix(&self.site.url("auth", ""));
        let path = path.unwrap_or_else(|| panic!("{address} leads away from the auth service"));
        path.to_owned()
    }

    /// Opens an address of the auth service as a browser follows a redirect from another site.
    ///
    /// # Panics
    /// Panics if it belongs to another site.
    pub async fn follow(&mut self, address: &str) -> Answer {
        let path = self.path_of(address);
        self.open(&path).await
    }

    /// Sends a form to `path` as the site's own page would.
    pub async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = self.site.url("auth", "");
        let site = HeaderName::from_static("sec-fetch-site");
        let headers = [(ORIGIN, origin.as_str()), (site, "same-origin")];
        self.submit_as(path, fields, &headers).await
    }

    /// Sends a form to `path` with headers that name the sender.
    pub async fn submit_as(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(HeaderName, &str)],
    ) -> Answer {
        let mut url = Url::parse("http://relative.invalid").expect("a URL");
        url.query_pairs_mut().extend_pairs(fields);
        let body = url.query().unwrap_or_default().to_owned();
        let form = (CONTENT_TYPE, "application/x-www-form-urlencoded");
        let headers = [&[form, (ACCEPT, "text/html")], headers].concat();
        self.ask(Method::POST, path, &headers, Some(body)).await
    }

    /// Requests a token of [`GAME`].
    pub async fn token(&mut self) -> Answer {
        self.token_for(GAME).await
    }

    /// Requests a token of the game `label`.
    pub async fn token_for(&mut self, label: &str) -> Answer {
        let origin = self.site.url(label, "");
        self.ask(Method::POST, paths::TOKEN, &[(ORIGIN, &origin)], None)
            .await
    }

    /// Returns the player of a new token.
    ///
    /// # Panics
    /// Panics if there is none.
    pub async fn play(&mut self) -> GameTokenClaims {
        let answer = self.token().await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let token: TokenAnswer = serde_json::from_str(&answer.body).expect("a token answer");
        visitor::claims(&token.access_token)
    }

    /// Signs out, as [`GAME`]'s page does.
    ///
    /// # Panics
    /// Panics if that is refused.
    pub async fn sign_out(&mut self) {
        let origin = self.site.url(GAME, "");
        let answer = self
            .ask(Method::POST, paths::SIGN_OUT, &[(ORIGIN, &origin)], None)
            .await;
        assert_eq!(answer.status, 204, "{}", answer.body);
    }

    /// Returns the sign-in page's form for `provider`, with the return address `redirect`.
    ///
    /// # Panics
    /// Panics if the page has no such form.
    pub async fn login_form(&mut self, provider: &str, redirect: &str) -> Form {
        let path = format!("{}?{}", paths::LOGIN, query(&[("redirect", redirect)]));
        let page = self.open(&path).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let action = format!("{}/{provider}", paths::LOGIN);
        let mut forms = forms::forms(&page.body).into_iter();
        let form = forms.find(|form| form.action == action);
        form.unwrap_or_else(|| panic!("no form for {provider} in {}", page.body))
    }

    /// Presses the button for `provider` and returns the provider's address.
    ///
    /// # Panics
    /// Panics if the browser is not sent there.
    pub async fn begin(&mut self, provider: &str, redirect: &str) -> String {
        let form = self.login_form(provider, redirect).await;
        let fields: Vec<(&str, &str)> = form
            .hidden
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let answer = self.submit(&form.action, &fields).await;
        answer.see_other().to_owned()
    }

    /// Signs in as `subject` at the provider's `address`, and returns the address to which the
    /// provider sends the browser.
    ///
    /// # Panics
    /// Panics if it sends it nowhere.
    pub async fn authorize(&self, address: &str, subject: &str) -> String {
        let mut url = Url::parse(address).expect("the provider's address");
        url.query_pairs_mut().append_pair("test_subject", subject);
        let answer = self.client.get(url).send().await;
        let answer = answer.expect("the provider answers");
        assert_eq!(answer.status(), 302, "the provider sends the browser back");
        let back = answer.headers().get(LOCATION).expect("a way back");
        back.to_str().expect("an address").to_owned()
    }

    /// Signs in up to the callback, which is not opened yet, and returns its address.
    pub async fn reach_callback(&mut self, provider: &str, subject: &str) -> String {
        let redirect = self.game();
        let address = self.begin(provider, &redirect).await;
        self.authorize(&address, subject).await
    }

    /// Signs in completely with `provider` as `subject`, and returns the last response.
    pub async fn sign_in(&mut self, provider: &str, subject: &str) -> Answer {
        let callback = self.reach_callback(provider, subject).await;
        self.follow(&callback).await
    }

    /// Signs in, returns to the game, and returns the current player.
    ///
    /// # Panics
    /// Panics if that does not lead back to the game.
    pub async fn become_account(&mut self, provider: &str, subject: &str) -> GameTokenClaims {
        let answer = self.sign_in(provider, subject).await;
        assert_eq!(answer.see_other(), self.game());
        let claims = self.play().await;
        assert!(!claims.is_anon, "an account is not anonymous");
        claims
    }

    /// Returns the page of [`GAME`] from which everybody comes.
    #[must_use]
    pub fn game(&self) -> String {
        self.site.url(GAME, "/level?n=1#start")
    }
}

/// Returns names and values as a query.
#[must_use]
pub fn query(fields: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://relative.invalid").expect("a URL");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}
