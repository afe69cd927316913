//! Pages as people write them, each with what a browser makes of it.

mod finding;
mod order;

use super::WarningCode::NotLoaded;
use super::*;

const TAG: &str = r#"<script defer src="/__platform/runtime.js"></script>"#;

fn codes(html: &str) -> Vec<WarningCode> {
    warnings(html)
        .into_iter()
        .map(|warning| warning.code)
        .collect()
}

/// A description of the page, the page, and the expected warnings. `TAG` in a page stands for the
/// correct tag.
type Case = (&'static str, &'static str, &'static [WarningCode]);

fn check(table: &[Case]) {
    for (what, html, expected) in table {
        let html = html.replace("TAG", TAG);
        assert_eq!(codes(&html), *expected, "{what}: {html}");
    }
}

#[test]
fn a_page_may_name_its_own_address_where_it_is_known() {
    let page = |src: &str| format!("<head><script defer src={src}></script></head>");
    let own = page("https://dev-game.example/__platform/runtime.js");
    assert_eq!(warnings_at(&own, "https://dev-game.example/", NO_FILES), []);
    let without_scheme = page("//dev-game.example:443/__platform/runtime.js");
    assert_eq!(
        warnings_at(&without_scheme, "https://dev-game.example/", NO_FILES),
        []
    );
    for address in [
        "https://game.example/",
        "http://dev-game.example/",
        "https://dev-game.example:8443/",
    ] {
        let [warning] = warnings_at(&own, address, NO_FILES).try_into().unwrap();
        assert_eq!(warning.code, NotLoaded, "{address}");
        assert!(warning.message.contains("https://dev-game.example/"));
    }
}

#[test]
fn every_warning_is_a_sentence_that_says_what_to_do() {
    for code in WarningCode::ALL {
        let sentence = code.sentence();
        let of_page = code.as_str().starts_with("runtime-");
        assert_eq!(sentence.starts_with("index.html "), of_page, "{sentence}");
        assert!(sentence.ends_with('.'), "{sentence}");
    }
    let [warning] = warnings("").try_into().unwrap();
    assert!(warning.message.contains(TAG));
}

#[test]
fn a_hostile_page_is_read_in_the_end() {
    for html in [
        "<template>".repeat(50_000),
        "<svg>".repeat(50_000),
        format!("<script defer src=\"{}\">", "/".repeat(1_000_000)),
        format!("<{}", "a=1 ".repeat(100_000)),
        "\u{0}<!--".repeat(10_000),
    ] {
        assert_eq!(codes(&html), [NotLoaded]);
    }
}

#[test]
fn module_scripts_are_named_as_they_stand_there() {
    let page = "<!doctype html><head><!-- <script type=module src=/no.ts></script> -->\
                <script type=\"module\" src=\"/src/main.ts\"></script>\
                <script src=\"classic.ts\"></script><script type=module>1</script>\
                <template><script type=module src=late.ts></script></template>\
                <body><script TYPE=Module src=a.js?x=1&amp;y></script>";
    assert_eq!(module_scripts(page), ["/src/main.ts", "a.js?x=1&y"]);
}
