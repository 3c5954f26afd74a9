/** Checks of the PostgreSQL databases, the same for identity and for documents. */
import { check, failed, listed, notRead, ok, seconds, skipped, warning } from '../check.ts'
import type {
  PeppersReading,
  PostgresReading,
  PostgresVersion,
  Reading,
  Readings,
  SchemaReading,
} from '../readings.ts'

const VERSION_MIN = 160_000
const CLOCK_MILLIS_GOOD = 2_000
const CLOCK_MILLIS_MAX = 60_000
/** PostgreSQL stops accepting writes three million transactions before 2,147,483,648. */
const AGE_GOOD = 1_000_000_000
const AGE_MAX = 2_000_000_000
const TRANSACTION_SECONDS_GOOD = 3_600

interface Of {
  readonly label: 'identity' | 'documents'
  readonly variable: string
  readonly version: (readings: Readings) => Reading<PostgresVersion>
  readonly database: (readings: Readings) => Reading<PostgresReading>
  readonly schema: (readings: Readings) => Reading<SchemaReading>
}

const IDENTITY: Of = {
  label: 'identity',
  variable: 'SERVICE_IDENTITY_DATABASE_URL',
  version: ({ identityVersion }) => identityVersion,
  database: ({ identity }) => identity,
  schema: ({ identitySchema }) => identitySchema,
}
const DOCUMENTS: Of = {
  label: 'documents',
  variable: 'SERVICE_PLATFORM_DATABASE_URL',
  version: ({ documentVersion }) => documentVersion,
  database: ({ documentDatabase }) => documentDatabase,
  schema: ({ documentSchema }) => documentSchema,
}

export const POSTGRES_CHECKS = [
  ...checksOf(IDENTITY),
  ...checksOf(DOCUMENTS),
  check({
    name: 'documents-database-binding',
    why:
      'The database belongs to another Environment, or is not the one of this root: the server ' +
      'does not start on it.',
    repair: 'svc-server check',
    reads: ({ documentBinding }) => documentBinding,
    unread: failed,
    judge: () => ok('the database is that of this root'),
  }),
  pepper('identity-pepper', ({ identityPepper }) => identityPepper, {
    why:
      'With another pepper no session and no invitation is valid, and the server does not ' +
      'start.',
    repair: 'svc docs operators',
  }),
  pepper('subject-peppers', ({ subjectPeppers }) => subjectPeppers, {
    why: 'With another subject pepper no identity link resolves, and the server does not start.',
    repair: 'svc docs operators',
  }),
  check({
    name: 'owner',
    why:
      'Nobody can manage the installation before the first-owner code was used, or once every ' +
      'owner is disabled.',
    repair: 'svc-server recover-owner',
    reads: ({ owners }) => owners,
    unread: notRead,
    judge: ({ owners }) =>
      owners > 0 ? ok(`${owners} enabled owners`) : warning('there is no enabled owner'),
  }),
]

function pepper(
  name: string,
  reads: (readings: Readings) => Reading<PeppersReading>,
  texts: { readonly why: string; readonly repair: string },
) {
  return check({
    name,
    ...texts,
    reads,
    unread: notRead,
    judge: ({ changed, checked }) => {
      if (changed.length > 0) return failed(`another pepper than recorded: ${listed(changed)}`)
      return checked === 0
        ? skipped('none is recorded yet')
        : ok(`${checked} check values are those that the database records`)
    },
  })
}

function checksOf(of: Of) {
  return [...settingChecks(of), ...accessChecks(of), ...stateChecks(of)]
}

function naming({ label }: Of): (topic: string) => string {
  return (topic) => `${label}-database-${topic}`
}

