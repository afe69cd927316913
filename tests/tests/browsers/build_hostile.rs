//! The Build page only ever shows the logs of players' pages as text.

use platform_tests::browser::Stage;
use platform_tests::hostile;
use platform_tests::owner::Owner;
use platform_tests::platform::Platform;
use platform_tests::poll;
use serde_json::{Value, json};

use crate::build::{Scene, logged};

platform_tests::browser_tests![
    in Chromium, because "text is put into the page in one way everywhere":
    hostile_records_are_inert_in_every_field,
    hostile_titles_and_slugs_are_inert,
];

/// Returns everything on the page except the text: the names of the log's elements, their
/// attributes, everything that could run or navigate, and invisible characters.
const LOOK: &str = r"
    const log = document.getElementById('records');
    const all = [...log.querySelectorAll('*')];
    const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/u;
    const nothing = /[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\u{e0000}-\u{e01ef}]|[^\u2764]\ufe0f/u;
    const attributes = all.flatMap(element => [...element.attributes]);
    const texts = [log.textContent, document.title, ...attributes.map(({ value }) => value),
        ...['player', 'news', 'gate-words', 'tally'].map(id => document.getElementById(id).textContent)];
    return {
        elements: [...new Set(all.map(element => element.localName))].sort(),
        attributes: [...new Set(attributes.map(({ name }) => name))].sort(),
        unseen: texts.filter(text => unseen.test(text) || nothing.test(text)),
        hurt: window.hurt ?? null,
        headings: document.querySelectorAll('h1').length,
        frames: document.querySelectorAll('iframe').length,
        strangers: document.querySelectorAll('base, style, template, object, embed, svg, script:not([src])').length,
        links: [...document.links].map(link => new URL(link.href).protocol).filter(name => !/^https?:$/.test(name)),
    }";

async fn hostile_records_are_inert_in_every_field(stage: Stage) {
    let quiet = "<!doctype html><html lang=en><title>Quiet</title><link rel=icon href=data:,>";
    let platform = Platform::start(&[]).await;
    let scene = Scene::open_on(platform, &stage, &[("index.html", quiet)]).await;
    scene.log(&hostile::records(), None).await;
    let texts = hostile::texts();
    let number = texts.len();
    logged(&stage, &format!("{}: ", number - 1)).await;
    // With new records, and with earlier ones.
    for _ in 0..2 {
        let open =
            "document.querySelectorAll('.entry summary').forEach(summary => summary.click())";
        stage.look(open, vec![]).await;
        poll::until("every entry is open", async || {
            let all = "return [...document.querySelectorAll('.entry')].filter(entry => entry.querySelector('dl')).length";
            (stage.look(all, vec![]).await == json!(number)).then_some(())
        })
        .await;
        let found = stage.look(LOOK, vec![]).await;
        let inert = json!({
            "elements": ["bdi", "code", "dd", "details", "dl", "dt", "li", "ol", "pre", "span", "summary", "time"],
            "attributes": ["aria-hidden", "aria-label", "class", "datetime", "hidden", "open", "title"],
            "unseen": [], "hurt": null, "headings": 1, "frames": 1, "strangers": 0, "links": [],
        });
        assert_eq!(found, inert);
        let shown = stage.look(
            "return [...document.querySelectorAll('.entry')].map(entry => entry.textContent)",
            vec![],
        );
        says_everything(&shown.await, &texts);
        stage.reload().await;
        stage.says("Live").await;
    }
}

/// Asserts that nothing was lost: visible characters are shown as they were written, in the
/// message, in the stack, as the position and in the metadata; invisible ones are shown by name.
fn says_everything(shown: &Value, texts: &[String]) {
    let shown: Vec<&str> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    for (number, text) in texts.iter().enumerate() {
        let start = format!("{number}: ");
        let entry = shown[texts.len() - 1 - number];
        assert!(entry.contains(&start), "{number} is {entry}");
        if text.chars().all(|c| (' '..='~').contains(&c)) {
            let times = entry.matches(text.as_str()).count();
            assert!(times >= 3, "{times} times {text:?} in {entry}");
        }
    }
    let all = shown.concat();
    for name in [
        "␛[2J",
        "␇",
        "‹U+9B›2J",
        "␈",
        "‹U+7F›",
        "␀",
        "␍",
        "‹U+202E›gnp.exe‹U+202C›",
        "‹U+2066›",
        "‹U+61C›",
        "‹U+200B›",
        "‹U+AD›soft",
        "‹U+E0041›",
        "‹U+FFF9›",
        "‹U+2028›",
        "fill‹U+115F›‹U+1160›‹U+3164›‹U+FFA0›‹U+2800› join‹U+34F› vowel‹U+17B4›‹U+17B5›",
        "choose‹U+180B›‹U+180C›‹U+180D›‹U+180F›‹U+FE00›a‹U+FE0E› b‹U+FE0F›‹U+E0100›",
        "heart ❤\u{fe0f}‹U+FE0F›",
    ] {
        let padded = name
            .replace("‹U+9B›", "‹U+009B›")
            .replace("‹U+7F›", "‹U+007F›")
            .replace("‹U+61C›", "‹U+061C›")
            .replace("‹U+34F›", "‹U+034F›")
            .replace("‹U+AD›", "‹U+00AD›");
        assert!(all.contains(&padded), "{padded}");
    }
}

async fn hostile_titles_and_slugs_are_inert(stage: Stage) {
    for status in ["400", "404"] {
        stage.tolerate_log(status);
    }
    let platform = Platform::start(&[]).await;
    let owner = Owner::sign_in(&platform.site, "Ada").await;
    owner.create("game").await;
    for text in hostile::texts() {
        let wanted = Some(json!({ "slug": text }));
        let (status, _) = owner
            .ask(reqwest::Method::POST, "/api/projects", wanted)
            .await;
        assert_eq!(status, 400, "{text:?} is no slug");
        let page = url_of(&format!("{}/build/", platform.site.origin), &text);
        stage.open(&page).await;
        nothing_runs(&stage, &text).await;
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
        let html = format!(
            "<!doctype html><html lang=en><title>{escaped}</title><link rel=icon href=data:,>"
        );
        owner.deploy("game", "prod", &[("index.html", &html)]).await;
        stage.open(&platform.site.origin).await;
        nothing_runs(&stage, &text).await;
    }
}

/// Returns the address of `text` below `base`, with every byte escaped.
fn url_of(base: &str, text: &str) -> String {
    let escaped: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("{base}{escaped}")
}

async fn nothing_runs(stage: &Stage, text: &str) {
    let look = "return [window.hurt ?? null, document.querySelectorAll('h1').length,
        document.querySelectorAll('iframe, base, style, template, svg, form input[name=attributes]').length
            + [...document.scripts].filter(script => script.textContent.startsWith('window.hurt')).length,
        [...document.querySelectorAll('*')].some(element => [...element.attributes].some(({ name, value }) =>
            name.startsWith('on') || /^\\s*(javascript|data):/i.test(value)))]";
    assert_eq!(
        stage.look(look, vec![]).await,
        json!([null, 1, 0, false]),
        "{text:?}"
    );
}
