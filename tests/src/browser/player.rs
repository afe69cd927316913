//! A player's actions on a page: finding elements by their accessible names, pressing them, typing
//! into them. Pages may forbid scripts, but the driver's scripts run all the same.

use serde_json::{Value, json};
use thirtyfour::{By, Key, WebElement};

use super::Stage;
use crate::poll;

/// The name that a screen reader would use for an element, simplified for these pages: its label,
/// or its text without parts that are hidden from screen readers.
const CALLED: &str = "
    const called = element => {
        const copy = (element.labels?.[0] ?? element).cloneNode(true);
        copy.querySelectorAll('[aria-hidden=true]').forEach(hidden => hidden.remove());
        return (element.ariaLabel || copy.textContent).trim().replace(/\\s+/g, ' ');
    };";

/// Finds the visible elements that match the selector `arguments[0]` and have the name
/// `arguments[1]`.
const FIND: &str = "
    return [...document.querySelectorAll(arguments[0])].filter(element =>
        element.getClientRects().length && getComputedStyle(element).visibility === 'visible'
        && called(element) === arguments[1])";

/// Elements that can be pressed.
const CONTROLS: &str = "button, a[href], summary";

/// Returns the position of `arguments[0]` in the window.
const PLACE: &str = "
    const { x, y, width, height } = arguments[0].getBoundingClientRect();
    return [x, y, width, height, innerWidth, innerHeight];";

/// Records the target of the next click, and whether that is `arguments[0]` or a label of it.
/// Clicks in a frame are left to the frame.
const AIM: &str = "
    const [element] = arguments;
    const press = document[Symbol.for('press')] = {};
    if (element.localName === 'iframe') press.hit = true;
    addEventListener('click', event => {
        const path = event.composedPath();
        press.hit = [element, ...element.labels ?? []].some(one => path.includes(one));
        press.on = event.target.outerHTML?.slice(0, 200) ?? String(event.target);
    }, { capture: true, once: true });";

/// Returns what [`AIM`] recorded; if the click has led to another page, it has succeeded.
const LANDED: &str = "
    const press = document[Symbol.for('press')] ?? { hit: true };
    return press.hit === undefined ? null : press;";

impl Stage {
    /// Runs a script of the driver, which the page's policy does not forbid, and returns its
    /// result.
    ///
    /// # Panics
    /// Panics if it throws.
    pub async fn look(&self, script: &str, arguments: Vec<Value>) -> Value {
        match self.browser().session.execute(script, arguments).await {
            Ok(answer) => answer.json().clone(),
            Err(error) => panic!("the script did not end: {error}:\n{script}"),
        }
    }

    /// Returns the first visible element that matches `selector` and has the name `name`.
    async fn find(&self, selector: &str, name: &str) -> WebElement {
        let what = format!("{selector} called {name:?} is there");
        poll::until(&what, async || self.seen(selector, name).await).await
    }

    /// Returns the same element if it exists now and can be used.
    async fn seen(&self, selector: &str, name: &str) -> Option<WebElement> {
        let script = format!("{CALLED}{FIND}");
        let arguments = vec![json!(selector), json!(name)];
        let session = &self.browser().session;
        let found = session.execute(script, arguments).await.ok()?;
        let element = found.elements().ok()?.into_iter().next()?;
        let usable = element.is_enabled().await.unwrap_or(false);
        usable.then_some(element)
    }

    /// Returns the name of the focused element, and whether the focus is visible; `None` if nothing
    /// has the focus.
    pub async fn focused(&self) -> Option<(String, bool)> {
        let script = format!(
            "{CALLED}
            const at = document.activeElement;
            if (!at || at === document.body) return null;
            const style = getComputedStyle(at);
            const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
            return [called(at), at.matches(':focus-visible') && (outlined || style.boxShadow !== 'none')]"
        );
        let answer = self.look(&script, vec![]).await;
        Some((answer[0].as_str()?.to_owned(), answer[1] == true))
    }

    /// Waits until the button or link named `name` is visible, and returns it.
    pub async fn control(&self, name: &str) -> WebElement {
        self.find(CONTROLS, name).await
    }

    /// Presses the button or link named `name`.
    ///
    /// # Panics
    /// Panics if something covers it.
    pub async fn press(&self, name: &str) {
        let control = self.aim(name, async || self.seen(CONTROLS, name).await);
        let control = control.await;
        if let Err(error) = control.click().await {
            panic!("{name:?} could not be pressed: {error}");
        }
        self.landed(name).await;
    }

    /// Presses the element that matches `selector`, anywhere on the page.
    ///
    /// # Panics
    /// Panics if there is none.
    pub async fn click(&self, selector: &str) {
        let session = &self.browser().session;
        let shown = async || {
            let element = session.find(By::Css(selector)).await.ok()?;
            element.scroll_into_view().await.ok()?;
            let usable = element.is_enabled().await.unwrap_or(false);
            usable.then_some(element)
        };
        let element = self.aim(selector, shown).await;
        let chain = session.action_chain().move_to_element_center(&element);
        chain.click().perform().await.expect("the mouse works");
        self.landed(selector).await;
    }

