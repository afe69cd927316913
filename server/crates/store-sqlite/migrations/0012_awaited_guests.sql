-- Guests whose cookie has not come back yet: the game that asked for each.
-- They count as held by no address, and their rows are swept after minutes.

ALTER TABLE players ADD COLUMN awaiting TEXT;

CREATE INDEX awaited_guests ON players (address, awaiting, created_at)
    WHERE awaiting IS NOT NULL;
CREATE INDEX awaited_guests_by_age ON players (created_at) WHERE awaiting IS NOT NULL;
