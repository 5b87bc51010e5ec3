-- Figures that other programs' logs state, and runs that were read from such
-- logs instead of from a run folder.

CREATE TABLE figure (
  file          INTEGER NOT NULL REFERENCES event_file ON DELETE CASCADE,
  line          INTEGER NOT NULL,  -- of the event
  name          TEXT NOT NULL,
  value         REAL NOT NULL,
  unit          TEXT NOT NULL,
  at            TEXT NOT NULL,     -- JSON object: what the value is of; {} for the run
  plus_minus    REAL,
  plus_minus_is TEXT NOT NULL,
  reduce        TEXT NOT NULL,     -- '' where the log states it itself
  of            INTEGER NOT NULL,
  note          TEXT NOT NULL,
  source        TEXT NOT NULL,     -- the log
  source_line   INTEGER NOT NULL,  -- 0: not in one line
  PRIMARY KEY (file, line)
) STRICT, WITHOUT ROWID;

-- Where an imported run comes from.
CREATE TABLE import (
  run    INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
  path   TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  part   TEXT NOT NULL,     -- which of the runs in the file
  format TEXT NOT NULL,
  facts  TEXT NOT NULL      -- digest of all that was imported
) STRICT;
CREATE INDEX import_sha256 ON import (sha256, part);

-- What logs state of a run, as they state it. value is in unit, a base unit.
CREATE VIEW figures AS
SELECT r.name AS run, r.study, f.restart, g.name, g.value, nullif(g.unit, '') AS unit, g.at,
       g.plus_minus, nullif(g.plus_minus_is, '') AS plus_minus_is, nullif(g.reduce, '') AS reduce, nullif(g.of, 0) AS of,
       nullif(g.note, '') AS note, g.source, nullif(g.source_line, 0) AS source_line
FROM figure g
JOIN event_file f ON f.id = g.file
JOIN run r ON r.id = f.run;

-- Runs that were imported.
CREATE VIEW imports AS
SELECT r.name AS run, r.study, i.path, i.sha256, i.part, i.format
FROM import i JOIN run r ON r.id = i.run;
