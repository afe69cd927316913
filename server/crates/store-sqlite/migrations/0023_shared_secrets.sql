-- Secrets that all servers of one store have in common, by what they are for.
CREATE TABLE shared_secrets (
    name   TEXT NOT NULL PRIMARY KEY,
    secret BLOB NOT NULL CHECK (length(secret) = 32)
) STRICT, WITHOUT ROWID;
