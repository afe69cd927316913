//! A text that is streamed to many readers in pieces. Each piece is compressed once for all of
//! them, and can follow anything that a reader received before.
//!
//! A gzip file (RFC 1952) consists of a head, deflate blocks (RFC 1951), and the checksum and the
//! length of the whole text. A piece that is deflated separately refers to nothing before it, and a
//! flush after it ends at a byte boundary without ending the file. So the same bytes are valid in
//! every reader's file. Only the checksum differs, and it is combined from those of the pieces.
//!
//! The compressed size reveals how similar the parts of a text are, even to somebody who only sees
//! the length. So secrets must never be in the same piece as text from strangers.

use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};
use tokio::sync::OnceCell;

/// The start of a file: deflate, no name, no time, an unknown system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The end of a flush: the length of an empty stored block, and its complement.
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];
/// The last deflate block, which is empty.
const LAST_BLOCK: [u8; 2] = [3, 0];
/// The size in bytes from which compressing a piece would noticeably delay other tasks.
const LARGE: usize = 64 * 1024;

/// A piece of text. Clones share its compressed form.
#[derive(Clone, Debug)]
pub struct SharedChunk {
    plain: Bytes,
    deflated: Arc<OnceCell<Deflated>>,
}

#[derive(Debug)]
struct Deflated {
    blocks: Bytes,
    sum: Crc,
}

impl From<&'static str> for SharedChunk {
    fn from(text: &'static str) -> Self {
        Self::new(Bytes::from_static(text.as_bytes()))
    }
}

impl From<String> for SharedChunk {
    fn from(text: String) -> Self {
        Self::new(text.into())
    }
}

impl SharedChunk {
    fn new(plain: Bytes) -> Self {
        Self {
            plain,
            deflated: Arc::default(),
        }
    }

    /// Returns the uncompressed text.
    #[must_use]
    pub fn plain(&self) -> &Bytes {
        &self.plain
    }

    /// Returns the deflated text. It is deflated once, outside of the server's threads if it is
    /// large; other readers wait for it without delaying anything else.
    async fn deflated(&self) -> &Deflated {
        let deflated = self.deflated.get_or_init(async || {
            if self.plain.len() < LARGE {
                return Deflated::of(&self.plain);
            }
            let plain = self.plain.clone();
            let deflating = tokio::task::spawn_blocking(move || Deflated::of(&plain));
            // This is not reached when the server stops.
            deflating
                .await
                .unwrap_or_else(|_| Deflated::of(&self.plain))
        });
        deflated.await
    }
}

impl Deflated {
    fn of(text: &[u8]) -> Self {
        let mut sum = Crc::new();
        sum.update(text);
        Self {
            blocks: blocks(text).into_boxed_slice().into(),
            sum,
        }
    }
}

/// Deflates a whole text. The blocks end at a byte boundary with the empty block of a flush.
///
/// A flush is complete only when a call leaves space in its output buffer: until then the encoder
/// may hold back both text and the flush itself.
fn blocks(text: &[u8]) -> Vec<u8> {
    let mut encoder = Compress::new(Compression::fast(), false);
    // Incompressible text is stored, with a few additional bytes for every 64 KiB.
    let mut blocks = Vec::with_capacity(text.len() + text.len() / 8 + 1024);
    loop {
        let taken = usize::try_from(encoder.total_in()).unwrap_or(usize::MAX);
        let rest = text.get(taken..).unwrap_or_default();
        let packed = encoder.compress_vec(rest, &mut blocks, FlushCompress::Sync);
        packed.unwrap_or_else(|error| unreachable!("a state that cannot be: {error}"));
        let is_all = encoder.total_in() == text.len() as u64;
        if is_all && blocks.len() < blocks.capacity() && blocks.ends_with(&FLUSHED) {
            return blocks;
        }
        blocks.reserve(FLUSHED.len() + text.len() / 8 + 1024);
    }
}

/// The state of one reader's file.
#[derive(Debug)]
pub struct GzipStream {
    takes_gzip: bool,
    sum: Crc,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    New,
    Begun,
    Ended,
}

impl GzipStream {
    /// Creates an empty gzip file, or an uncompressed stream for a reader that does not accept
    /// gzip.
    #[must_use]
    pub fn new(takes_gzip: bool) -> Self {
        Self {
            takes_gzip,
            sum: Crc::new(),
            step: Step::New,
        }
    }

