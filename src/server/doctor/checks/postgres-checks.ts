/** Checks of the PostgreSQL databases, the same for identity and for documents. */
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import { check, counted, failed, listed, notRead, ok, seconds, skipped, warning } from '../check.ts'
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

const PRIMARY = 'select sender_host, sender_port from pg_stat_wal_receiver'
const OPEN_TRANSACTIONS =
  'select pid, usename, xact_start from pg_stat_activity where xact_start is not null'
const IDLE_SLOTS = 'select slot_name from pg_replication_slots where not active'

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
    repair: 'svc docs backup',
    reads: ({ documentBinding }) => documentBinding,
    unread: failed,
    evaluate: () => ok('the database is that of this root'),
  }),
  pepper('identity-pepper', ({ identityPepper }) => identityPepper, {
    why:
      'With another pepper no session and no invitation is valid, and the server does not ' +
      'start.',
    repair: 'svc docs backup',
  }),
  pepper('subject-peppers', ({ subjectPeppers }) => subjectPeppers, {
    why: 'With another subject pepper no identity link resolves, and the server does not start.',
    repair: 'svc docs backup',
  }),
  check({
    name: 'owner',
    why:
      'Nobody can manage the installation before the first-owner code is used, or once every ' +
      'owner is disabled.',
    repair: 'svc-server recover-owner',
    reads: ({ owners }) => owners,
    unread: notRead,
    evaluate: ({ owners, isClaimed }) => {
      if (owners > 0) return ok(counted(owners, 'enabled owner'))
      return isClaimed
        ? warning('there is no enabled owner')
        : warning('the first-owner code was not used yet', 'svc login --url URL --code-env VAR')
    },
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
    evaluate: ({ changed, checked }) => {
      if (changed.length > 0) return failed(`another pepper than recorded: ${listed(changed)}`)
      return checked === 0
        ? skipped('the database records none yet')
        : ok(`${counted(checked, 'pepper')} as the database records`)
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
  const { version, database } = of
  const named = naming(of)
  return [
    check({
      name: named('version'),
      why: 'The server does not start without PostgreSQL 16 or newer that it can reach.',
      repair: 'pg_isready -h HOST -p PORT',
      reads: version,
      evaluate: ({ number, text }) =>
        number < VERSION_MIN
          ? failed(`PostgreSQL ${text} is older than 16`, 'pg_upgrade --help')
          : ok(`PostgreSQL ${text}`),
    }),
    check({
      name: named('durability'),
      why: 'PostgreSQL confirms commits that a crash loses; the server does not start with it.',
      repair: psql('alter system reset NAME', 'select pg_reload_conf()'),
      reads: database,
      unread: notRead,
      evaluate: ({ fsync, fullPageWrites, synchronousCommit, ...at }) => {
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
              psqlAt(at, `alter system reset ${off}`, 'select pg_reload_conf()'),
            )
      },
    }),
    check({
      name: named('encoding'),
      why: 'Names and documents are Unicode; another encoding rejects some characters.',
      repair: 'createdb -h HOST -p PORT --encoding=UTF8 --template=template0 NAME',
      reads: database,
      unread: notRead,
      evaluate: ({ encoding, host, port, databaseName }) =>
        encoding === 'UTF8'
          ? ok(encoding)
          : failed(
              `the database is encoded in ${encoding}`,
              `createdb -h ${host} -p ${port} --encoding=UTF8 --template=template0 ` +
                shellQuoted(`${databaseName}_utf8`),
            ),
    }),
    check({
      name: named('writable'),
      why: 'A standby or a read-only database accepts no changes.',
      repair: psql(PRIMARY),
      reads: database,
      unread: notRead,
      evaluate: ({ isStandby, isReadOnly, ...at }) => {
        if (isStandby) return failed('this is a standby; name the primary', psqlAt(at, PRIMARY))
        return isReadOnly
          ? warning(
              'default_transaction_read_only is on, which the server overrides',
              psqlAt(
                at,
                'alter system reset default_transaction_read_only',
                'select pg_reload_conf()',
              ),
            )
          : ok('this is the primary, and it can be written')
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
      repair: psql('alter system set max_connections = NUMBER'),
      reads: database,
      unread: notRead,
      evaluate: ({ connectionsMax, connectionsUsed, connectionsOwn, connectionsWanted, ...at }) => {
        const free = connectionsMax - connectionsUsed
        const seen =
          `${connectionsUsed} of ${connectionsMax} are used, ${connectionsOwn} by servers of ` +
          `this product; this one opens up to ${connectionsWanted}`
        const more = connectionsMax + connectionsWanted
        const command = psqlAt(at, `alter system set max_connections = ${more}`)
        if (free <= 0) return failed(seen, command)
        return free + connectionsOwn < connectionsWanted ? warning(seen, command) : ok(seen)
      },
    }),
    check({
      name: named('encryption'),
      why:
        'A reader of the network between server and database reads documents and digests, and ' +
        'can change statements.',
      repair: `export ${variable}='postgres://USER@HOST:PORT/NAME?sslmode=verify-full'`,
      reads: database,
      unread: notRead,
      evaluate: ({ isEncrypted, isLocal, host, port, databaseName }) => {
        if (isEncrypted) return ok('the connection has TLS')
        return isLocal
          ? ok('the database is on this machine')
          : warning(
              'the database is on another machine, and the connection has no TLS',
              `export ${variable}='postgres://USER@${host}:${port}/` +
                `${encodeURIComponent(databaseName)}?sslmode=verify-full'`,
            )
      },
    }),
    check({
      name: named('sessions'),
      why:
        'A pooler that lends sessions to each transaction mixes settings and locks of ' +
        'connections; the server does not start behind it.',
      repair: 'svc docs operations',
      reads: database,
      unread: notRead,
      evaluate: ({ sharedSessions }) =>
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
      repair: psql('reindex database NAME', 'alter database NAME refresh collation version'),
      reads: database,
      unread: notRead,
      evaluate: ({ collationRecorded, collationActual, ...at }) => {
        if (collationRecorded === collationActual || collationRecorded === null) {
          return ok(collationActual ?? 'a collation without versions')
        }
        const name = `"${at.databaseName.replaceAll('"', '""')}"`
        return warning(
          `the database has ${collationRecorded}, the system ${collationActual ?? 'none'}`,
          psqlAt(
            at,
            `reindex database ${name}`,
            `alter database ${name} refresh collation version`,
          ),
        )
      },
    }),
    check({
      name: named('schema'),
      why: 'This version can neither start nor migrate with a schema that is newer or not its own.',
      repair: 'svc-server migrate',
      reads: schema,
      unread: notRead,
      evaluate: evaluateSchema,
    }),
    check({
      name: named('transaction-age'),
      why:
        'PostgreSQL stops accepting writes when transaction IDs run out, if vacuum cannot ' +
        'freeze rows in time.',
      repair: 'vacuumdb -h HOST -p PORT --freeze NAME',
      reads: database,
      unread: notRead,
      evaluate: ({ transactionAge, host, port, databaseName }) => {
        const seen =
          `${counted(transactionAge, 'transaction')} since the oldest row that is not frozen, of ` +
          '2,147,483,648'
        const command = `vacuumdb -h ${host} -p ${port} --freeze ${shellQuoted(databaseName)}`
        if (transactionAge > AGE_MAX) return failed(seen, command)
        return transactionAge > AGE_GOOD ? warning(seen, command) : ok(seen)
      },
    }),
    oldTransactions(of),
    check({
      name: named('clock'),
      why:
        'Times of both are compared by people and by retention: clocks that differ make ' +
        'changes look early or late.',
      repair: 'timedatectl set-ntp true',
      reads: database,
      unread: notRead,
      evaluate: ({ clockAheadMillis }) => {
        const difference = Math.abs(clockAheadMillis)
        const direction = clockAheadMillis > 0 ? 'ahead of' : 'behind'
        const seen = `the clock of the database is ${seconds(difference)} ${direction} this one`
        if (difference > CLOCK_MILLIS_MAX) return failed(seen)
        return difference > CLOCK_MILLIS_GOOD ? warning(seen) : ok(seen)
      },
    }),
  ]
}

/** Warns of what keeps PostgreSQL from removing old rows and its log. */
function oldTransactions(of: Of) {
  const { database } = of
  const named = naming(of)
  return check({
    name: named('old-transactions'),
    why:
      'An old transaction, a prepared one or an unused replication slot keeps removed rows ' +
      'and the log, until the disk is full.',
    repair: psql(OPEN_TRANSACTIONS),
    reads: database,
    unread: notRead,
    evaluate: ({ oldestTransactionSeconds, preparedTransactions, idleSlots, ...at }) => {
      if (preparedTransactions > 0) {
        const seen = counted(preparedTransactions, 'prepared transaction')
        return warning(seen, psqlAt(at, 'select gid, prepared from pg_prepared_xacts'))
      }
      if (idleSlots > 0) {
        const seen = `${counted(idleSlots, 'replication slot')} that nothing reads`
        return warning(seen, psqlAt(at, IDLE_SLOTS))
      }
      const seen = `the oldest transaction is ${seconds(oldestTransactionSeconds * 1000)} old`
      return oldestTransactionSeconds > TRANSACTION_SECONDS_GOOD
        ? warning(seen, psqlAt(at, OPEN_TRANSACTIONS))
        : ok(seen)
    },
  })
}

/** Evaluates a schema of either kind of database. */
export function evaluateSchema({ version, known, defect }: SchemaReading) {
  if (defect !== null) {
    return failed(`${defect}: use the svc-server that wrote it`, 'svc docs backup')
  }
  if (version === 0) return ok('empty: the next start creates the schema')
  if (version === known) return ok(`schema version ${known}`)
  return version !== null && version > known
    ? ok(`schema version ${version} of a newer svc-server, which lets this one use it`)
    : warning(`schema version ${version}, and the next start migrates it to ${known}`)
}

/** Returns the command that runs statements; no password is in it. */
function psqlAt(
  { host, port, databaseName }: Pick<PostgresReading, 'host' | 'port' | 'databaseName'>,
  ...statements: readonly string[]
): string {
  const runs = statements.map((statement) => ` -c ${shellQuoted(statement)}`).join('')
  return `psql -h ${host} -p ${port} -d ${shellQuoted(databaseName)}${runs}`
}

function psql(...statements: readonly string[]): string {
  return `psql -h HOST -p PORT -d NAME${statements.map((each) => ` -c "${each}"`).join('')}`
}
