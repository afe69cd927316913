//! Where a back end keeps a store, and the handles that a case opens there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use platform_store::Store;
use uuid::Uuid;

/// What a case searches in the data as the back end keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needle {
    /// A text.
    Text(String),
    /// An id, in any form.
    Id(Uuid),
    /// A hash.
    Hash([u8; 32]),
}

/// The place of one store: empty at first, removed when it is dropped.
#[async_trait]
pub trait Place: Sync {
    /// Opens the store, the first time or again.
    async fn open(&self) -> Arc<dyn Store>;

    /// Copies the store as it is now, as a backup does, and opens the copy.
    async fn open_copy(&self) -> Arc<dyn Store>;

    /// Searches the data as the back end keeps it, in its files or in every column of every table,
    /// and returns a line for each needle that was found.
    async fn find_raw(&self, needles: &[Needle]) -> Vec<String>;

    /// How many handles a concurrent case opens.
    fn handles(&self) -> usize {
        1
    }
}

/// A place whose concurrent cases open two handles of one store, as two nodes share one database.
#[derive(Debug)]
pub struct TwoHandles<P>(pub P);

#[async_trait]
impl<P: Place> Place for TwoHandles<P> {
    async fn open(&self) -> Arc<dyn Store> {
        self.0.open().await
    }

    async fn open_copy(&self) -> Arc<dyn Store> {
        self.0.open_copy().await
    }

    async fn find_raw(&self, needles: &[Needle]) -> Vec<String> {
        self.0.find_raw(needles).await
    }

    fn handles(&self) -> usize {
        2
    }
}

/// All handles of a place, used in turn.
#[derive(Debug)]
pub struct Handles {
    stores: Vec<Arc<dyn Store>>,
    turn: AtomicUsize,
}

impl Handles {
    /// Opens as many handles as the place wants, at least one.
    pub async fn open(place: &dyn Place) -> Self {
        let mut stores = vec![place.open().await];
        while stores.len() < place.handles() {
            stores.push(place.open().await);
        }
        Self {
            stores,
            turn: AtomicUsize::new(0),
        }
    }

    /// Returns the next handle.
    #[must_use]
    pub fn next(&self) -> Arc<dyn Store> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.stores[turn % self.stores.len()])
    }
}
