//! A peer that speaks HTTP/2 frame by frame, and keeps to no rule.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;

use rustls::pki_types::ServerName;
use rustls::version::TLS13;

use super::{Authority, H2, Secure, soon};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// A frame that the server has sent.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) content: Vec<u8>,
}

/// Returns the bytes of a frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head[..], &stream.to_be_bytes(), content].concat()
}

/// Returns the head of `GET <path>`, with indices of the static table (RFC 7541 Appendix A).
pub(super) fn get(host: &str, path: &str) -> Vec<u8> {
    let (method, scheme, path_of, authority) = (0x82, 0x87, 4, 1);
    let text = |index: u8, text: &str| {
        let length = u8::try_from(text.len()).unwrap();
        assert!(length < 127);
        [&[index, length][..], text.as_bytes()].concat()
    };
    [
        vec![method, scheme],
        text(path_of, path),
        text(authority, host),
    ]
    .concat()
}

/// A setting of this peer.
pub(super) fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

pub(super) struct Peer {
    pub(super) stream: TlsStream<TcpStream>,
}

impl Peer {
    /// Connects, and sends the preface with these settings.
    pub(super) async fn connect(secure: &Secure, address: SocketAddr, settings: &[u8]) -> Self {
        Self::connect_from(Ipv4Addr::LOCALHOST, &secure.authority, address, settings).await
    }

    /// Connects from an address of this machine to a server with a certificate of this authority, and sends
    /// the preface.
    pub(super) async fn connect_from(
        from: Ipv4Addr,
        authority: &Authority,
        address: SocketAddr,
        settings: &[u8],
    ) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let stream = socket.connect(address).await.unwrap();
        let name = ServerName::try_from("demo.platform.localhost").unwrap();
        let connector = authority.config(&TLS13, &[H2]);
        let stream = soon(connector.connect(name, stream)).await.unwrap();
        let mut peer = Self { stream };
        peer.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        peer.send(&frame(SETTINGS, 0, 0, settings)).await;
        peer
    }

    /// Sends bytes. Returns whether the connection is still open.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> bool {
        soon(async {
            self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
        })
        .await
    }

    /// Asks for a path of the demo.
    pub(super) async fn ask(&mut self, stream: u32, path: &str) -> bool {
        self.ask_host(stream, "demo.platform.localhost", path).await
    }

    /// Asks a host for a path.
    pub(super) async fn ask_host(&mut self, stream: u32, host: &str, path: &str) -> bool {
        let head = get(host, path);
        let flags = END_HEADERS | END_STREAM;
        self.send(&frame(HEADERS, flags, stream, &head)).await
    }

    /// Returns the next frame, or `None` if the connection was closed.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        soon(self.stream.read_exact(&mut head)).await.ok()?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let mut content = vec![0; usize::try_from(length).unwrap()];
        soon(self.stream.read_exact(&mut content)).await.ok()?;
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
            content,
        })
    }

    /// Returns the next frame that is `wanted`.
    pub(super) async fn find(&mut self, wanted: impl Fn(&Frame) -> bool) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if wanted(&frame) {
                return Some(frame);
            }
        }
    }

    /// Reads until the connection is closed. Returns the reason of a GOAWAY, if there was one.
    pub(super) async fn end(&mut self) -> Option<u8> {
        let mut reason = None;
        while let Some(frame) = self.next().await {
            if frame.kind == GOAWAY {
                reason = Some(frame.content[7]);
            }
        }
        reason
    }
}
