-- Alerts about groups of errors that are still to be sent to the project's webhook.
CREATE TABLE log_error_alerts (
    -- Never used again: receivers recognise a repetition by it.
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    environment INTEGER NOT NULL REFERENCES log_environments (id),
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 16),
    reason      TEXT    NOT NULL CHECK (reason IN ('new', 'regressed', 'growing')),
    made_at     INTEGER NOT NULL,
    -- How often sending has failed, and when to try next.
    tries       INTEGER NOT NULL DEFAULT 0,
    next_at     INTEGER NOT NULL,
    -- What it says, as JSON.
    detail      TEXT    NOT NULL
) STRICT;

CREATE INDEX log_error_alerts_by_time ON log_error_alerts (next_at);
CREATE INDEX log_error_alerts_of_environment ON log_error_alerts (environment);

-- How many alerts the environment has had in an hour, and how many were left out since the last one.
ALTER TABLE log_environments ADD COLUMN alert_hour INTEGER NOT NULL DEFAULT 0;
ALTER TABLE log_environments ADD COLUMN alerts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE log_environments ADD COLUMN alerts_left_out INTEGER NOT NULL DEFAULT 0;
