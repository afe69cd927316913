//! The previews of a project on its page: the list, the code for a phone, and removing one.

use platform_tests::browser::Stage;
use platform_tests::world::PageBuilder;
use serde_json::json;

use super::{Scene, comes_to};

platform_tests::browser_tests![a_preview_is_listed_shown_as_a_code_and_removed];

/// Returns whether the code's box is a square, the colours of a module that is always dark and of the
/// margin, and the code's name.
const CODE: &str = "const code = document.querySelector('#preview-code-picture canvas');
    if (!code) return null;
    const { width, height } = code.getBoundingClientRect();
    const module = 4;
    const at = (x, y) => [...code.getContext('2d').getImageData(x * module, y * module, 1, 1).data];
    return [width >= 200 && width === height, at(4.5, 4.5), at(1, 1), code.ariaLabel]";

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
        [0, 0, 0, 255],
        [255, 255, 255, 255],
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
