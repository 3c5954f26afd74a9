-- Segments can be in the S3-compatible store, and are removed after a retention of their own.

-- Name of the file or the object. It has a part of the digest, so that no segment replaces another.
alter table log_segments add column name text not null default '';
update log_segments set name = printf('%010d.jsonl.zst', number);

-- Where the bytes are; 'none' once they were removed.
alter table log_segments add column place text not null default 'root'
  check (place in ('root', 's3', 'none'));

-- 1 once the retention is over. The newest removed segment stays as a row: the chain of the
-- segments that are left starts after its digest.
alter table log_segments add column removed integer not null default 0 check (removed in (0, 1));
