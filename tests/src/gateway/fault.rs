//! What the gateway does to a request in place of passing it on.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use crate::poll;

/// What happens to a request in place of being passed on.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The connection ends without an answer.
    Drop,
    /// This is the answer.
    Answer {
        /// Its status.
        status: u16,
        /// Its headers.
        headers: Vec<(&'static str, String)>,
        /// Its body.
        body: Vec<u8>,
    },
    /// This is answered over and over, for as long as anybody takes it, to pages
    /// of every origin.
    Endless(&'static [u8]),
    /// It waits at the gate, and is passed on when the gate opens.
    Hold(Arc<Gate>),
}

/// Holds requests until it is opened.
#[derive(Debug)]
pub struct Gate {
    open: Semaphore,
    waiting: watch::Sender<usize>,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn closed() -> Arc<Self> {
        Arc::new(Self {
            open: Semaphore::new(0),
            waiting: watch::Sender::new(0),
        })
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.open.close();
    }

    /// Waits until `count` requests have come to the gate.
    pub async fn reached_by(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let reached = waiting.wait_for(|seen| *seen >= count);
        poll::within("requests at the gate", reached)
            .await
            .expect("the gate is there");
    }

    pub(super) async fn pass(&self) {
        self.waiting.send_modify(|count| *count += 1);
        // Answers an error exactly when the gate has been opened.
        let _ = self.open.acquire().await;
    }
}
