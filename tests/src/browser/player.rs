//! What a player does with a page: finds things by what they are called,
//! presses them, writes into them. Pages may forbid scripts of their own; the driver's
//! run all the same.

use serde_json::{Value, json};
use thirtyfour::WebElement;

use super::Stage;
use crate::poll;

/// What a screen reader would call an element, as far as the pages here go: its
/// label, or its text without what is hidden from readers.
const CALLED: &str = "
    const called = element => {
        const copy = (element.labels?.[0] ?? element).cloneNode(true);
        copy.querySelectorAll('[aria-hidden=true]').forEach(hidden => hidden.remove());
        return (element.ariaLabel || copy.textContent).trim().replace(/\\s+/g, ' ');
    };";

/// Of what `arguments[0]` selects, the visible elements that are called
/// `arguments[1]`.
const FIND: &str = "
    return [...document.querySelectorAll(arguments[0])].filter(element =>
        element.getClientRects().length && called(element) === arguments[1])";

impl Stage {
    /// Runs a script beside the page's own, which its policy does not forbid;
    /// what it returns.
    ///
    /// # Panics
    /// When it throws.
    pub async fn look(&self, script: &str, arguments: Vec<Value>) -> Value {
        match self.browser().session.execute(script, arguments).await {
            Ok(answer) => answer.json().clone(),
            Err(error) => panic!("the script did not end: {error}:\n{script}"),
        }
    }

    /// The first visible element that `selector` selects and that is called
    /// `name`.
    async fn find(&self, selector: &str, name: &str) -> WebElement {
        let script = format!("{CALLED}{FIND}");
        poll::until(
            &format!("{selector} called {name:?} is there"),
            async || {
                let arguments = vec![json!(selector), json!(name)];
                let session = &self.browser().session;
                let found = session.execute(script.as_str(), arguments).await.ok()?;
                let element = found.elements().ok()?.into_iter().next()?;
                let usable = element.is_enabled().await.unwrap_or(false);
                usable.then_some(element)
            },
        )
        .await
    }

    /// What has the keyboard is called, and whether one sees that it has it.
    /// Nothing if nothing has it.
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

    /// The button or link that is called `name`, when it is to be seen.
    pub async fn control(&self, name: &str) -> WebElement {
        self.find("button, a[href], summary", name).await
    }

    /// Presses the button or link that is called `name`.
    ///
    /// # Panics
    /// When something is in its way.
    pub async fn press(&self, name: &str) {
        if let Err(error) = self.control(name).await.click().await {
            panic!("{name:?} could not be pressed: {error}");
        }
    }

    /// The field that is called `label`.
    pub async fn field(&self, label: &str) -> WebElement {
        self.find("input, textarea", label).await
    }

    /// Writes `text` into the field that is called `label`, in place of what is
    /// there.
    ///
    /// # Panics
    /// When it cannot be written into.
    pub async fn fill(&self, label: &str, text: &str) {
        let field = self.field(label).await;
        field.clear().await.expect("the field can be emptied");
        field.send_keys(text).await.expect("the field takes text");
    }

    /// Waits until the page says `part`.
    pub async fn says(&self, part: &str) {
        poll::until(&format!("the page says {part:?}"), async || {
            let script = "return document.body?.innerText ?? ''";
            let session = &self.browser().session;
            let text = session.execute(script, vec![]).await.ok()?;
            text.json().as_str()?.contains(part).then_some(())
        })
        .await;
    }

    /// What the page says in a status or an alert: the first that says
    /// anything.
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

    /// Waits until the page's address is as `wanted` says, and it has loaded;
    /// the whole address.
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

    /// Waits until the page's address starts with `start`, and it has loaded;
    /// the whole address.
    pub async fn arrives_below(&self, start: &str) -> String {
        self.arrives(&format!("a page of {start}"), |url| url.starts_with(start))
            .await
    }

    /// Waits until the page's address has `part` in its query, and it has
    /// loaded.
    pub async fn arrives_with(&self, part: &str) {
        let has = |url: &str| {
            let query = url.split(['?', '#']).nth(1).unwrap_or_default();
            query.split('&').any(|one| one == part)
        };
        self.arrives(&format!("a page with {part}"), has).await;
    }
}
