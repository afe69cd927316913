//! Decompresses the gzip stream of an archive, within limits.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use platform_checks::limits::MAX_BYTES;

/// The maximum ratio of unpacked to packed size. Games consist of images and sounds, which are
/// already compressed.
pub(super) const MAX_RATIO: u64 = 100;
/// Below this size the ratio does not matter.
const FREE_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum size of the tar file in bytes: its files, and their headers.
const MAX_UNZIPPED: u64 = MAX_BYTES + 128 * 1024 * 1024;
/// The block size of a tar file in bytes.
pub(super) const BLOCK: u64 = 512;
/// The number of bytes per read.
const PIECE: usize = 64 * 1024;

/// An error in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// It is not gzip, or its checksum is wrong.
    Gzip,
    /// It is incomplete.
    CutOff,
    /// Its compression ratio is too high.
    Ratio,
    /// It is too large.
    TooLarge,
}

/// The state of the stream, for code that does not own the stream any more.
#[derive(Debug, Default)]
pub(super) struct Watch {
    fault: Cell<Option<Fault>>,
    zeros: Cell<u64>,
    ended: Cell<bool>,
}

impl Watch {
    /// Returns the error, if there is one.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault.get()
    }

    /// Returns the number of zeros at the end of the stream so far: a tar file ends with zeros.
    pub(super) fn zeros(&self) -> u64 {
        self.zeros.get()
    }

    /// Whether the stream has been read to its end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.get()
    }
}

/// The decompressed stream, with its limits.
pub(super) struct Unzipped<R> {
    stream: MultiGzDecoder<BufReader<R>>,
    /// The number of bytes that may still follow.
    left: u64,
    /// The error if there are more.
    beyond: Fault,
    watch: Rc<Watch>,
}

impl<R: Read> Unzipped<R> {
    /// Decompresses an archive of `length` bytes.
    pub(super) fn new(archive: R, length: u64) -> (Self, Rc<Watch>) {
        let by_ratio = length.saturating_mul(MAX_RATIO).max(FREE_BYTES);
        let watch = Rc::new(Watch::default());
        let stream = Self {
            stream: MultiGzDecoder::new(BufReader::with_capacity(PIECE, archive)),
            left: by_ratio.min(MAX_UNZIPPED),
            beyond: if by_ratio < MAX_UNZIPPED {
                Fault::Ratio
            } else {
                Fault::TooLarge
            },
            watch: Rc::clone(&watch),
        };
        (stream, watch)
    }

    fn fail(&self, fault: Fault) -> io::Error {
        self.watch.fault.set(Some(fault));
        io::Error::other("the archive was refused")
    }
}

impl<R: Read> Read for Unzipped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer).map_err(|error| {
            self.fail(match error.kind() {
                io::ErrorKind::UnexpectedEof => Fault::CutOff,
                _ => Fault::Gzip,
            })
        })?;
        if read == 0 && !buffer.is_empty() {
            self.watch.ended.set(true);
        }
        let Some(left) = self.left.checked_sub(read as u64) else {
            return Err(self.fail(self.beyond));
        };
        self.left = left;
        let zeros = buffer[..read]
            .iter()
            .rev()
            .take_while(|byte| **byte == 0)
            .count();
        let before = if zeros == read {
            self.watch.zeros.get()
        } else {
            0
        };
        self.watch.zeros.set(before + zeros as u64);
        Ok(read)
    }
}
