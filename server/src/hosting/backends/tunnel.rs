//! A WebSocket through the platform: bytes are passed on as they come, and the only
//! thing that is read are the heads of the frames (RFC 6455 §5.2), so that a tunnel
//! which the platform ends can end between two frames, with a close frame.

use std::io;
use std::time::Duration;

use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf,
};
use tokio_util::sync::CancellationToken;

/// A close frame with status 1001, "going away" (RFC 6455 §7.4.1), for the visitor.
const GOING_AWAY: [u8; 4] = [0x88, 0x02, 0x03, 0xe9];
/// The same for the backend. Clients mask their frames (§5.3) against scripts that
/// choose what is sent; nobody chooses this, so the mask is zero.
const GOING_AWAY_MASKED: [u8; 8] = [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9];
/// How long a tunnel that is being ended may take to come to the end of its frames, and
/// the visitor to answer the close frame.
const CLOSING: Duration = Duration::from_secs(2);
/// Bytes that are passed on at one time.
const BUFFER: usize = 8 * 1024;
/// A close frame's opcode (RFC 6455 §5.2).
const CLOSE: u8 = 0x8;

/// Passes bytes both ways. The end of one direction is passed on, and the other one
/// goes on. Once `end` is cancelled, both ends get a close frame.
///
/// # Errors
/// Why one of the connections broke off.
pub(super) async fn pass<V, B>(visitor: V, backend: B, end: &CancellationToken) -> io::Result<()>
where
    V: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let (from_visitor, to_visitor) = tokio::io::split(visitor);
    let (from_backend, to_backend) = tokio::io::split(backend);
    let both = async {
        tokio::try_join!(
            answer(from_visitor, to_backend, end),
            tell(from_backend, to_visitor, end),
        )
    };
    let too_late = async {
        end.cancelled().await;
        let _ = tokio::time::timeout(CLOSING, std::future::pending::<()>()).await;
    };
    tokio::select! {
        passed = both => passed.map(|_| ()),
        () = too_late => Ok(()),
    }
}

/// From the visitor to the backend. When the tunnel is being ended, the backend gets its
/// close frame, and what the visitor still sends is read up to its answer.
async fn answer<R: AsyncRead, W: AsyncWrite>(
    mut from: ReadHalf<R>,
    mut to: WriteHalf<W>,
    end: &CancellationToken,
) -> io::Result<()> {
    let mut frames = Frames::default();
    if copy(&mut from, &mut to, &mut frames, end).await? == Ended::Here {
        to.write_all(&GOING_AWAY_MASKED).await?;
        let mut buffer = vec![0; BUFFER];
        while !frames.closed {
            match from.read(&mut buffer).await? {
                0 => break,
                read => frames.pass(&buffer[..read]),
            }
        }
    }
    to.shutdown().await
}

/// From the backend to the visitor, who gets a close frame when the tunnel is being ended.
async fn tell<R: AsyncRead, W: AsyncWrite>(
    mut from: ReadHalf<R>,
    mut to: WriteHalf<W>,
    end: &CancellationToken,
) -> io::Result<()> {
    let mut frames = Frames::default();
    if copy(&mut from, &mut to, &mut frames, end).await? == Ended::Here {
        // The connection stays open until the visitor has answered: the other
        // direction waits for that.
        to.write_all(&GOING_AWAY).await?;
        return to.flush().await;
    }
    to.shutdown().await
}

/// How one direction came to its end.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// Its sender has ended it.
    There,
    /// The platform ends the tunnel, and a frame is complete.
    Here,
}

/// Passes bytes on until their sender ends, or until `end` is cancelled and a frame is
/// complete. What came after that frame is lost.
async fn copy<R: AsyncRead, W: AsyncWrite>(
    from: &mut ReadHalf<R>,
    to: &mut WriteHalf<W>,
    frames: &mut Frames,
    end: &CancellationToken,
) -> io::Result<Ended> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = if frames.are_complete() {
            tokio::select! {
                biased;
                () = end.cancelled() => return Ok(Ended::Here),
                read = from.read(&mut buffer) => read?,
            }
        } else {
            from.read(&mut buffer).await?
        };
        if read == 0 {
            return Ok(Ended::There);
        }
        let mut bytes = &buffer[..read];
        if end.is_cancelled() {
            bytes = &bytes[..frames.rest_of_frame(bytes)];
        } else {
            frames.pass(bytes);
        }
        to.write_all(bytes).await?;
        to.flush().await?;
    }
}

/// Where a direction is within its frames.
#[derive(Debug, Default)]
struct Frames {
    /// What is there of the present frame's head.
    head: Vec<u8>,
    /// Bytes of its payload that are still to come.
    payload: u64,
    /// Whether a close frame has passed.
    closed: bool,
}

impl Frames {
    /// Whether no frame is in the middle.
    const fn are_complete(&self) -> bool {
        self.head.is_empty() && self.payload == 0
    }

