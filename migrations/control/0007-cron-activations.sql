-- What operators decided about Crons, by name: a decision holds for every Release that declares the
-- Cron, now and later. A Cron without a row is enabled, at revision 0.

create table cron_activations (
  name text primary key,
  activation text not null check (activation in ('enabled', 'disabled')),
  revision integer not null check (revision > 0),
  changed_at integer not null
) strict, without rowid;
