-- Where the alerts of projects are sent.
CREATE TABLE webhooks (
    project     INTEGER NOT NULL PRIMARY KEY REFERENCES projects (id),
    url         TEXT    NOT NULL,
    -- The key of the signatures, which are made here: a hash would not do.
    secret      TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    -- Set when the receiver said that it is gone.
    off_at      INTEGER,
    -- What came of the last request.
    last_at     INTEGER,
    last_status INTEGER,
    last_error  TEXT
) STRICT;
