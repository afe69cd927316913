//! A provider's button that is pressed immediately, after another page has led to the sign-in page.

use platform_server::web::seal::PRESS_MILLIS;
use reqwest::Method;

use super::game;
use crate::browser::{Browser, hidden_field};
use crate::support::{Answer, TestApp};

/// Opens the sign-in page like a browser that names the site which led there.
async fn open(app: &TestApp, browser: &mut Browser<'_>, site: Option<&str>) -> Answer {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("redirect", &game(app))
        .finish();
    let address = format!("{}/login?{query}", app.origin("auth"));
    let mut request = browser.request(Method::GET, &address);
    if let Some(site) = site {
        request = request.header("sec-fetch-site", site);
    }
    let page = browser.send(request).await;
    assert_eq!(page.status, 200, "{page:?}");
    page
}

fn says_when_it_was_shown(page: &Answer) -> bool {
    page.text().contains("name=\"shown\"")
}

/// Presses the button of the page, with every field of its form.
async fn press(app: &TestApp, browser: &mut Browser<'_>, page: &Answer) -> Answer {
    let mut fields = vec![
        ("csrf", hidden_field(page, "csrf")),
        ("redirect", game(app)),
    ];
    if says_when_it_was_shown(page) {
        fields.push(("shown", hidden_field(page, "shown")));
    }
    let fields: Vec<(&str, &str)> = fields
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let address = format!("{}/login/demo", app.origin("auth"));
    browser.post(&address, &fields).await
}

#[tokio::test]
async fn a_sign_in_that_another_page_led_to_is_said_before_it_goes_on() {
    let app = TestApp::start().await;
    for site in ["same-site", "cross-site"] {
        let mut browser = Browser::new(&app);
        let guest = browser.token().await.claims();
        let page = open(&app, &mut browser, Some(site)).await;
        app.clock.advance(PRESS_MILLIS - 1);
        let said = press(&app, &mut browser, &page).await;
        assert_eq!(said.status, 200, "{site}: {said:?}");
        assert_eq!(said.header("location"), None);
        assert_eq!(said.header("cache-control"), Some("no-store"));
        let refresh = said.header("refresh").unwrap().to_owned();
        let address = refresh.strip_prefix("3; url=").unwrap();
        let provider = format!("{}/demo-provider/authorize?", app.origin("auth"));
        assert!(address.starts_with(&provider), "{refresh}");
        for part in [
            "Signing in",
            "Demo",
            "perhaps by a click that was meant for another page",
            "Cancel, and go back",
            "level?n=1#start\">Cancel",
        ] {
            assert!(said.text().contains(part), "{part}: {}", said.text());
        }
        assert!(!said.text().contains("<form"), "nothing is to be pressed");

        // It is the same sign-in as without the delay.
        let page = browser.get(address).await;
        assert_eq!(page.status, 200, "{page:?}");
        let fields = [
            ("request", &*hidden_field(&page, "request")),
            ("name", site),
            ("action", "sign-in"),
        ];
        let authorize = format!("{}/demo-provider/authorize", app.origin("auth"));
        let answered = browser.post(&authorize, &fields).await;
        let done = browser.get(&answered.location()).await;
        assert_eq!(done.location(), game(&app));
        let account = browser.token().await.claims();
        assert_eq!((account.sub, account.is_anon), (guest.sub, false));
    }
}

#[tokio::test]
async fn a_button_that_was_there_for_two_seconds_leads_to_the_provider_at_once() {
    let app = TestApp::start().await;
    for site in ["same-site", "cross-site"] {
        let mut browser = Browser::new(&app);
        let page = open(&app, &mut browser, Some(site)).await;
        app.clock.advance(PRESS_MILLIS);
        let pressed = press(&app, &mut browser, &page).await;
        assert!(pressed.location().contains("/demo-provider/authorize?"));
        assert_eq!(pressed.header("refresh"), None);
    }
}

#[tokio::test]
async fn who_opened_the_sign_in_page_themselves_is_sent_on_at_once() {
    let app = TestApp::start().await;
    for site in [None, Some("none"), Some("same-origin")] {
        let mut browser = Browser::new(&app);
        let page = open(&app, &mut browser, site).await;
        assert!(!says_when_it_was_shown(&page), "{site:?}");
        let pressed = press(&app, &mut browser, &page).await;
        assert!(pressed.location().contains("/demo-provider/authorize?"));
    }
}
