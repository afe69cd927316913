-- Records without a player's token are anybody's, and must not push out those
-- with one: how much room they take, and finding the oldest of them.

DROP VIEW log_record_sizes;
CREATE VIEW log_record_sizes AS
    SELECT id, environment, player IS NULL AS is_strangers,
        160 + octet_length(message) + coalesce(octet_length(stack), 0)
            + coalesce(octet_length(url), 0) + coalesce(octet_length(metadata), 0) AS bytes
    -- A range of ids is read in their order, whatever else is asked for.
    FROM log_records NOT INDEXED;

-- Of all records of the environment without a player.
ALTER TABLE log_environments ADD COLUMN strangers_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE log_environments SET strangers_bytes = counted.bytes
FROM (
    SELECT environment, sum(bytes) AS bytes FROM log_record_sizes
    WHERE is_strangers GROUP BY environment
) AS counted
WHERE counted.environment = log_environments.id;

-- Every entry ends with the row's id, so the oldest of an environment are the
-- beginning of one range of it.
CREATE INDEX log_records_of_strangers ON log_records (environment) WHERE player IS NULL;
