-- What a webhook is told about.
ALTER TABLE webhooks ADD COLUMN wants_errors INTEGER NOT NULL DEFAULT 1 CHECK (wants_errors IN (0, 1));
ALTER TABLE webhooks ADD COLUMN wants_players INTEGER NOT NULL DEFAULT 0 CHECK (wants_players IN (0, 1));

-- Events about players that webhooks are told, also for a while after they were.
CREATE TABLE player_events (
    -- Never used again: receivers recognise a repetition by it.
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    project      INTEGER NOT NULL REFERENCES projects (id),
    -- What it says, as JSON.
    data         TEXT    NOT NULL,
    made_at      INTEGER NOT NULL,
    -- How often sending has failed, and when to try next; NULL if it is settled.
    tries        INTEGER NOT NULL DEFAULT 0,
    next_at      INTEGER,
    delivered_at INTEGER,
    -- What came of the last request.
    last_at      INTEGER,
    last_status  INTEGER,
    last_error   TEXT
) STRICT;

CREATE INDEX player_events_by_time ON player_events (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX player_events_of_project ON player_events (project, id);
CREATE INDEX player_events_by_age ON player_events (made_at);
