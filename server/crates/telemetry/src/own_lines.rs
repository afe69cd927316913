//! Which log lines are sent: the server's own, but those about single requests, which have the host and
//! the path that a visitor chose.

use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Hands those lines to another layer, which needs nothing but events.
#[derive(Debug)]
pub(crate) struct OwnLines<L>(pub(crate) L);

impl<S: Subscriber, L: Layer<S>> Layer<S> for OwnLines<L> {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if is_sent(event.metadata()) {
            self.0.on_event(event, context);
        }
    }
}

fn is_sent(line: &Metadata<'_>) -> bool {
    let fields = line.fields();
    line.target().starts_with("platform_")
        && fields.field("host").is_none()
        && fields.field("path").is_none()
}
