-- What a run ran on, by which runs are held comparable, and the commit that it
-- was made at. Runs of before get theirs with their next result.

-- An object, keys sorted, or null: a fact that is not in it is not known, one
-- that is '' does not bear on the run.
ALTER TABLE result ADD COLUMN fingerprint TEXT NOT NULL DEFAULT 'null';
ALTER TABLE result ADD COLUMN git_commit TEXT NOT NULL DEFAULT '';  -- '' when not recorded
CREATE INDEX result_commit ON result (git_commit);

DROP VIEW runs;
CREATE VIEW runs AS
SELECT r.name AS run, r.study, s.label AS series, r.point, r.repeat, r.attempt, r.kind,
       r.framework, r.workers, r.nodes, r.status, r.detail,
       r.created, r.ingested, r.dir,
       j.cluster, j.id AS job, j.partition, j.state AS job_state, j.reason AS job_reason,
       j.exit_code, j.submitted, j.started, j.ended,
       x.world, x.restart, x.steps, x.warmup_steps, x.samples, x.epochs,
       x.throughput, x.throughput_why, x.end_to_end, x.train_seconds, x.init_seconds,
       x.step_p50, x.step_p95, x.step_p99, x.skew,
       x.data_wait, x.compute, x.communication, x.final_accuracy, x.warnings, x.algorithm,
       r.id, nullif(x.git_commit, '') AS git_commit
FROM run r
LEFT JOIN series s ON s.id = r.series  -- always there; LEFT keeps run the outer loop, newest first
LEFT JOIN job j ON j.run = r.id
LEFT JOIN result x ON x.run = r.id;

-- One row a run and known fact of its fingerprint.
CREATE VIEW fingerprints AS
SELECT r.name AS run, r.study, f.key AS field, f.value
FROM run r
JOIN result x ON x.run = r.id
JOIN json_each(x.fingerprint) f
WHERE f.value <> '';
