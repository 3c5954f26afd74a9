/** The steps that bring PostgreSQL, a role and a database to this machine. */
import type { Cluster } from './cluster.ts'
import { unsupported } from './faults.ts'
import { findHomebrewCluster, homebrewInstallation, homebrewStart } from './homebrew.ts'
import { USER } from './locations.ts'
import type { Machine } from './machine.ts'
import { asUser, OLDEST_VERSION, PGDG_VERSION, type Platform } from './platforms.ts'
import { command, type Step, waitUntil } from './steps.ts'

const PORT = 5432
const SOCKETS = '/var/run/postgresql'
const APT = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-y'] as const
/** Another package manager may run, such as the one of unattended upgrades. */
const APT_LOCK = ['-o', 'DPkg::Lock::Timeout=300'] as const
const PGDG_SCRIPT = '/usr/share/postgresql-common/pgdg/apt.postgresql.org.sh'

const REPOSITORY =
  'Check that this machine reaches the package servers, and what the output above says.'

/** Finds the cluster to use. Throws SERVER_SETUP_UNSUPPORTED where all are older than 16. */
export async function findCluster(machine: Machine, platform: Platform): Promise<Cluster> {
  if (platform.family === 'macos') return await findHomebrewCluster(machine, PGDG_VERSION)
  const usual: Cluster = {
    existing: null,
    port: PORT,
    socketDirectory: platform.family === 'alpine' ? '/run/postgresql' : SOCKETS,
    superuser: 'postgres',
    programs: '',
    options: [],
    homebrew: null,
    notes: [],
  }
  const found =
    platform.family === 'debian' ? await debianClusters(machine) : dataDirectories(machine)
  if (found.length === 0) {
    if (!(await machine.isListening(PORT))) return usual
    throw unsupported(
      `Another program listens at port ${PORT}, which PostgreSQL needs. If it is PostgreSQL in a ` +
        'container, name its database: --database-url-file FILE',
    )
  }
  const usable = found.filter(({ version }) => version >= OLDEST_VERSION)
  const best = usable.find(({ port }) => port === PORT) ?? usable[0]
  if (best === undefined) {
    const versions = found.map(({ version, name }) => `${version} (${name})`).join(', ')
    throw unsupported(
      `This machine has PostgreSQL ${versions}, and svc needs 16 or newer. Upgrade the cluster ` +
        'with pg_upgrade or pg_upgradecluster, remove it if nothing uses it, or name another ' +
        'database: --database-url-file FILE',
    )
  }
  const { version, name, port } = best
  return { ...usual, existing: { version, name }, port }
}

interface FoundCluster {
  readonly version: number
  readonly name: string
  readonly port: number
}

async function debianClusters(machine: Machine): Promise<FoundCluster[]> {
  const text = (await machine.ask(['pg_lsclusters', '--no-header'])) ?? ''
  return text.split('\n').flatMap((line) => {
    const [, version, name, port] = /^([0-9]+)(?:\.[0-9]+)? +(\S+) +([0-9]+) /.exec(line) ?? []
    if (name === undefined) return []
    return [{ version: Number(version), name, port: Number(port) }]
  })
}

/** Fedora has one data directory, and Alpine one for each version. */
function dataDirectories(machine: Machine): FoundCluster[] {
  const versions = Array.from({ length: 30 }, (_, i) => `/var/lib/postgresql/${40 - i}/data`)
  return ['/var/lib/pgsql/data', ...versions].flatMap((path) => {
    const version = machine.read(`${path}/PG_VERSION`)
    return version === null ? [] : [{ version: Number(version.trim()), name: path, port: PORT }]
  })
}

export interface DatabaseNames {
  /** The role, which is the service user: PostgreSQL then needs no password of it. */
  readonly role: string
  readonly database: string
}

/** Returns the URL that connects through the socket as the operating system's user. */
export function socketUrl(cluster: Cluster, { role, database }: DatabaseNames): string {
  const [user, host, name] = [role, cluster.socketDirectory, database].map(encodeURIComponent)
  return `postgres://${user}@${host}:${cluster.port}/${name}`
}

