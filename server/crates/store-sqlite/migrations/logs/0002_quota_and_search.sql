-- How much room each project's records take, and finding those of one player.

-- What a record counts for: its texts, and what a row and its places in the
-- indexes take beside them, in bytes. Records never change, so that taking one
-- away takes away just what adding it added.
CREATE VIEW log_record_sizes AS
    SELECT id, environment,
        160 + octet_length(message) + coalesce(octet_length(stack), 0)
            + coalesce(octet_length(url), 0) + coalesce(octet_length(metadata), 0) AS bytes
    -- A range of ids is read in their order, whatever else is asked for.
    FROM log_records NOT INDEXED;

-- Of all records of the environment that there are.
ALTER TABLE log_environments ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE log_environments SET bytes = counted.bytes
FROM (SELECT environment, sum(bytes) AS bytes FROM log_record_sizes GROUP BY environment) AS counted
WHERE counted.environment = log_environments.id;

-- As the index of environments is: the newest of a player and level are one
-- range of it.
CREATE INDEX log_records_of_player ON log_records (environment, player, level)
    WHERE player IS NOT NULL;
