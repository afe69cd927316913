//! A web server whose only handler reads a small JSON document and records in a map when it was
//! last seen: the maximum that this machine can do. `cargo xtask bench` compares heartbeats with
//! it.

#![expect(
    clippy::print_stdout,
    reason = "the ready line, as the server prints it"
)]

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use platform_protocol::heartbeat::Heartbeat;
use platform_server::clock::{Clock, Millis, SystemClock};
use tokio::net::TcpListener;

type Seen = Arc<Mutex<HashMap<String, Millis>>>;

async fn beat(State(seen): State<Seen>, Json(heartbeat): Json<Heartbeat>) -> StatusCode {
    let now = SystemClock.now();
    seen.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(heartbeat.page, now);
    StatusCode::NO_CONTENT
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("bare_beat ready on http://{address} (listening on {address})");
    let app = Router::new()
        .route("/__platform/heartbeat", post(beat))
        .with_state(Seen::default());
    let listener = listener.tap_io(|stream| {
        // Otherwise small responses may be delayed, and the comparison would be unfair.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await?;
    Ok(())
}