/** Recognizes the URL of a setup: a socket, the role of the service and no password. */
export function isOwnUrl(url: string): boolean {
  return url.startsWith(`postgres://${USER}@%2F`)
}

export function postgresSteps(
  machine: Machine,
  platform: Platform,
  cluster: Cluster,
  names: DatabaseNames,
): Step[] {
  const psql = new Psql(machine, platform, cluster)
  return [
    ...(cluster.existing === null ? installation(machine, platform, cluster) : []),
    start(platform, cluster, psql),
    ...databaseSteps(psql, names),
  ]
}

function installation(machine: Machine, platform: Platform, { homebrew }: Cluster): Step[] {
  if (homebrew !== null) return homebrewInstallation(machine, platform, homebrew)
  const isDone = async (): Promise<boolean> =>
    machine.hasProgram('psql') && (await findCluster(machine, platform)).existing !== null
  const version = platform.packaged
  if (version === null && !platform.hasPgdg) {
    throw unsupported(
      `${platform.name} has no packages of PostgreSQL ${OLDEST_VERSION} or newer. Install it, ` +
        'create a database, and give its URL in a file: --database-url-file FILE',
    )
  }
  if (platform.family === 'debian') {
    const install = (name: string) =>
      command(...APT, ...APT_LOCK, 'install', '--no-install-recommends', name)
    const update = command(...APT, ...APT_LOCK, 'update')
    if (version !== null) {
      const title = `Install PostgreSQL ${version} from the packages of ${platform.name}`
      return [{ title, isDone, actions: [update, install('postgresql')], ifItFails: REPOSITORY }]
    }
    const unreachable =
      `${platform.name} itself has no PostgreSQL ${OLDEST_VERSION} or newer, so the machine must ` +
      'reach https://apt.postgresql.org. Otherwise use another database: --database-url-file FILE.'
    return [
      {
        title: 'Add the package repository of the PostgreSQL project',
        isDone: async () => PGDG_SOURCES.some((path) => machine.state(path) !== null),
        actions: [
          update,
          install('ca-certificates'),
          install('postgresql-common'),
          command(PGDG_SCRIPT, '-y'),
        ],
        ifItFails: unreachable,
      },
      {
        title: `Install PostgreSQL ${PGDG_VERSION} from the PostgreSQL project`,
        isDone,
        // Without the option, apt-get reports a repository that it cannot reach as a success.
        actions: [
          command(...APT, ...APT_LOCK, '-o', 'APT::Update::Error-Mode=any', 'update'),
          install(`postgresql-${PGDG_VERSION}`),
        ],
        ifItFails: unreachable,
      },
    ]
  }
  if (platform.family === 'fedora') {
    return [
      {
        title: `Install PostgreSQL from the packages of ${platform.name}`,
        isDone: async () => machine.hasProgram('postgresql-setup'),
        actions: [command('dnf', '--assumeyes', 'install', 'postgresql-server')],
        ifItFails: REPOSITORY,
      },
      {
        title: 'Create the cluster of PostgreSQL',
        isDone,
        actions: [command('postgresql-setup', '--initdb')],
        ifItFails: 'Read /var/lib/pgsql/initdb_postgresql.log.',
      },
    ]
  }
  return [
    {
      title: `Install PostgreSQL ${version} from the packages of ${platform.name}`,
      // The service creates the cluster at its first start.
      isDone: async () => machine.hasProgram('psql'),
      actions: [command('apk', 'add', `postgresql${version}`, `postgresql${version}-client`)],
      ifItFails: REPOSITORY,
    },
  ]
}

/** The script that Debian ships writes one of these, by its version. */
const PGDG_SOURCES = ['sources', 'list'].map((end) => `/etc/apt/sources.list.d/pgdg.${end}`)