    /// Follows all of `bytes`.
    fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = &bytes[self.rest_of_frame(bytes)..];
        }
    }

    /// Follows `bytes` to the end of the present frame, at most. Returns how many that
    /// are.
    fn rest_of_frame(&mut self, bytes: &[u8]) -> usize {
        let mut passed = 0;
        while self.payload == 0 && passed < bytes.len() {
            self.head.push(bytes[passed]);
            passed += 1;
            if let Some(payload) = payload_of(&self.head) {
                self.closed |= self.head[0] & 0x0f == CLOSE;
                self.head.clear();
                self.payload = payload;
                if payload == 0 {
                    return passed;
                }
            }
        }
        let left = bytes.len() - passed;
        let taken = usize::try_from(self.payload).map_or(left, |payload| payload.min(left));
        self.payload -= taken as u64;
        passed + taken
    }
}

/// The length of a frame's payload, once its head is complete (RFC 6455 §5.2).
fn payload_of(head: &[u8]) -> Option<u64> {
    let (length, mask) = (head.get(1)? & 0x7f, head.get(1)? & 0x80);
    let extended = match length {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if mask == 0 { 0 } else { 4 };
    if head.len() < 2 + extended + mask {
        return None;
    }
    let bytes = &head[2..2 + extended];
    Some(if extended == 0 {
        u64::from(length)
    } else {
        bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::*;

    /// A tunnel between a visitor and a backend.
    struct Tunnel {
        visitor: DuplexStream,
        backend: DuplexStream,
        end: CancellationToken,
        passing: JoinHandle<io::Result<()>>,
    }

    fn tunnel() -> Tunnel {
        let (visitor, here) = duplex(1 << 16);
        let (backend, there) = duplex(1 << 16);
        let end = CancellationToken::new();
        let ending = end.clone();
        let passing = tokio::spawn(async move { pass(here, there, &ending).await });
        Tunnel {
            visitor,
            backend,
            end,
            passing,
        }
    }

    async fn expect(stream: &mut DuplexStream, bytes: &[u8]) {
        let mut read = vec![0; bytes.len()];
        stream.read_exact(&mut read).await.unwrap();
        assert_eq!(read, bytes);
    }

    /// Frames of a server with all three forms of the length, and one without payload.
    fn frames() -> Vec<Vec<u8>> {
        let frame = |head: &[u8], payload: usize| [head, &vec![7; payload]].concat();
        vec![
            frame(&[0x81, 5], 5),
            frame(&[0x89, 0], 0),
            frame(&[0x82, 126, 1, 0], 256),
            frame(&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0], 65_536),
            frame(&[0x81, 0x80 | 3, 1, 2, 3, 4], 3),
        ]
    }

    #[test]
    fn frames_are_followed_however_they_are_cut() {
        let all: Vec<u8> = frames().concat();
        let ends: Vec<usize> = frames()
            .iter()
            .scan(0, |end, frame| {
                *end += frame.len();
                Some(*end)
            })
            .collect();
        for piece in [1, 2, 3, 7, 1_000, all.len()] {
            let (mut follow, mut at) = (Frames::default(), 0);
            for bytes in all.chunks(piece) {
                follow.pass(bytes);
                at += bytes.len();
                assert_eq!(follow.are_complete(), ends.contains(&at), "{piece}, {at}");
            }
            assert!(!follow.closed);
        }
        let mut follow = Frames::default();
        follow.pass(&GOING_AWAY_MASKED);
        assert!(follow.closed && follow.are_complete());
    }

    #[tokio::test]
    async fn bytes_pass_both_ways_and_the_end_of_one_way_leaves_the_other() {
        let mut tunnel = tunnel();
        tunnel.visitor.write_all(b"any bytes").await.unwrap();
        expect(&mut tunnel.backend, b"any bytes").await;
        tunnel.visitor.shutdown().await.unwrap();
        assert_eq!(tunnel.backend.read(&mut [0; 8]).await.unwrap(), 0);
        tunnel.backend.write_all(&frames()[0]).await.unwrap();
        expect(&mut tunnel.visitor, &frames()[0]).await;
        drop(tunnel.backend);
        assert_eq!(tunnel.visitor.read(&mut [0; 8]).await.unwrap(), 0);
        tunnel.passing.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_that_is_ended_says_so_to_both_ends_between_two_frames() {
        let mut tunnel = tunnel();
        let (message, next) = (&frames()[2], &frames()[0]);
        let (begun, rest) = message.split_at(100);
        tunnel.backend.write_all(begun).await.unwrap();
        expect(&mut tunnel.visitor, begun).await;
        tunnel.end.cancel();
        expect(&mut tunnel.backend, &GOING_AWAY_MASKED).await;
        tunnel.backend.write_all(rest).await.unwrap();
        tunnel.backend.write_all(next).await.unwrap();
        expect(&mut tunnel.visitor, rest).await;
        expect(&mut tunnel.visitor, &GOING_AWAY).await;
        assert!(
            !tunnel.passing.is_finished(),
            "the visitor has not answered"
        );
        tunnel.visitor.write_all(&GOING_AWAY_MASKED).await.unwrap();
        tunnel.passing.await.unwrap().unwrap();
        assert_eq!(tunnel.visitor.read(&mut [0; 8]).await.unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn ends_that_do_not_answer_are_cut_off() {
        let mut tunnel = tunnel();
        tunnel.backend.write_all(&frames()[2][..9]).await.unwrap();
        expect(&mut tunnel.visitor, &frames()[2][..9]).await;
        tunnel.end.cancel();
        tunnel.passing.await.unwrap().unwrap();
        assert_eq!(tunnel.visitor.read(&mut [0; 8]).await.unwrap(), 0);
    }
}
