//! The source of a browser's events and the access to its cookies: an engine's WebDriver BiDi, or a
//! [`Proxy`] and the commands of classic WebDriver for WebKitGTK, whose driver (2.50) does not
//! support BiDi.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;
use thirtyfour::WebDriver;
use thirtyfour::bidi::BiDi;

use super::Engine;
use super::events::Events;
use super::proxy::Proxy;
use crate::poll;

/// A source before the browser has started.
#[derive(Debug)]
pub(super) enum Source {
    /// The driver reports events.
    Driver,
    /// The proxy reports events; the browser is started with it.
    Proxy(Proxy),
}

/// A source that is connected to a browser.
#[derive(Debug)]
pub(super) enum Connected {
    /// The driver reports events.
    Driver(BiDi),
    /// The proxy reports events.
    Proxy(Proxy),
}

impl Source {
    /// Returns the source for `engine`, which adds its events to `events`.
    pub(super) async fn prepare(engine: Engine, events: &Arc<Events>) -> Self {
        match engine {
            Engine::Chromium | Engine::Firefox => Self::Driver,
            Engine::WebKit => Self::Proxy(Proxy::listen(Arc::clone(events)).await),
        }
    }

    /// Returns the proxy that the browser must use.
    pub(super) const fn proxy(&self) -> Option<SocketAddr> {
        match self {
            Self::Driver => None,
            Self::Proxy(proxy) => Some(proxy.address()),
        }
    }

    /// Starts to collect events of `session`.
    pub(super) async fn connect(self, session: &WebDriver, events: &Arc<Events>) -> Connected {
        match self {
            Self::Driver => {
                let bidi = session
                    .bidi()
                    .await
                    .expect("the driver speaks WebDriver BiDi");
                Events::watch(events, &bidi).await;
                Connected::Driver(bidi)
            }
            Self::Proxy(proxy) => Connected::Proxy(proxy),
        }
    }
}

impl Connected {
    /// Waits until everything that pages logged has been collected.
    pub(super) async fn settle(&self, session: &WebDriver, events: &Events) {
        match self {
            Self::Driver(_) => {
                let marker = uuid::Uuid::from_u128(events.log().len() as u128);
                let marker = format!("settled {marker}");
                session
                    .execute("console.debug(arguments[0])", vec![json!(marker)])
                    .await
                    .expect("the page speaks");
                poll::until("the console arrives", async || {
                    let log = events.log();
                    log.iter().any(|entry| entry.text == marker).then_some(())
                })
                .await;
            }
            Self::Proxy(_) => {
                // It resolves when the proxy has received everything.
                let send = "window[Symbol.for('platform-tests')]?.()";
                session.execute(send, vec![]).await.expect("the page sends");
            }
        }
    }

    /// Returns the number of cookies of all hosts. The page stays as it is.
    pub(super) async fn cookies(&self, session: &WebDriver) -> usize {
        match self {
            Self::Driver(bidi) => {
                let kept = bidi.storage().get_cookies().await;
                kept.expect("cookies can be listed").cookies.len()
            }
            Self::Proxy(proxy) => {
                let here = session.window().await.expect("the session has a window");
                let mut kept = BTreeSet::new();
                for page in proxy.empty_pages() {
                    let tab = session.new_tab().await.expect("a tab opens");
                    session
                        .switch_to_window(tab)
                        .await
                        .expect("the tab is there");
                    session.goto(&page).await.expect("the proxy answers");
                    let cookies = session.get_all_cookies().await;
                    let cookies = cookies.expect("cookies can be listed").into_iter();
                    kept.extend(cookies.map(|cookie| (cookie.domain, cookie.path, cookie.name)));
                    session.close_window().await.expect("the tab closes");
                    session
                        .switch_to_window(here.clone())
                        .await
                        .expect("the window is there");
                }
                kept.len()
            }
        }
    }

    /// Whether all cookies can be deleted.
    pub(super) fn saw_everything(&self) -> bool {
        match self {
            Self::Driver(_) => true,
            Self::Proxy(proxy) => proxy.saw_everything(),
        }
    }

    /// Deletes the cookies of every host, and checks that none is left. The session may show
    /// another page afterwards.
    pub(super) async fn delete_cookies(&self, session: &WebDriver) {
        let left = match self {
            Self::Driver(bidi) => {
                let deleted = bidi.storage().delete_all_cookies().await;
                deleted.expect("cookies can be deleted");
                self.cookies(session).await
            }
            Self::Proxy(proxy) => {
                assert!(proxy.saw_everything(), "cookies of pages over TLS stay");
                for page in proxy.empty_pages() {
                    session.goto(&page).await.expect("the proxy answers");
                    // A response that was still on its way may set another one.
                    poll::until("no cookie is left", async || {
                        let deleted = session.delete_all_cookies().await;
                        deleted.expect("cookies can be deleted");
                        let kept = session.get_all_cookies().await;
                        let kept = kept.expect("cookies can be listed");
                        kept.is_empty().then_some(())
                    })
                    .await;
                }
                proxy.forget();
                0
            }
        };
        assert_eq!(left, 0, "cookies are kept");
    }
}
