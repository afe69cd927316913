//! Copies rows from one store into another, and compares both.

use futures_util::TryStreamExt as _;
use sha2::{Digest as _, Sha256};

use super::MoveError;
use super::progress::Progress;
use crate::store::StoreError;
use crate::store::tables::{PARTS, Part};
use crate::store::transfer::{RowSource, RowTarget};

/// Returns the number of all rows.
pub(super) async fn count(source: &dyn RowSource) -> Result<u64, StoreError> {
    let mut rows = 0;
    for part in PARTS {
        rows += source.count(part).await?;
    }
    Ok(rows)
}

/// Copies the rows that the target does not have yet.
pub(super) async fn copy(
    source: &dyn RowSource,
    target: &dyn RowTarget,
    progress: &mut Progress<'_>,
) -> Result<(), MoveError> {
    let mut begun = Vec::new();
    for part in PARTS {
        let moved = target.moved(part).await?;
        progress.skip(moved.rows);
        begun.push((part, moved));
    }
    let mut copied = 0;
    for (part, mut moved) in begun {
        let mut batches = source.read(part, moved.last.clone()).await?;
        while let Some(rows) = batches.try_next().await? {
            let count = rows.len() as u64;
            moved = target.add(part, &moved, rows).await?;
            copied += count;
            progress.advance(count, part.name);
        }
    }
    progress.end(&format!("{copied} rows"));
    Ok(())
}

/// The number of rows of a part, and the hash of all of them in the order of their keys.
type Content = (u64, [u8; 32]);

/// Compares every row of the target with the source. Returns the number of rows.
pub(super) async fn compare(
    source: &dyn RowSource,
    target: &dyn RowTarget,
    progress: &Progress<'_>,
) -> Result<u64, MoveError> {
    let mut rows = 0;
    for part in PARTS {
        let (from, to) = futures_util::try_join!(
            content(source, part, Some(progress)),
            content(target, part, None)
        )?;
        if from != to {
            return Err(MoveError::Differs {
                part: part.name,
                source_rows: from.0,
                target_rows: to.0,
            });
        }
        rows += from.0;
    }
    progress.end(&format!("{rows} rows are the same"));
    Ok(rows)
}

async fn content<S: RowSource + ?Sized>(
    store: &S,
    part: &'static Part,
    progress: Option<&Progress<'_>>,
) -> Result<Content, StoreError> {
    let (mut rows, mut hash, mut bytes) = (0, Sha256::new(), Vec::new());
    let mut batches = store.read(part, None).await?;
    while let Some(batch) = batches.try_next().await? {
        for value in batch.iter().flatten() {
            value.encode(&mut bytes);
        }
        hash.update(&bytes);
        bytes.clear();
        rows += batch.len() as u64;
        if let Some(progress) = progress {
            progress.advance(batch.len() as u64, part.name);
        }
    }
    Ok((rows, hash.finalize().into()))
}
