//! A file that is read in pieces to be stored, outside of the threads that handle requests.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::FileError;

/// A file that is read in pieces of the same size.
pub(super) struct Pieces {
    file: Option<File>,
    size: usize,
    /// How many bytes are left, so that a piece takes no more memory than it needs.
    left: u64,
}

impl Pieces {
    /// Opens the file; each piece but the last one has `size` bytes.
    pub(super) fn open(path: &Path, size: usize) -> Result<Self, FileError> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (left, file) = opened.map_err(|source| unreadable(path, source))?;
        Ok(Self {
            file: Some(file),
            size,
            left,
        })
    }

    /// Returns how many bytes the next piece has, unless the file changes.
    pub(super) fn next_size(&self) -> usize {
        usize::try_from(self.left).map_or(self.size, |left| left.min(self.size))
    }

    /// Returns the next piece; empty at the end.
    pub(super) async fn next(&mut self, path: &Path) -> Result<Bytes, FileError> {
        let Some(file) = self.file.take() else {
            return Ok(Bytes::new());
        };
        let size = self.size;
        let capacity = self.next_size();
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(capacity);
            let mut limited = file.take(size as u64);
            limited.read_to_end(&mut piece)?;
            Ok((limited.into_inner(), Bytes::from(piece)))
        });
        let (file, piece) = read
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|source| unreadable(path, source))?;
        self.file = Some(file);
        self.left = self.left.saturating_sub(piece.len() as u64);
        Ok(piece)
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> FileError {
    FileError::Read {
        path: path.display().to_string(),
        source: Arc::new(source),
    }
}
