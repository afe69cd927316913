//! Tabs that a new visitor opens at the same moment: they are one player.

use reqwest::Method;
use url::Url;

use super::browser::{Browser, NAVIGATION, apart, games};
use crate::support::{Answer, TestApp};

/// A tab that opens a game, and then asks for its token.
struct Tab {
    /// The address that it opens next; `None` once the page is there.
    next: Option<String>,
    game: String,
    sub: Option<String>,
    navigations: usize,
}

impl Tab {
    fn new(game: &str) -> Self {
        Self {
            next: Some(format!("{game}/?level=2")),
            game: game.to_owned(),
            sub: None,
            navigations: 0,
        }
    }

    /// Sends the next request with the cookies that the browser has now.
    async fn send(&self, browser: &Browser<'_>) -> Option<(String, Answer)> {
        let mut sending = browser.copy();
        match &self.next {
            Some(address) => {
                let answer = sending.request(Method::GET, address, NAVIGATION).await;
                Some((address.clone(), answer))
            }
            None if self.sub.is_none() => {
                let answer = sending.token(&self.game).await;
                Some((format!("{}/__platform/token", self.game), answer))
            }
            None => None,
        }
    }

    /// Gets the response, whose cookies the browser keeps.
    fn receive(&mut self, browser: &mut Browser<'_>, (address, answer): (String, Answer)) {
        browser.keep(&address, &answer);
        if self.next.is_none() {
            self.sub = Some(answer.claims().sub);
            return;
        }
        self.navigations += 1;
        assert!(self.navigations < 9, "a loop of redirects: {address}");
        let location = answer.header("location");
        self.next = location.map(|location| {
            let base = Url::parse(&address).unwrap();
            base.join(location).unwrap().into()
        });
        if self.next.is_none() {
            assert_eq!(address, format!("{}/?level=2", self.game));
        }
    }
}

/// Lets two tabs load. The turns repeat the four pairs of bits of `order`: each is the turn of one tab,
/// or of both, whose requests are sent before the responses come in either order.
async fn load<'app>(app: &'app TestApp, game: &str, order: usize) -> (Browser<'app>, [Tab; 2]) {
    let mut browser = Browser::new(app);
    let mut tabs = [Tab::new(game), Tab::new(game)];
    for turn in 0_usize.. {
        let turns: &[usize] = match (order >> (turn % 4 * 2)) & 3 {
            0 if tabs[0].sub.is_none() => &[0],
            1 if tabs[1].sub.is_none() => &[1],
            3 => &[1, 0],
            _ => &[0, 1],
        };
        let mut answers = Vec::new();
        for tab in turns {
            answers.push((*tab, tabs[*tab].send(&browser).await));
        }
        for (tab, answer) in answers {
            if let Some(answer) = answer {
                tabs[tab].receive(&mut browser, answer);
            }
        }
        if tabs.iter().all(|tab| tab.sub.is_some()) {
            break;
        }
    }
    (browser, tabs)
}

#[tokio::test]
async fn two_tabs_of_a_new_visitor_are_one_player_in_every_order_of_their_requests() {
    let app = apart().await;
    let (game, other) = (games(&app, "demo"), games(&app, "dev-demo"));
    for order in 0..256 {
        let (mut browser, tabs) = load(&app, &game, order).await;
        let subs = tabs.map(|tab| tab.sub.unwrap());
        assert_eq!(subs[0], subs[1], "order {order:04x}");
        assert_eq!(browser.player(&game).await, subs[0], "order {order:04x}");
        browser.open(&format!("{other}/")).await;
        let there = browser.player(&other).await;
        assert_eq!(there, subs[0], "order {order:04x}: in the other game");
        // The limit for one network is no part of this.
        app.clock.advance(60_000);
    }
}

#[tokio::test]
async fn a_visitor_who_left_a_page_on_its_way_goes_over_the_auth_service_twice_at_most() {
    let app = apart().await;
    let game = games(&app, "demo");
    let mut browser = Browser::new(&app);
    // Only the first redirect arrives.
    browser
        .request(Method::GET, &format!("{game}/"), NAVIGATION)
        .await;
    let visit = browser.open(&format!("{game}/")).await;
    assert_eq!(visit.page().0, format!("{game}/"));
    let over = visit.addresses.iter();
    let over = over.filter(|address| address.starts_with(&format!("{}/", app.origin("auth"))));
    assert_eq!(over.count(), 2);
    let sub = browser.player(&game).await;
    assert_eq!(browser.open(&format!("{game}/")).await.answers.len(), 1);
    assert_eq!(browser.player(&game).await, sub);
}
