-- The events of one kind, and those that somebody else than the player caused,
-- newest first: the few of them are not looked for among all.
CREATE INDEX audit_events_of_kind ON audit_events (kind);
CREATE INDEX audit_events_of_actor ON audit_events (actor) WHERE actor IS NOT NULL;
