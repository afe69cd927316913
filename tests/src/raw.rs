//! Requests that no HTTP library would send.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends `GET` with the unmodified `target` to a server on `localhost`. Returns the whole response
/// up to the end of the connection, or an empty string if there is no response.
///
/// # Panics
/// Panics if nothing listens on the port.
pub async fn get(port: u16, target: &str) -> String {
    let mut stream = TcpStream::connect(("localhost", port))
        .await
        .expect("it listens");
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    // If the server closes the connection early, its response so far is complete.
    if stream.write_all(request.as_bytes()).await.is_ok() {
        let _ = stream.read_to_end(&mut answer).await;
    }
    String::from_utf8_lossy(&answer).into_owned()
}
