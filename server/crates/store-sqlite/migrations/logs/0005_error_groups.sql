-- Errors with one cause as one group.

-- The record up to which the errors of the environment are grouped, and whether there may be errors
-- after it.
ALTER TABLE log_environments ADD COLUMN grouped_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE log_environments ADD COLUMN ungrouped INTEGER NOT NULL DEFAULT 0
    CHECK (ungrouped IN (0, 1));
CREATE INDEX log_environments_ungrouped ON log_environments (grouped_id) WHERE ungrouped = 1;
-- Those of the records that are kept.
UPDATE log_environments SET ungrouped = 1
WHERE EXISTS (SELECT 1 FROM log_records r WHERE r.environment = log_environments.id AND r.level = 3);

CREATE TABLE log_error_groups (
    environment INTEGER NOT NULL REFERENCES log_environments (id),
    -- What identifies the cause; zeros for the group of all errors for which there is none.
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    state       TEXT    NOT NULL CHECK (state IN ('open', 'resolved', 'ignored')),
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    count       INTEGER NOT NULL CHECK (count >= 0),
    -- Whether its first error came from a page without a player's token.
    of_stranger INTEGER NOT NULL CHECK (of_stranger IN (0, 1)),
    -- A sketch of the players.
    players     BLOB    NOT NULL,
    -- Type, message and place in lower case.
    search      TEXT    NOT NULL,
    -- Everything else, as JSON.
    detail      TEXT    NOT NULL,
    PRIMARY KEY (environment, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE INDEX log_error_groups_by_time ON log_error_groups (last_at);

CREATE TABLE log_error_hours (
    environment INTEGER NOT NULL,
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    hour        INTEGER NOT NULL CHECK (hour % 3600000 = 0),
    count       INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (environment, fingerprint, hour)
) STRICT, WITHOUT ROWID;

CREATE INDEX log_error_hours_by_hour ON log_error_hours (hour);
