-- In which browser a session is, in our own words ("Firefox on Linux"), by which
-- its player knows it again. Null until the browser is seen.
ALTER TABLE sessions ADD COLUMN browser TEXT;
