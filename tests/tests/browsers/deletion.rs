//! Deleting an account and a guest on the profile page, and taking that back.

use platform_tests::browser::Stage;
use platform_tests::sign_in::Way;
use platform_tests::world::World;

use crate::identity::player;
use crate::pages::examine;

platform_tests::browser_tests![
    an_account_that_is_to_be_deleted_is_asked_about_on_the_way_into_a_game_and_kept,
    a_guest_that_is_to_be_deleted_makes_room_for_a_new_one,
];

/// The address at which the demo game was left.
const LEFT: &str = "/?a=1";

/// Opens the profile of the player with this name from the demo game.
async fn profile(stage: &Stage, world: &World, name: &str) {
    stage.press(name).await;
    stage.arrives_below(&world.url("auth", "/profile?")).await;
}

async fn an_account_that_is_to_be_deleted_is_asked_about_on_the_way_into_a_game_and_kept(
    stage: Stage,
) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let game = world.url("demo", LEFT);
    stage.open(&game).await;
    let guest = player(&stage).await;
    stage.press("Sign in").await;
    way.sign_in(&stage, "ada").await;
    stage.arrives_at(&game).await;

    profile(&stage, &world, "ada").await;
    stage.says("Download my data").await;
    stage.press("Delete my account").await;
    stage.says("Until then you can take it back").await;
    examine(&stage, "the question whether to delete an account").await;
    world.pass_reading();
    stage.press("Delete my account").await;
    stage.says("will be deleted on").await;
    examine(&stage, "an account that is to be deleted").await;

    // The game lets nobody play as the player, and the sign-in page says why.
    stage.open(&game).await;
    stage.arrives_below(&world.url("auth", "/login?")).await;
    stage.says("You can take that back until then").await;
    examine(
        &stage,
        "the sign-in page of an account that is to be deleted",
    )
    .await;
    stage.press("Keep ada").await;
    stage.says("Keep my account").await;
    world.pass_reading();
    stage.press("Keep my account").await;
    stage.arrives_with("saved=keep").await;
    stage.says("You are not deleted.").await;
    stage.press("Back to Firefly").await;
    stage.arrives_at(&game).await;
    let back = player(&stage).await;
    assert_eq!((&back.sub, back.is_anon), (&guest.sub, false));
}

async fn a_guest_that_is_to_be_deleted_makes_room_for_a_new_one(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;
    let game = world.url("demo", LEFT);
    stage.open(&game).await;
    let guest = player(&stage).await;
    profile(&stage, &world, &guest.username).await;
    stage.press("Delete this guest").await;
    stage.says("Delete the guest").await;
    world.pass_reading();
    stage.press("Delete this guest").await;
    stage.says("will be deleted on").await;
    examine(&stage, "a guest that is to be deleted").await;

    stage.open(&game).await;
    stage.arrives_below(&world.url("auth", "/login?")).await;
    stage.says("Or start again").await;
    world.pass_reading();
    stage.press("Play as a new guest").await;
    stage.arrives_at(&game).await;
    let new = player(&stage).await;
    assert_ne!(new.sub, guest.sub);
    assert!(new.is_anon);
}
