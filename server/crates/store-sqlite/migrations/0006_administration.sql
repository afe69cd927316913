-- Administrators, and who did what the log of security events tells of.

CREATE TABLE admins (
    player     BLOB    NOT NULL PRIMARY KEY REFERENCES players (id),
    granted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who did it; null is the player whom it happened to, or the platform itself.
ALTER TABLE audit_events ADD COLUMN actor TEXT CHECK (actor IN ('operator', 'admin'));
-- Which administrator.
ALTER TABLE audit_events ADD COLUMN admin BLOB CHECK ((admin IS NULL) = (actor IS NOT 'admin'));
-- Until now nobody else could.
UPDATE audit_events SET actor = 'operator' WHERE kind IN ('suspended', 'unsuspended');

-- What an administrator did.
CREATE INDEX audit_events_of_admin ON audit_events (admin, id) WHERE admin IS NOT NULL;
