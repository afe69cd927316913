//! What may be lost: presence, limits, streams. In memory for one node.
