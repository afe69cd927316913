//! Signing in a device: its code on the page, the decision, and the list on
//! the profile page.

use platform_tests::browser::Stage;
use platform_tests::sign_in::Way;
use platform_tests::world::World;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::pages::examine;

platform_tests::browser_tests![a_device_is_let_in_turned_away_and_ended_by_its_person];

/// The label of the code's field.
const CODE: &str = "Code";

/// Sends a form to the auth service, as a device does.
async fn ask(world: &World, path: &str, fields: &[(&str, &str)]) -> (StatusCode, Value) {
    let answer = world
        .visitor()
        .request(Method::POST, "auth", path)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(platform_tests::person::query(fields))
        .send()
        .await
        .unwrap();
    (answer.status(), answer.json().await.unwrap())
}

/// A device starts to sign in; returns the response.
pub(crate) async fn begin(world: &World) -> Value {
    let client = [("client_id", "platform-cli")];
    let (status, begun) = ask(world, "/device/authorization", &client).await;
    assert_eq!(status, StatusCode::OK, "{begun}");
    begun
}

/// The device requests its tokens.
pub(crate) async fn poll(world: &World, begun: &Value) -> (StatusCode, Value) {
    let fields = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", begun["device_code"].as_str().unwrap()),
        ("client_id", "platform-cli"),
    ];
    ask(world, "/device/token", &fields).await
}

async fn a_device_is_let_in_turned_away_and_ended_by_its_person(stage: Stage) {
    let way = Way::BuiltIn;
    let world = way.world().await;

    // The address with the code, in a browser where nobody is signed in.
    let denied = begin(&world).await;
    let complete = denied["verification_uri_complete"].as_str().unwrap();
    stage.open(complete).await;
    stage.says("to let your device in").await;
    examine(&stage, "the sign-in page on the way to a device").await;
    way.sign_in(&stage, "ada").await;
    // The code is passed on with a proof that only this browser can use.
    stage.arrives_below(&format!("{complete}&proof=")).await;
    stage.says(denied["user_code"].as_str().unwrap()).await;
    examine(&stage, "the decision").await;
    world.pass_reading();
    stage.press("Deny").await;
    stage.says("turned away").await;
    examine(&stage, "a device that was turned away").await;
    let (_, answer) = poll(&world, &denied).await;
    assert_eq!(answer["error"], "access_denied");

    // The code is typed, first incorrectly.
    let begun = begin(&world).await;
    stage
        .open(begun["verification_uri"].as_str().unwrap())
        .await;
    stage.field(CODE).await;
    examine(&stage, "the field for a code").await;
    stage.fill(CODE, "bcdfghjk").await;
    stage.press("Continue").await;
    stage.says("No device is waiting with this code").await;
    examine(&stage, "a code that no device shows").await;
    let code = begun["user_code"].as_str().unwrap();
    let typed = code.to_lowercase().replace('-', " ");
    stage.fill(CODE, &typed).await;
    stage.press("Continue").await;
    stage.says("Only if you started this yourself").await;
    let (_, waiting) = poll(&world, &begun).await;
    assert_eq!(waiting["error"], "authorization_pending");
    world.pass_reading();
    stage.press("Approve").await;
    stage.says("The device is signed in").await;
    examine(&stage, "a device that is signed in").await;
    let (status, tokens) = poll(&world, &begun).await;
    assert_eq!(status, StatusCode::OK, "{tokens}");

    // The profile page lists it, and ends it.
    stage.press("See your devices on your profile").await;
    stage.says("The command line").await;
    examine(&stage, "a profile with a device").await;
    let end = "return document.querySelector('.devices button').textContent";
    let end = stage.look(end, vec![]).await;
    let end = end.as_str().unwrap();
    assert!(
        end.starts_with("End The command line from 127.0.0.1, signed in on "),
        "{end}"
    );
    world.pass_reading();
    stage.press(end).await;
    stage.arrives_with("saved=end-device").await;
    assert!(
        stage
            .status()
            .await
            .starts_with("The device is signed out.")
    );
    let token = tokens["refresh_token"].as_str().unwrap();
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", "platform-cli"),
    ];
    let (_, ended) = ask(&world, "/device/token", &fields).await;
    assert_eq!(ended["error"], "invalid_grant");
}
