//! The colours of the platform's pages have enough contrast for people with low vision.

use std::collections::HashMap;

use crate::support::{TestApp, send};

/// Pairs of text and background colours, and of lines that show the edges of controls.
const TEXT: [(&str, &str); 29] = [
    ("ink", "paper"),
    ("ink", "surface"),
    ("ink", "tint"),
    ("soft", "paper"),
    ("soft", "surface"),
    ("soft", "tint"),
    ("accent", "paper"),
    ("accent", "surface"),
    ("accent", "on-accent"),
    ("accent", "tint"),
    ("accent-strong", "paper"),
    ("accent-strong", "surface"),
    ("accent-strong", "tint"),
    ("accent-strong", "on-accent"),
    ("danger", "surface"),
    ("danger", "danger-tint"),
    ("good", "good-tint"),
    ("on-accent", "accent-strong"),
    ("good", "surface"),
    ("ink", "danger-tint"),
    ("soft", "danger-tint"),
    ("ink", "warn-tint"),
    ("soft", "warn-tint"),
    ("warn", "warn-tint"),
    ("accent", "danger-tint"),
    ("pane-1", "paper"),
    ("pane-2", "paper"),
    ("pane-3", "paper"),
    ("pane-4", "paper"),
];
const CONTROLS: [(&str, &str); 9] = [
    ("control", "surface"),
    ("control", "paper"),
    ("accent", "paper"),
    ("accent", "tint"),
    ("danger", "surface"),
    ("pane-1", "surface"),
    ("pane-2", "surface"),
    ("pane-3", "surface"),
    ("pane-4", "surface"),
];

/// Relative luminance (WCAG 2.2) of `#rrggbb`.
fn luminance(colour: &str) -> f64 {
    let hex = colour.strip_prefix('#').unwrap();
    assert_eq!(hex.len(), 6, "{colour}");
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Returns the colours that a part of the stylesheet defines.
fn colours(css: &str) -> HashMap<&str, &str> {
    css.lines()
        .filter_map(|line| {
            let (name, value) = line.trim().strip_prefix("--")?.split_once(": ")?;
            let value = value.strip_suffix(';')?;
            value.starts_with('#').then_some((name, value))
        })
        .collect()
}

#[tokio::test]
async fn every_pair_of_colours_can_be_read_in_light_and_dark() {
    let app = TestApp::start().await;
    let answer = send(app.get("auth", "/static/platform.css")).await;
    let css = answer.text();
    let (light, rest) = css.split_once("prefers-color-scheme: dark").unwrap();
    let (dark, rest) = rest.split_once("@layer base").unwrap();
    let (light, dark) = (colours(light), colours(dark));
    assert_eq!(light.len(), 20);
    let names = |colours: &HashMap<&str, &str>| {
        let mut names: Vec<_> = colours.keys().map(ToString::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(names(&light), names(&dark), "every colour has both");
    assert!(!rest.contains('#'), "every colour is a token");
    let console = send(app.get("", "/static/console/any/console.css")).await;
    assert!(!console.text().contains('#'), "every colour is a token");
    for (mode, colours) in [("light", &light), ("dark", &dark)] {
        for (pairs, least) in [(&TEXT[..], 4.5), (&CONTROLS[..], 3.0)] {
            for (one, other) in pairs {
                let contrast = contrast(colours[one], colours[other]);
                assert!(
                    contrast >= least,
                    "{mode}: {one} on {other} is {contrast:.2}"
                );
            }
        }
    }
}
