//! A browser with the features that sign-ins need: it keeps cookies, sends forms, and does not
//! follow redirects on its own.

use std::collections::BTreeMap;

use platform_server::entropy::SystemEntropy;
use platform_server::web::csrf::BrowserSecret;
use platform_server::web::seal::Sealed;
use reqwest::header::HeaderName;
use reqwest::{Method, RequestBuilder};
use url::Url;

use crate::support::{Answer, NOW, TestApp, send};

/// One person's browser.
pub(crate) struct Browser<'app> {
    app: &'app TestApp,
    cookies: BTreeMap<String, String>,
    form_token: String,
    shown: String,
}

impl<'app> Browser<'app> {
    /// Creates one that has opened the sign-in page, and so has its cookie.
    pub(crate) fn new(app: &'app TestApp) -> Self {
        let secret = BrowserSecret::generate(&SystemEntropy);
        let cookie = secret.set_cookie(false);
        let mut browser = Self {
            app,
            cookies: BTreeMap::new(),
            form_token: secret.form_token(),
            shown: secret.seal(Sealed::Form, NOW),
        };
        browser.keep(cookie.to_str().unwrap());
        browser
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    pub(crate) fn set_cookie(&mut self, name: &str, value: &str) {
        self.cookies.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn lose_cookie(&mut self, name: &str) {
        self.cookies.remove(name);
    }

    pub(crate) fn form_token(&self) -> &str {
        &self.form_token
    }

    /// Returns the seal of a form that was shown when the test began.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    fn keep(&mut self, set_cookie: &str) {
        let mut parts = set_cookie.split(';').map(str::trim);
        let (name, value) = parts.next().unwrap().split_once('=').unwrap();
        if parts.any(|part| part == "Max-Age=0") {
            self.cookies.remove(name);
        } else {
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }

    fn with_cookies(&self, request: RequestBuilder) -> RequestBuilder {
        if self.cookies.is_empty() {
            return request;
        }
        let pairs: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        request.header("cookie", pairs.join("; "))
    }

    /// Builds a request to an absolute address of this platform.
    pub(crate) fn request(&self, method: Method, address: &str) -> RequestBuilder {
        let url = Url::parse(address).unwrap();
        let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        self.with_cookies(self.app.request_host(method, &host, path))
    }

    pub(crate) async fn send(&mut self, request: RequestBuilder) -> Answer {
        let answer = send(request).await;
        for value in answer
            .headers
            .get_all(HeaderName::from_static("set-cookie"))
        {
            let value = value.to_str().unwrap().to_owned();
            self.keep(&value);
        }
        answer
    }

    pub(crate) async fn get(&mut self, address: &str) -> Answer {
        let request = self.request(Method::GET, address);
        self.send(request).await
    }

    /// Opens an address as if the person typed it, or followed a link from another program.
    pub(crate) async fn type_address(&mut self, address: &str) -> Answer {
        let request = self.request(Method::GET, address);
        self.send(request.header("sec-fetch-site", "none")).await
    }

    pub(crate) async fn post(&mut self, address: &str, fields: &[(&str, &str)]) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let request = self
            .request(Method::POST, address)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        self.send(request).await
    }

    /// Requests a token as the production demo game does.
    pub(crate) async fn token(&mut self) -> Answer {
        let request = self.with_cookies(self.app.post_token());
        self.send(request).await
    }

    /// Presses the button of a provider, with the return address `redirect`.
    pub(crate) async fn choose(&mut self, provider: &str, redirect: &str) -> Answer {
        let address = format!("{}/login/{provider}", self.app.origin("auth"));
        let token = self.form_token.clone();
        let fields = [("csrf", token.as_str()), ("redirect", redirect)];
        self.post(&address, &fields).await
    }

    /// Opens the demo provider, and submits its form with these fields. The response redirects the
    /// browser to the callback.
    pub(crate) async fn at_demo_provider(
        &mut self,
        redirect: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        let chosen = self.choose("demo", redirect).await;
        let page = self.get(&chosen.location()).await;
        assert_eq!(page.status, 200, "{page:?}");
        let request = hidden_field(&page, "request");
        let address = format!("{}/demo-provider/authorize", self.app.origin("auth"));
        let mut all = vec![("request", request.as_str())];
        all.extend_from_slice(fields);
        self.post(&address, &all).await
    }

    /// Signs in with the demo provider under `name`, and returns the last redirect.
    pub(crate) async fn sign_in(&mut self, name: &str, redirect: &str) -> Answer {
        let fields = [("name", name), ("action", "sign-in")];
        let answered = self.at_demo_provider(redirect, &fields).await;
        self.get(&answered.location()).await
    }
}

/// Returns the value of a hidden field.
pub(crate) fn hidden_field(page: &Answer, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.text().split_once(&start).unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

impl Answer {
    /// Returns the target of a 303.
    pub(crate) fn location(&self) -> String {
        assert_eq!(self.status, 303, "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"));
        self.header("location").unwrap().to_owned()
    }

    /// Returns the query of a 303's target.
    pub(crate) fn location_query(&self) -> BTreeMap<String, String> {
        Url::parse(&self.location())
            .unwrap()
            .query_pairs()
            .into_owned()
            .collect()
    }

    /// Returns the problem and the provider that are passed to the sign-in page by this redirect.
    pub(crate) fn setback(&self) -> (String, Option<String>) {
        let location = self.location();
        assert!(location.contains("/login?"), "{location}");
        assert_eq!(self.cookie(), None, "nobody is signed in");
        let mut query = self.location_query();
        (query.remove("problem").unwrap(), query.remove("redirect"))
    }
}
