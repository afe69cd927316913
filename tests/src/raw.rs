//! Requests that no library for HTTP would send.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What a server on `localhost` answers to `GET` of `target`, as it stands:
/// the whole response, up to where the server ends the connection; empty where
/// it did not answer.
///
/// # Panics
/// When nothing listens on the port.
pub async fn get(port: u16, target: &str) -> String {
    let mut stream = TcpStream::connect(("localhost", port))
        .await
        .expect("it listens");
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    // A server that ends meanwhile has answered as far as it has.
    if stream.write_all(request.as_bytes()).await.is_ok() {
        let _ = stream.read_to_end(&mut answer).await;
    }
    String::from_utf8_lossy(&answer).into_owned()
}
