//! What a player does with a page: finds things by what they say, presses
//! them, writes into them. Pages may forbid scripts of their own; the driver's
//! run all the same.

use serde_json::{Value, json};
use thirtyfour::{By, WebElement};

use super::Stage;
use crate::poll;

/// The field whose label says `arguments[0]`.
const FIELD: &str = "
    const says = text => text?.trim().replace(/\\s+/g, ' ') === arguments[0];
    return [...document.querySelectorAll('input, textarea')].find(field =>
        says(field.ariaLabel) || [...(field.labels ?? [])].some(label => says(label.textContent))) ?? null";

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

    /// The button or link that says `name`, when it is to be seen.
    pub async fn control(&self, name: &str) -> WebElement {
        let quoted = format!("\"{name}\"");
        let path = format!(
            "//button[normalize-space()={quoted}] | //a[@href and normalize-space()={quoted}] | //summary[normalize-space()={quoted}]"
        );
        poll::until(&format!("{name:?} can be pressed"), async || {
            let session = &self.browser().session;
            for control in session.find_all(By::XPath(path.as_str())).await.ok()? {
                if control.is_clickable().await.unwrap_or(false) {
                    return Some(control);
                }
            }
            None
        })
        .await
    }

    /// Presses the button or link that says `name`.
    ///
    /// # Panics
    /// When something is in its way.
    pub async fn press(&self, name: &str) {
        if let Err(error) = self.control(name).await.click().await {
            panic!("{name:?} could not be pressed: {error}");
        }
    }

    /// The field whose label says `label`.
    pub async fn field(&self, label: &str) -> WebElement {
        poll::until(&format!("a field {label:?}"), async || {
            let session = &self.browser().session;
            let found = session.execute(FIELD, vec![json!(label)]).await.ok()?;
            found.element().ok()
        })
        .await
    }

    /// Writes `text` into the field whose label says `label`, in place of what
    /// is there.
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

    /// Waits until the page's address starts with `start`, and it has loaded;
    /// the whole address.
    pub async fn arrives_below(&self, start: &str) -> String {
        poll::until(&format!("a page of {start}"), async || {
            let script = "return [location.href, document.readyState]";
            let session = &self.browser().session;
            let answer = session.execute(script, vec![]).await.ok()?;
            let url = answer.json()[0].as_str()?.to_owned();
            let there = url.starts_with(start) && answer.json()[1] == "complete";
            there.then_some(url)
        })
        .await
    }
}