function start(platform: Platform, cluster: Cluster, psql: Psql): Step {
  const { existing, homebrew } = cluster
  const wait = waitUntil(`PostgreSQL ${OLDEST_VERSION} or newer answers at its socket`, () =>
    psql.answers(),
  )
  const actions = {
    systemd: [command('systemctl', 'enable', '--now', 'postgresql')],
    openrc: [
      command('rc-update', 'add', 'postgresql', 'default'),
      command('rc-service', 'postgresql', 'start'),
    ],
    'offline systemd': [command('/etc/init.d/postgresql', 'start')],
    launchd: homebrew === null ? [] : homebrewStart(homebrew),
    none: [command('/etc/init.d/postgresql', 'start')],
  }[platform.serviceManager]
  const own =
    platform.family === 'debian' && existing !== null
      ? [command('pg_ctlcluster', String(existing.version), existing.name, 'start')]
      : actions
  return {
    title: 'Start PostgreSQL',
    isDone: () => psql.answers(),
    actions: [...own, wait],
    ifItFails:
      homebrew === null
        ? 'Read the log of PostgreSQL, which is below /var/log/postgresql or shown by ' +
          '`journalctl --unit "postgresql*"`.'
        : `Read the end of ${homebrew.prefix}/var/log/${homebrew.formula}.log.`,
  }
}

function databaseSteps(psql: Psql, { role, database }: DatabaseNames): Step[] {
  const [roleName, databaseName] = [identifier(role), identifier(database)]
  const named = `from pg_database where datname = ${literal(database)}`
  const ifItFails = 'Read what PostgreSQL says above; `svc docs operations` has the rights needed.'
  return [
    {
      title: `Create the role ${role}, which may log in and nothing else`,
      isDone: () =>
        psql.isTrue(`select rolcanlogin from pg_roles where rolname = ${literal(role)}`),
      actions: [
        psql.statement(
          `create role ${roleName} login nosuperuser nocreatedb nocreaterole noreplication`,
        ),
      ],
      ifItFails,
    },
    {
      title: `Create the database ${database}`,
      isDone: async () => {
        const owner = await psql.ask(`select pg_get_userbyid(datdba) ${named}`)
        if (owner !== null && owner !== '' && owner !== role) {
          throw unsupported(
            `PostgreSQL has a database ${JSON.stringify(database)} of another role. Choose a ` +
              'different name: --database NAME',
          )
        }
        return owner === role
      },
      actions: [
        psql.statement(
          `create database ${databaseName} owner ${roleName} template template0 ` +
            "encoding 'UTF8' lc_collate 'C' lc_ctype 'C'",
        ),
      ],
      ifItFails,
    },
    {
      title: `Close the database ${database} to other roles`,
      isDone: () =>
        psql.isTrue(`select not has_database_privilege('public', oid, 'connect') ${named}`),
      actions: [psql.statement(`revoke all on database ${databaseName} from public`)],
      ifItFails,
    },
  ]
}

/** Returns the words that call a program of PostgreSQL as the superuser of a cluster. */
export function asSuperuser(
  platform: Platform,
  { superuser, programs, options, port }: Cluster,
  program: string,
): string[] {
  return [...asUser(platform, superuser), `${programs}${program}`, ...options, `--port=${port}`]
}

const PSQL = [
  '--no-psqlrc',
  '--no-password',
  '--quiet',
  '--no-align',
  '--tuples-only',
  '--set=ON_ERROR_STOP=1',
] as const

/** Statements of the superuser, who connects through the socket. */
class Psql {
  readonly #machine: Machine
  readonly #argv: readonly string[]

  constructor(machine: Machine, platform: Platform, cluster: Cluster) {
    this.#machine = machine
    this.#argv = [...asSuperuser(platform, cluster, 'psql'), ...PSQL, '--dbname=postgres']
  }

  statement(sql: string): ReturnType<typeof command> {
    return command(...this.#argv, `--command=${sql}`)
  }

  ask(sql: string): Promise<string | null> {
    return this.#machine.ask([...this.#argv, `--command=${sql}`])
  }

  async isTrue(sql: string): Promise<boolean> {
    return (await this.ask(sql)) === 't'
  }

  answers(): Promise<boolean> {
    return this.isTrue(
      `select current_setting('server_version_num')::int >= ${OLDEST_VERSION}0000 ` +
        'and not pg_is_in_recovery()',
    )
  }
}

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Escapes backslashes too, which the setting standard_conforming_strings = off would read. */
export function literal(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
  return text.includes('\\') ? `E${quoted}` : quoted
}
