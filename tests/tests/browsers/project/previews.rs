//! The previews of a project on its page: the list, the code for a phone, and removing one.

use platform_tests::browser::Stage;
use platform_tests::world::PageBuilder;
use serde_json::json;

use super::{Scene, comes_to};

platform_tests::browser_tests![a_preview_is_listed_shown_as_a_code_and_removed];

/// Returns the box of the code and what it draws: the size of the image, and the colours of a module
/// that is always dark, and of the margin, as the page's styles say.
const CODE: &str = "const svg = document.querySelector('#preview-code-picture svg');
    if (!svg) return null;
    const { width, height } = svg.getBoundingClientRect();
    const [module] = svg.children;
    const dark = module.isPointInFill(new DOMPoint(4.5, 4.5));
    const free = module.isPointInFill(new DOMPoint(1, 1));
    return [width >= 200 && width === height, dark, free,
        getComputedStyle(module).fill, getComputedStyle(svg).backgroundColor, svg.ariaLabel
            ?? svg.getAttribute('aria-label')]";

async fn a_preview_is_listed_shown_as_a_code_and_removed(stage: Stage) {
    let scene = Scene::start().await;
    scene.open(&stage, "deployments").await;
    stage.says("platform deploy --project game --preview").await;
    let page = PageBuilder::new().html();
    let files = [("index.html", page.as_str())];
    scene.owner.preview("game", "new-rings", &files).await;
    stage.open(&scene.tab("deployments")).await;
    stage.says("1 of 20.").await;
    let url = scene.platform.site.url("new-rings--game", "");
    let link = "return document.querySelector('#previews a').href";
    comes_to(&stage, link, json!(format!("{url}/"))).await;

    stage.press("QR code of the preview new-rings").await;
    stage.says("Open it on a phone").await;
    let expected = json!([
        true,
        true,
        false,
        "rgb(0, 0, 0)",
        "rgb(255, 255, 255)",
        format!("QR code of {url}")
    ]);
    comes_to(&stage, CODE, expected).await;
    stage.press("Close").await;

    stage.press("Remove… the preview new-rings").await;
    stage.says("Remove this preview?").await;
    stage.press("Remove").await;
    stage.says("The preview new-rings is removed.").await;
    stage.says("None yet. In the game’s folder").await;
}
