-- What the deploy found in the files of a deployment, as JSON. Null if an older version of the
-- program made the deployment and its files were not inspected since.
ALTER TABLE deployments ADD COLUMN inspection TEXT
    CHECK (inspection IS NULL OR json_valid(inspection));
