//! What the gateway can do to a request instead of forwarding it.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use crate::poll;

/// What happens to a request instead of being forwarded.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The connection is closed without a response.
    Drop,
    /// The gateway sends this response.
    Answer {
        /// Its status.
        status: u16,
        /// Its headers.
        headers: Vec<(&'static str, String)>,
        /// Its body.
        body: Vec<u8>,
    },
    /// The gateway sends this text repeatedly, as long as the client reads, to pages of every
    /// origin.
    Endless(&'static [u8]),
    /// The request waits at the gate, and is forwarded when the gate opens.
    Hold(Arc<Gate>),
}

/// Holds requests until it is opened.
#[derive(Debug)]
pub struct Gate {
    open: Semaphore,
    waiting: watch::Sender<usize>,
}

impl Gate {
    /// Creates a closed gate.
    #[must_use]
    pub fn closed() -> Arc<Self> {
        Arc::new(Self {
            open: Semaphore::new(0),
            waiting: watch::Sender::new(0),
        })
    }

    /// Lets all requests through from now on.
    pub fn open(&self) {
        self.open.close();
    }

    /// Waits until `count` requests have arrived at the gate.
    pub async fn reached_by(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        let reached = waiting.wait_for(|seen| *seen >= count);
        poll::within("requests at the gate", reached)
            .await
            .expect("the gate is there");
    }

    pub(super) async fn pass(&self) {
        self.waiting.send_modify(|count| *count += 1);
        // Returns an error exactly when the gate has been opened.
        let _ = self.open.acquire().await;
    }
}
