-- The servers that share the database, what changed for them, and who does what only one must do.

-- The newest version of any topic. Whoever changes something holds the row until the commit, so
-- versions become visible in their order.
CREATE TABLE change_counter (
    id   SMALLINT PRIMARY KEY CHECK (id = 1),
    last BIGINT   NOT NULL
);
INSERT INTO change_counter (id, last) VALUES (1, 0);

CREATE TABLE changes (
    topic   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
);
CREATE INDEX changes_by_version ON changes (version);

-- Times are those of the database's clock.
CREATE TABLE nodes (
    id           UUID   NOT NULL CONSTRAINT nodes_id PRIMARY KEY,
    address      TEXT   NOT NULL,
    program      TEXT   NOT NULL,
    -- The settings that must be the same on every node, as JSON.
    settings     TEXT   NOT NULL,
    started_at   BIGINT NOT NULL,
    seen_at      BIGINT NOT NULL,
    -- The newest version that the node has applied.
    applied      BIGINT NOT NULL,
    clock_offset BIGINT,
    -- What works less well on it, with commas in between.
    degraded     TEXT   NOT NULL
);

CREATE TABLE leases (
    name   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder UUID   NOT NULL,
    until  BIGINT NOT NULL
);
CREATE INDEX leases_of_holder ON leases (holder);

-- The games by their players, computed by one node and shown by all.
CREATE TABLE ranking (
    position BIGINT NOT NULL PRIMARY KEY,
    slug     TEXT   COLLATE "C" NOT NULL,
    players  BIGINT NOT NULL
);
INSERT INTO locks (name) VALUES ('ranking');
