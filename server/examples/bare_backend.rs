//! A game's backend that only returns a small JSON document. `cargo xtask bench` measures how much
//! time forwarding through the platform adds.

#![expect(
    clippy::print_stdout,
    reason = "the ready line, as the server prints it"
)]

use std::error::Error;

use axum::Router;
use axum::http::header;
use axum::routing::post;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

/// About the size of a response to a game's move.
const ANSWER: &str = r#"{"ok":true,"score":4821,"board":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("bare_backend ready on http://{address} (listening on {address})");
    let answer = || async { ([(header::CONTENT_TYPE, "application/json")], ANSWER) };
    let app = Router::new().route("/api/move", post(answer));
    let listener = listener.tap_io(|stream| {
        // Otherwise small responses may be delayed, and the comparison would be unfair.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await?;
    Ok(())
}