    /// Returns the element that `find` finds, once it does not move any more: a driver presses the
    /// place where it was. The page may replace the element meanwhile, so it is searched each time.
    async fn aim(
        &self,
        name: &str,
        mut find: impl AsyncFnMut() -> Option<WebElement>,
    ) -> WebElement {
        let session = &self.browser().session;
        let mut before = (Value::Null, 0);
        poll::until(&format!("{name:?} is there and lies still"), async || {
            let element = find().await?;
            let argument = element.to_json().ok()?;
            let place = session.execute(PLACE, vec![argument.clone()]).await.ok()?;
            let looks = if *place.json() == before.0 {
                before.1 + 1
            } else {
                0
            };
            before = (place.json().clone(), looks);
            if looks < 2 {
                return None;
            }
            session.execute(AIM, vec![argument]).await.ok()?;
            Some(element)
        })
        .await
    }

    /// Waits until the press has arrived.
    ///
    /// # Panics
    /// Panics if it arrived elsewhere: the page moved under the pointer, and a person's press would
    /// have missed as well.
    async fn landed(&self, name: &str) {
        let press = poll::until(&format!("the press of {name:?} arrives"), async || {
            let session = &self.browser().session;
            let press = session.execute(LANDED, vec![]).await.ok()?;
            let press = press.json().clone();
            (!press.is_null()).then_some(press)
        })
        .await;
        let hit = press["hit"] == true;
        assert!(hit, "the press of {name:?} was on {}", press["on"]);
    }

    /// Returns the field with the label `label`.
    pub async fn field(&self, label: &str) -> WebElement {
        self.find("input, textarea", label).await
    }

    /// Types `text` into the field with the label `label`, replacing its content; types a line
    /// break with its key.
    ///
    /// # Panics
    /// Panics if the field is not writable.
    pub async fn fill(&self, label: &str, text: &str) {
        let field = self.field(label).await;
        field.clear().await.expect("the field can be emptied");
        // WebKit's driver refuses to type an empty text, and cannot type a line break.
        if !text.is_empty() {
            let keys = text.replace('\n', &Key::Enter.value().to_string());
            field.send_keys(keys).await.expect("the field takes text");
        }
    }

    /// Waits until the page contains the text `part`.
    ///
    /// # Panics
    /// Panics with the page's text if it does not contain it in time.
    pub async fn says(&self, part: &str) {
        let mut said = String::new();
        let saying = poll::comes(async || {
            let script = "return document.body?.innerText ?? ''";
            let session = &self.browser().session;
            let text = session.execute(script, vec![]).await.ok()?;
            text.json().as_str()?.clone_into(&mut said);
            said.contains(part).then_some(())
        });
        if saying.await.is_none() {
            let bound = poll::BOUND.as_secs();
            panic!("waited {bound} s in vain until the page says {part:?}; it says:\n{said}");
        }
    }

    /// Returns the text of the first status or alert on the page that is not empty.
    pub async fn status(&self) -> String {
        poll::until("the page says how it went", async || {
            let script = "return [...document.querySelectorAll('[role=status], [role=alert]')]
                .map(region => region.innerText.trim()).find(Boolean) ?? null";
            let session = &self.browser().session;
            let text = session.execute(script, vec![]).await.ok()?;
            text.json().as_str().map(str::to_owned)
        })
        .await
    }

    /// Waits until the page's address satisfies `wanted` and the page has loaded, and returns the
    /// whole address.
    async fn arrives(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        poll::until(what, async || {
            let script = "return [location.href, document.readyState]";
            let session = &self.browser().session;
            let answer = session.execute(script, vec![]).await.ok()?;
            let url = answer.json()[0].as_str()?.to_owned();
            (wanted(&url) && answer.json()[1] == "complete").then_some(url)
        })
        .await
    }

    /// Waits until the page's address starts with `start` and the page has loaded, and returns the
    /// whole address.
    pub async fn arrives_below(&self, start: &str) -> String {
        self.arrives(&format!("a page of {start}"), |url| url.starts_with(start))
            .await
    }

    /// Waits until the page's path differs from `path` and the page has loaded, and returns the new
    /// path.
    pub async fn arrives_away_from(&self, path: &str) -> String {
        poll::until(&format!("another page than {path}"), async || {
            let script = "return [location.pathname, document.readyState]";
            let session = &self.browser().session;
            let answer = session.execute(script, vec![]).await.ok()?;
            let at = answer.json()[0].as_str()?.to_owned();
            (at != path && answer.json()[1] == "complete").then_some(at)
        })
        .await
    }

    /// Waits until the query of the page's address contains `part` and the page has loaded.
    pub async fn arrives_with(&self, part: &str) {
        let has = |url: &str| {
            let query = url.split(['?', '#']).nth(1).unwrap_or_default();
            query.split('&').any(|one| one == part)
        };
        self.arrives(&format!("a page with {part}"), has).await;
    }
}
