-- Players who asked to be deleted: when they did, and when it happens unless they take it back.
ALTER TABLE players ADD COLUMN deletion_asked_at INTEGER;
ALTER TABLE players ADD COLUMN deletion_at INTEGER CHECK ((deletion_at IS NULL) = (deletion_asked_at IS NULL));

CREATE INDEX deleted_players ON players (deletion_at) WHERE deletion_at IS NOT NULL;

-- What a player deployed or created is found when the player goes.
CREATE INDEX deployments_of_player ON deployments (deployed_by) WHERE deployed_by IS NOT NULL;
