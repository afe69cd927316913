//! A file that is read in pieces to be stored, outside of the threads that handle requests.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::FileError;

/// The capacity that the memory of a piece begins with: most files are smaller than a piece.
const FIRST: usize = 512 * 1024;

/// A file that is read in pieces of the same size.
pub(super) struct Pieces {
    file: Option<File>,
    size: usize,
}

impl Pieces {
    /// Opens the file; each piece but the last one has `size` bytes.
    pub(super) fn open(path: &Path, size: usize) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| unreadable(path, source))?;
        Ok(Self {
            file: Some(file),
            size,
        })
    }

    /// Returns the next piece; empty at the end.
    pub(super) async fn next(&mut self, path: &Path) -> Result<Bytes, FileError> {
        let Some(file) = self.file.take() else {
            return Ok(Bytes::new());
        };
        let size = self.size;
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(size.min(FIRST));
            let mut limited = file.take(size as u64);
            limited.read_to_end(&mut piece)?;
            Ok((limited.into_inner(), Bytes::from(piece)))
        });
        let (file, piece) = read
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|source| unreadable(path, source))?;
        self.file = Some(file);
        Ok(piece)
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> FileError {
    FileError::Read {
        path: path.display().to_string(),
        source: Arc::new(source),
    }
}