/** Checks of what PostgreSQL is and is set to. */
function settingChecks(of: Of) {
  const { variable, version, database } = of
  const named = naming(of)
  return [
    check({
      name: named('version'),
      why: 'The server does not start without PostgreSQL 16 or newer that it can reach.',
      repair: `psql "$${variable}"`,
      reads: version,
      judge: ({ number, text }) =>
        number < VERSION_MIN
          ? failed(`PostgreSQL ${text} is older than 16`)
          : ok(`PostgreSQL ${text}`),
    }),
    check({
      name: named('durability'),
      why: 'PostgreSQL confirms commits that a crash loses; the server does not start with it.',
      repair: 'psql -c "alter system reset fsync"',
      reads: database,
      unread: notRead,
      judge: ({ fsync, fullPageWrites, synchronousCommit }) => {
        const settings = {
          fsync,
          full_page_writes: fullPageWrites,
          synchronous_commit: synchronousCommit,
        }
        const off = Object.entries(settings).find(([, value]) => value === 'off')?.[0]
        return off === undefined
          ? ok(
              Object.entries(settings)
                .map((pair) => pair.join(' = '))
                .join(', '),
            )
          : failed(
              `${off} = off`,
              `psql -c "alter system reset ${off}" -c "select pg_reload_conf()"`,
            )
      },
    }),
    check({
      name: named('encoding'),
      why: 'Names and documents are Unicode; another encoding rejects some characters.',
      repair: 'createdb --encoding=UTF8 --template=template0 NAME',
      reads: database,
      unread: notRead,
      judge: ({ encoding }) =>
        encoding === 'UTF8' ? ok(encoding) : failed(`the database is encoded in ${encoding}`),
    }),
    check({
      name: named('writable'),
      why: 'A standby or a read-only database accepts no changes.',
      repair: 'psql -c "select pg_promote()"',
      reads: database,
      unread: notRead,
      judge: ({ isStandby, isReadOnly }) => {
        if (isStandby) return failed('PostgreSQL is a standby')
        return isReadOnly
          ? warning(
              'default_transaction_read_only is on, which the server overrides',
              'psql -c "alter system reset default_transaction_read_only"',
            )
          : ok('the primary, and writable')
      },
    }),
  ]
}

/** Checks of connections. */
function accessChecks(of: Of) {
  const { variable, database } = of
  const named = naming(of)
  return [
    check({
      name: named('connections'),
      why: 'Without a free connection requests are 503, and a restarted server does not start.',
      repair: 'psql -c "alter system set max_connections = NUMBER"',
      reads: database,
      unread: notRead,
      judge: ({ connectionsMax, connectionsUsed, connectionsOwn, connectionsWanted }) => {
        const free = connectionsMax - connectionsUsed
        const seen =
          `${connectionsUsed} of ${connectionsMax} are used, ${connectionsOwn} by servers of ` +
          `this product; this one opens up to ${connectionsWanted}`
        const more = connectionsMax + connectionsWanted
        const command = `psql -c "alter system set max_connections = ${more}"`
        if (free <= 0) return failed(seen, command)
        return free + connectionsOwn < connectionsWanted ? warning(seen, command) : ok(seen)
      },
    }),
    check({
      name: named('encryption'),
      why:
        'A reader of the network between server and database reads documents and digests, and ' +
        'can change statements.',
      repair: `add ?sslmode=verify-full to ${variable}`,
      reads: database,
      unread: notRead,
      judge: ({ isEncrypted, isLocal }) => {
        if (isEncrypted) return ok('the connection has TLS')
        return isLocal
          ? ok('the database is on this machine')
          : warning('the database is on another machine, and the connection has no TLS')
      },
    }),
    check({
      name: named('sessions'),
      why:
        'A pooler that lends sessions to each transaction mixes settings and locks of ' +
        'connections; the server does not start behind it.',
      repair: 'pool_mode = session',
      reads: database,
      unread: notRead,
      judge: ({ sharedSessions }) =>
        sharedSessions === null ? ok('each connection keeps its session') : failed(sharedSessions),
    }),
  ]
}

