-- How many errors and warnings each deployment had in each hour, counted as
-- they are written: no question about them reads the records themselves.
CREATE TABLE log_error_counts (
    environment INTEGER NOT NULL REFERENCES log_environments (id),
    -- Milliseconds since the Unix epoch, by the time of receipt.
    hour        INTEGER NOT NULL CHECK (hour % 3600000 = 0),
    -- Empty where nothing was deployed.
    deployment  BLOB    NOT NULL CHECK (length(deployment) IN (0, 16)),
    errors      INTEGER NOT NULL CHECK (errors >= 0),
    warnings    INTEGER NOT NULL CHECK (warnings >= 0),
    -- When the last of them was received.
    last_at     INTEGER NOT NULL,
    PRIMARY KEY (environment, hour, deployment)
) STRICT, WITHOUT ROWID;

-- Those of the records that are kept.
INSERT INTO log_error_counts (environment, hour, deployment, errors, warnings, last_at)
SELECT environment, (id >> 20) - (id >> 20) % 3600000, coalesce(deployment, X''),
    sum(CASE level WHEN 3 THEN count ELSE 0 END), sum(CASE level WHEN 2 THEN count ELSE 0 END),
    max(id >> 20)
FROM log_records WHERE level IN (2, 3)
GROUP BY 1, 2, 3;
