-- How projects are listed on the public page. A project without a row is not listed, and its page's
-- metadata is shown.
CREATE TABLE listings (
    project     INTEGER PRIMARY KEY REFERENCES projects (id),
    -- When the game was listed; NULL if it is not.
    listed_at   INTEGER,
    title       TEXT,
    description TEXT,
    author      TEXT,
    -- A list of texts.
    tags        TEXT,
    cover       TEXT
) STRICT;

-- Until now, every game in production was on the public page.
INSERT INTO listings (project, listed_at)
SELECT p.id, d.created_at
FROM projects p
JOIN current_deployments c ON c.project = p.id AND c.environment = 'prod'
JOIN deployments d ON d.id = c.deployment
WHERE p.removed_at IS NULL;
