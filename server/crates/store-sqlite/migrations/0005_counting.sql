-- Players over time, who was there, and how long they played.

-- How many played in each minute, and again in each hour. No row where nobody
-- did.
CREATE TABLE player_counts (
    project       INTEGER NOT NULL REFERENCES projects (id),
    environment   TEXT    NOT NULL CHECK (environment IN ('dev', 'prod')),
    -- Milliseconds that a row stands for: a minute or an hour.
    span          INTEGER NOT NULL CHECK (span IN (60000, 3600000)),
    start         INTEGER NOT NULL CHECK (start % span = 0),
    -- The most at one time.
    peak          INTEGER NOT NULL CHECK (peak > 0),
    -- What all of them played together, in milliseconds.
    player_millis INTEGER NOT NULL CHECK (player_millis >= 0),
    PRIMARY KEY (project, environment, span, start)
) STRICT, WITHOUT ROWID;

-- The minutes of all games, for removing old ones.
CREATE INDEX player_counts_by_start ON player_counts (span, start);

-- Distinct players of a day (2026-11-21) and of a month (2026-11), in UTC.
CREATE TABLE distinct_players (
    project     INTEGER NOT NULL REFERENCES projects (id),
    environment TEXT    NOT NULL CHECK (environment IN ('dev', 'prod')),
    period      TEXT    NOT NULL CHECK (length(period) IN (7, 10)),
    players     INTEGER NOT NULL CHECK (players >= 0),
    -- The HyperLogLog sketch that the number is of; gone once the period is over.
    sketch      BLOB,
    PRIMARY KEY (project, environment, period)
) STRICT, WITHOUT ROWID;

-- How long each player played in each hour, kept for a day.
CREATE TABLE play_times (
    hour        INTEGER NOT NULL CHECK (hour % 3600000 = 0),
    project     INTEGER NOT NULL REFERENCES projects (id),
    environment TEXT    NOT NULL CHECK (environment IN ('dev', 'prod')),
    player      BLOB    NOT NULL CHECK (length(player) = 16),
    millis      INTEGER NOT NULL CHECK (millis > 0),
    PRIMARY KEY (hour, project, environment, player)
) STRICT, WITHOUT ROWID;
