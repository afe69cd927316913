//! The runtime in the page.
