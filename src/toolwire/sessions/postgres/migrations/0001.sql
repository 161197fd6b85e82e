CREATE TABLE workers (
    id text PRIMARY KEY,
    host text NOT NULL,
    pid int NOT NULL,
    version text NOT NULL,
    place text NOT NULL DEFAULT '', -- the boot and the process table in which pid means something
    alive_until timestamptz NOT NULL
);
CREATE TABLE sessions (
    id text PRIMARY KEY,
    project text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    updated timestamptz NOT NULL DEFAULT now(),
    title text NOT NULL DEFAULT '',
    model text NOT NULL DEFAULT '',
    turns int NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    holder text,
    claim text NOT NULL DEFAULT '',
    last_seq bigint NOT NULL DEFAULT 0,
    first_at double precision NOT NULL DEFAULT 0,
    last_at double precision NOT NULL DEFAULT 0,
    facts jsonb NOT NULL DEFAULT '{}',
    keep_until timestamptz
) WITH (fillfactor = 70);
CREATE INDEX sessions_of_project ON sessions (project, last_at DESC);
CREATE INDEX sessions_by_age ON sessions (last_at DESC);
CREATE TABLE records (
    session text NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq bigint NOT NULL,
    at double precision NOT NULL,
    kind text NOT NULL,
    body bytea NOT NULL,
    crc bigint NOT NULL,
    epoch bigint NOT NULL,
    PRIMARY KEY (session, seq)
) PARTITION BY HASH (session);
DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE records_%s PARTITION OF records FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
            part, part
        );
        BEGIN
            EXECUTE format('ALTER TABLE records_%s ALTER body SET COMPRESSION lz4', part);
        EXCEPTION WHEN syntax_error OR feature_not_supported THEN
            NULL; -- servers before 14, or built without lz4, compress in their own way
        END;
    END LOOP;
END $$;
CREATE TABLE batches (
    id text PRIMARY KEY,
    created timestamptz NOT NULL DEFAULT now(),
    spec jsonb NOT NULL DEFAULT '{}',
    facts jsonb NOT NULL DEFAULT '{}',
    epoch bigint NOT NULL DEFAULT 0,
    holder text
);
CREATE TABLE tasks (
    batch text NOT NULL REFERENCES batches ON DELETE CASCADE,
    id text NOT NULL,
    line bigint NOT NULL,
    digest text NOT NULL,
    spec bytea NOT NULL,
    PRIMARY KEY (batch, id)
);
CREATE TABLE runs (
    batch text NOT NULL,
    n bigint NOT NULL,
    id text NOT NULL,
    model text NOT NULL,
    attempt int NOT NULL,
    tries int NOT NULL DEFAULT 0,
    state text NOT NULL DEFAULT 'waiting',
    epoch bigint NOT NULL DEFAULT 0,
    host text NOT NULL DEFAULT '',
    session text,
    cost double precision,
    tokens bigint NOT NULL DEFAULT 0,
    result bytea,
    PRIMARY KEY (batch, n),
    UNIQUE (batch, id, model, attempt),
    FOREIGN KEY (batch, id) REFERENCES tasks ON DELETE CASCADE
) WITH (fillfactor = 70);
CREATE INDEX runs_by_state ON runs (batch, state, n);
CREATE UNLOGGED TABLE limits (
    key text NOT NULL,
    kind text NOT NULL,
    per_minute double precision NOT NULL,
    tokens double precision NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    blocked_until timestamptz,
    PRIMARY KEY (key, kind)
) WITH (fillfactor = 50);
CREATE TABLE commands (
    id bigserial PRIMARY KEY,
    session text NOT NULL REFERENCES sessions ON DELETE CASCADE,
    kind text NOT NULL,
    body bytea NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX commands_of_session ON commands (session, id);