/** Checks of what PostgreSQL stores. */
function stateChecks(of: Of) {
  const { database, schema } = of
  const named = naming(of)
  return [
    check({
      name: named('collation'),
      why:
        'After an update of the C library or of ICU, indexes over texts may be in another ' +
        'order: rows are not found, and unique indexes accept duplicates.',
      repair: 'psql -c "reindex database NAME" -c "alter database NAME refresh collation version"',
      reads: database,
      unread: notRead,
      judge: ({ collationRecorded, collationActual, databaseName }) => {
        if (collationRecorded === collationActual || collationRecorded === null) {
          return ok(collationActual ?? 'a collation without versions')
        }
        const name = `\\"${databaseName.replaceAll('"', '""')}\\"`
        return warning(
          `the database has ${collationRecorded}, the system ${collationActual ?? 'none'}`,
          `psql -c "reindex database ${name}" -c "alter database ${name} refresh collation ` +
            'version"',
        )
      },
    }),
    check({
      name: named('schema'),
      why: 'This version can neither start nor migrate with a schema that is newer or not its own.',
      repair: 'svc-server migrate',
      reads: schema,
      unread: notRead,
      judge: judgeSchema,
    }),
    check({
      name: named('transaction-age'),
      why:
        'PostgreSQL stops accepting writes when transaction IDs run out, if vacuum cannot ' +
        'freeze rows in time.',
      repair: 'vacuumdb --freeze NAME',
      reads: database,
      unread: notRead,
      judge: ({ transactionAge, databaseName }) => {
        const seen = `${transactionAge} transactions since the oldest row that is not frozen`
        const command = `vacuumdb --freeze ${databaseName}`
        if (transactionAge > AGE_MAX) return failed(seen, command)
        return transactionAge > AGE_GOOD ? warning(seen, command) : ok(seen)
      },
    }),
    check({
      name: named('old-transactions'),
      why:
        'An old transaction, a prepared one or an unused replication slot keeps removed rows ' +
        'and the log, until the disk is full.',
      repair: 'psql -c "select pid, xact_start from pg_stat_activity where xact_start is not null"',
      reads: database,
      unread: notRead,
      judge: ({ oldestTransactionSeconds, preparedTransactions, idleSlots }) => {
        if (preparedTransactions > 0) {
          const seen = `${preparedTransactions} prepared transactions`
          return warning(seen, 'psql -c "select gid, prepared from pg_prepared_xacts"')
        }
        if (idleSlots > 0) {
          const command = 'psql -c "select slot_name from pg_replication_slots where not active"'
          return warning(`${idleSlots} replication slots that nothing reads`, command)
        }
        const seen = `the oldest transaction is ${seconds(oldestTransactionSeconds * 1000)} old`
        return oldestTransactionSeconds > TRANSACTION_SECONDS_GOOD ? warning(seen) : ok(seen)
      },
    }),
    check({
      name: named('clock'),
      why:
        'Times of both are compared by people and by retention: clocks that differ make ' +
        'changes look early or late.',
      repair: 'timedatectl set-ntp true',
      reads: database,
      unread: notRead,
      judge: ({ clockAheadMillis }) => {
        const difference = Math.abs(clockAheadMillis)
        const direction = clockAheadMillis > 0 ? 'ahead of' : 'behind'
        const seen = `the clock of the database is ${seconds(difference)} ${direction} this one`
        if (difference > CLOCK_MILLIS_MAX) return failed(seen)
        return difference > CLOCK_MILLIS_GOOD ? warning(seen) : ok(seen)
      },
    }),
  ]
}

/** Judges a schema of either kind of database. */
export function judgeSchema({ version, known, defect }: SchemaReading) {
  if (defect !== null) {
    return failed(defect, 'install the version of svc-server that wrote the database')
  }
  if (version === 0) return ok('empty: the next start creates the schema')
  return version === known
    ? ok(`schema version ${known}`)
    : warning(`schema version ${version}, and the next start migrates it to ${known}`)
}