    /// Returns the next bytes of the file.
    pub async fn pack(&mut self, piece: &SharedChunk) -> Bytes {
        let is_new = std::mem::replace(&mut self.step, Step::Begun) == Step::New;
        if !self.takes_gzip {
            return piece.plain.clone();
        }
        let Deflated { blocks, sum } = piece.deflated().await;
        self.sum.combine(sum);
        if is_new {
            [&HEAD, &**blocks].concat().into()
        } else {
            blocks.clone()
        }
    }

    /// Returns the last bytes of the file, if there are any; `None` when called again.
    pub fn end(&mut self) -> Option<Bytes> {
        let was = std::mem::replace(&mut self.step, Step::Ended);
        if !self.takes_gzip || was != Step::Begun {
            return None;
        }
        let [sum, amount] = [self.sum.sum(), self.sum.amount()].map(u32::to_le_bytes);
        Some([&LAST_BLOCK[..], &sum, &amount].concat().into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::{DeflateDecoder, GzDecoder};

    use super::*;

    fn unpacked(file: &[u8]) -> String {
        let mut text = String::new();
        let mut decoder = GzDecoder::new(file);
        decoder.read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn pieces_make_a_whole_file_for_each_reader_wherever_they_began() {
        // The last one hardly packs, and is longer than the encoder's buffers.
        let pieces: Vec<SharedChunk> = (0..20_u8)
            .map(|number| {
                SharedChunk::from(format!("piece {number} ").repeat(usize::from(number) * 50))
            })
            .chain([noise(150_000).into()])
            .collect();
        for from in [0, 7, 20] {
            let mut packer = GzipStream::new(true);
            let mut file = Vec::new();
            for piece in &pieces[from..] {
                file.extend_from_slice(&packer.pack(piece).await);
            }
            file.extend_from_slice(&packer.end().unwrap());
            assert_eq!(packer.end(), None);
            let plain: Vec<u8> = pieces[from..]
                .iter()
                .flat_map(|one| one.plain().to_vec())
                .collect();
            assert_eq!(unpacked(&file).as_bytes(), plain);
        }
    }

    /// A text that hardly packs.
    fn noise(length: usize) -> String {
        let mut state = 1_u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b' ' + (state >> 24) as u8 % 95)
        });
        noise.take(length).collect()
    }

    #[tokio::test]
    async fn a_piece_is_whole_however_it_fills_the_encoder_s_buffers() {
        let noise = noise(240_000);
        let mut lengths: Vec<usize> = (0..60).map(|step| step * 4_001).collect();
        lengths.extend((0..40).flat_map(|step| [57_900 + step * 97, 116_200 + step * 97]));
        for length in lengths {
            let text = &noise[..length];
            let mut packer = GzipStream::new(true);
            let mut file = packer.pack(&text.to_owned().into()).await.to_vec();
            file.extend_from_slice(&packer.pack(&" and more".into()).await);
            file.extend_from_slice(&packer.end().unwrap());
            assert!(unpacked(&file) == format!("{text} and more"), "{length}");
        }
    }

    #[tokio::test]
    async fn what_was_packed_is_there_at_once_though_the_file_goes_on() {
        let mut packer = GzipStream::new(true);
        let packed = packer.pack(&"one line\n".into()).await;
        let mut text = [0; 9];
        let mut decoder = DeflateDecoder::new(&packed[HEAD.len()..]);
        decoder.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"one line\n");
    }

    #[tokio::test]
    async fn a_piece_is_packed_once_for_all() {
        let piece = SharedChunk::from("a".repeat(100_000));
        let pack = async || {
            let mut packer = GzipStream::new(true);
            packer.pack(&"first".into()).await;
            packer.pack(&piece.clone()).await
        };
        let packed: [Bytes; 2] = tokio::join!(pack(), pack()).into();
        assert_eq!(packed[0].as_ptr(), packed[1].as_ptr());
        assert!(packed[0].len() < 1_000, "{}", packed[0].len());
    }

    #[tokio::test]
    async fn who_takes_no_gzip_gets_the_text() {
        let mut packer = GzipStream::new(false);
        assert_eq!(packer.pack(&"text".into()).await, "text");
        assert_eq!(packer.end(), None);
    }
}
