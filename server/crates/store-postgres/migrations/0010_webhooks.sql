-- Where the alerts of projects are sent.
CREATE TABLE webhooks (
    project     BIGINT NOT NULL PRIMARY KEY REFERENCES projects (id),
    url         TEXT   NOT NULL,
    -- The key of the signatures, which are made here: a hash would not do.
    secret      TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    -- Set when the receiver said that it is gone.
    off_at      BIGINT,
    -- What came of the last request.
    last_at     BIGINT,
    last_status SMALLINT,
    last_error  TEXT
);
