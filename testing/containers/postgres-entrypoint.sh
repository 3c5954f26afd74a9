#!/bin/bash
# Starts PostgreSQL as the official image does: reads secrets and sets owners as root, and does the
# rest as the user postgres. A server that listens on a socket alone makes the database in an empty
# data directory; the server with an address starts after it.
set -euo pipefail

: "${PGDATA:?}" "${POSTGRES_USER:=postgres}"
: "${POSTGRES_DB:=$POSTGRES_USER}"
export POSTGRES_USER POSTGRES_DB

if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
  if [ -n "${POSTGRES_PASSWORD:-}" ]; then
    echo 'error: POSTGRES_PASSWORD and POSTGRES_PASSWORD_FILE are exclusive' >&2
    exit 1
  fi
  POSTGRES_PASSWORD=$(<"$POSTGRES_PASSWORD_FILE")
  export POSTGRES_PASSWORD
  unset POSTGRES_PASSWORD_FILE
fi

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql
  chmod 700 "$PGDATA"
  chmod 3777 /var/run/postgresql
  find "$PGDATA" /var/run/postgresql \! -user postgres -exec chown postgres '{}' +
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

mkdir -p "$PGDATA"
chmod 700 "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -z "${POSTGRES_PASSWORD:-}" ]; then
    echo 'error: POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE is needed' >&2
    exit 1
  fi
  initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --auth=scram-sha-256 \
    --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") --locale=C --encoding=UTF8
  printf 'host all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
  printf "listen_addresses = '*'\nunix_socket_directories = '/var/run/postgresql'\n" \
    >> "$PGDATA/postgresql.conf"
  export PGPASSWORD="$POSTGRES_PASSWORD"
  pg_ctl -D "$PGDATA" -o "-c listen_addresses='' -p 5432" -w start
  if [ "$POSTGRES_DB" != postgres ]; then
    createdb --username="$POSTGRES_USER" --no-password --maintenance-db=postgres "$POSTGRES_DB"
  fi
  # The time that scripts of a first start take.
  sleep "${POSTGRES_FIRST_START_DELAY:-0}"
  pg_ctl -D "$PGDATA" -m fast -w stop
  unset PGPASSWORD
fi
exec "$@"
