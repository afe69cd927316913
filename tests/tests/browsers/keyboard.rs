//! The whole way from guest to account and to another name, without a pointer.

use platform_tests::browser::Stage;
use platform_tests::sign_in::Way;
use thirtyfour::{Key, TypingData};

use crate::identity::player;
use crate::profile::NAME;

platform_tests::browser_tests![a_player_signs_in_and_takes_a_name_by_keyboard_alone,];

async fn press(stage: &Stage, keys: impl Into<TypingData>) {
    let chain = stage.browser().session.action_chain().send_keys(keys);
    chain.perform().await.unwrap();
}

/// Presses Enter on what has the keyboard.
async fn enter(stage: &Stage) {
    let focused = stage.browser().session.active_element().await.unwrap();
    // The page may be gone before the driver answers, and a driver that tries
    // once more then does not find the element. Where Enter led is looked at
    // by whoever calls this.
    let _ = focused.send_keys(Key::Enter + "").await;
}

/// Goes on with Tab until what is called `name` has the keyboard. Everything on
/// the way can be seen to have it.
async fn tab_to(stage: &Stage, name: &str) {
    let mut passed = Vec::new();
    for _ in 0..20 {
        if let Some((called, seen)) = stage.focused().await {
            assert!(seen, "{called:?} has the keyboard unseen");
            if called == name {
                return;
            }
            passed.push(called);
        }
        press(stage, Key::Tab).await;
    }
    panic!("{name:?} is not reached with Tab, only {passed:?}");
}

async fn a_player_signs_in_and_takes_a_name_by_keyboard_alone(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let left = world.url("demo", "/?a=1&b=%2F#frag");
    stage.open(&left).await;
    let guest = player(&stage).await;
    stage.control("Sign in").await;
    tab_to(&stage, "Sign in").await;
    enter(&stage).await;
    stage.arrives_below(&world.url("auth", "/login?")).await;
    tab_to(&stage, way.button()).await;
    enter(&stage).await;
    stage.field("Name").await;
    tab_to(&stage, "Name").await;
    press(&stage, "ada").await;
    enter(&stage).await;
    stage.arrives_at(&left).await;
    let account = player(&stage).await;
    assert_eq!((&account.sub, account.is_anon), (&guest.sub, false));

    stage.control(&guest.username).await;
    tab_to(&stage, &guest.username).await;
    enter(&stage).await;
    stage.arrives_below(&world.url("auth", "/profile?")).await;
    tab_to(&stage, NAME).await;
    // Whoever comes with Tab replaces what is there.
    press(&stage, "ada-by-keyboard").await;
    enter(&stage).await;
    stage.arrives_with("saved=rename").await;
    tab_to(&stage, "Back to Firefly").await;
    enter(&stage).await;
    stage.arrives_at(&left).await;
    assert_eq!(player(&stage).await.username, "ada-by-keyboard");
}
