-- For finding the sessions that ended while a token of theirs may live.
CREATE INDEX sessions_by_end ON sessions (ended_at) WHERE ended_at IS NOT NULL;
