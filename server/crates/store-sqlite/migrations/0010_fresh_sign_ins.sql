-- How fresh a sign-in is, for what asks for a fresh one.

-- When the session's player proved to be it; null for guests.
ALTER TABLE sessions ADD COLUMN authenticated_at INTEGER;
-- Whether the provider has to ask the player, whomever it remembers.
ALTER TABLE pending_sign_ins ADD COLUMN again INTEGER NOT NULL DEFAULT 0 CHECK (again IN (0, 1));
