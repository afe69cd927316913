//! The gzip stream of an archive, unzipped within limits.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use platform_checks::limits::MAX_BYTES;

/// How many times as large as itself an archive may become. Games are made of
/// pictures and sounds, which were compressed before.
pub(super) const MAX_RATIO: u64 = 100;
/// Up to here the ratio does not matter.
const FREE_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of the tar file, at most: its files, and room for what is said of
/// each.
const MAX_UNZIPPED: u64 = MAX_BYTES + 128 * 1024 * 1024;
/// Bytes of a block of a tar file.
pub(super) const BLOCK: u64 = 512;
/// Bytes that are read at one time.
const PIECE: usize = 64 * 1024;

/// What went wrong in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// It is no gzip, or its checksum is wrong.
    Gzip,
    /// It ends in the middle.
    CutOff,
    /// It was packed too well.
    Ratio,
    /// It became too large.
    TooLarge,
}

/// What has been seen of the stream, for who holds it no more.
#[derive(Debug, Default)]
pub(super) struct Watch {
    fault: Cell<Option<Fault>>,
    zeros: Cell<u64>,
    ended: Cell<bool>,
}

impl Watch {
    /// What went wrong, if anything did.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault.get()
    }

    /// Zeros that the stream ended with so far: a tar file ends with them.
    pub(super) fn zeros(&self) -> u64 {
        self.zeros.get()
    }

    /// Whether the stream has been read to its end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.get()
    }
}

/// The unzipped stream, with its limits.
pub(super) struct Unzipped<R> {
    stream: MultiGzDecoder<BufReader<R>>,
    /// Bytes that may still come.
    left: u64,
    /// What it is if more come.
    beyond: Fault,
    watch: Rc<Watch>,
}

impl<R: Read> Unzipped<R> {
    /// Unzips an archive of `length` bytes.
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
