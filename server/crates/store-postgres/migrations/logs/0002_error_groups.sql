-- Errors with one cause as one group.

-- The record up to which the errors of the environment are grouped, and whether there may be errors
-- after it.
ALTER TABLE log_environments ADD COLUMN grouped_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE log_environments ADD COLUMN ungrouped BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX log_environments_ungrouped ON log_environments (grouped_id) WHERE ungrouped;
-- Those of the records that are kept.
UPDATE log_environments e SET ungrouped = TRUE
WHERE EXISTS (SELECT 1 FROM log_records r WHERE r.environment = e.id AND r.level = 3);

CREATE TABLE log_error_groups (
    environment BIGINT  NOT NULL REFERENCES log_environments (id),
    -- What identifies the cause; zeros for the group of all errors for which there is none.
    fingerprint BYTEA   NOT NULL CHECK (octet_length(fingerprint) = 16),
    state       TEXT    COLLATE "C" NOT NULL CHECK (state IN ('open', 'resolved', 'ignored')),
    first_at    BIGINT  NOT NULL,
    last_at     BIGINT  NOT NULL,
    count       BIGINT  NOT NULL CHECK (count >= 0),
    -- Whether its first error came from a page without a player's token.
    of_stranger BOOLEAN NOT NULL,
    -- A sketch of the players.
    players     BYTEA   NOT NULL,
    -- Type, message and place in lower case.
    search      TEXT    COLLATE "C" NOT NULL,
    -- Everything else, as JSON.
    detail      TEXT    NOT NULL,
    PRIMARY KEY (environment, fingerprint)
);

CREATE INDEX log_error_groups_by_time ON log_error_groups (last_at);

CREATE TABLE log_error_hours (
    environment BIGINT NOT NULL,
    fingerprint BYTEA  NOT NULL CHECK (octet_length(fingerprint) = 16),
    hour        BIGINT NOT NULL CHECK (hour % 3600000 = 0),
    count       BIGINT NOT NULL CHECK (count >= 0),
    PRIMARY KEY (environment, fingerprint, hour)
);

CREATE INDEX log_error_hours_by_hour ON log_error_hours (hour);
