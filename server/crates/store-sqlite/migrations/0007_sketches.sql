-- The few sketches among the numbers of all days that ever were: they are read
-- at every start, and looked for whenever old minutes are removed.
CREATE INDEX distinct_players_with_sketch ON distinct_players (period) WHERE sketch IS NOT NULL;
