/**
 * PostgreSQL of Homebrew. `brew` does not run as root, except for its services: the commands that
 * install and ask PostgreSQL run as the owner of Homebrew, who is the superuser of the cluster too.
 *
 * Source: Formula/p/postgresql@18.rb of Homebrew/homebrew-core (keg_only, paths of data and log,
 * initdb afterwards) and Library/Homebrew/services/cli.rb of Homebrew/brew.
 */
import type { Cluster, Homebrew } from './cluster.ts'
import { unsupported } from './faults.ts'
import type { Machine } from './machine.ts'
import { asUser, OLDEST_VERSION, type Platform } from './platforms.ts'
import { type Action, command, type Step } from './steps.ts'

/** Homebrew is in the first one on Apple silicon, and in the second one on Intel. */
const PREFIXES = ['/opt/homebrew', '/usr/local']
/** The directory of sockets that PostgreSQL has compiled in. */
const SOCKETS = '/tmp'
const PORT = 5432
const NEWEST_VERSION = 40
const ELSEWHERE = 'or name the database of another PostgreSQL: --database-url-file FILE'
const PROXIES = 'http_proxy,https_proxy,all_proxy,no_proxy'

/** Throws SERVER_SETUP_UNSUPPORTED. */
export async function findHomebrewCluster(machine: Machine, packaged: number): Promise<Cluster> {
  const { prefix, owner } = await findHomebrew(machine)
  const clusters = clustersOf(machine, prefix)
  const usable = clusters.filter(({ version }) => version >= OLDEST_VERSION)
  // Several versions exist side by side, and each has the port 5432 until it is changed.
  const best =
    usable.find(({ formula }) => startsWithMachine(machine, formula)) ??
    usable.find(({ isRunning }) => isRunning) ??
    usable[0]
  if (best === undefined && clusters.length > 0) {
    const names = clusters.map(({ formula }) => formula).join(', ')
    throw unsupported(
      `Homebrew has ${names}, and svc needs ${OLDEST_VERSION} or newer. Upgrade the cluster with ` +
        `pg_upgrade, uninstall it if nothing uses it, ${ELSEWHERE}`,
    )
  }
  const { formula, port, isRunning } = best ?? {
    formula: `postgresql@${packaged}`,
    port: PORT,
    isRunning: false,
  }
  if (!isRunning && (await machine.isListening(port))) {
    throw unsupported(
      `Another program listens at port ${port}, which ${formula} needs. Stop it, ${ELSEWHERE}`,
    )
  }
  return {
    existing: best === undefined ? null : { version: best.version, name: formula },
    port,
    socketDirectory: SOCKETS,
    superuser: owner,
    programs: `${prefix}/opt/${formula}/bin/`,
    options: [`--host=${SOCKETS}`],
    homebrew: { prefix, owner, formula },
    notes: notesOf(machine, best),
  }
}

async function findHomebrew(machine: Machine): Promise<Omit<Homebrew, 'formula'>> {
  const prefix = PREFIXES.find((each) => machine.state(`${each}/bin/brew`) !== null)
  if (prefix === undefined) {
    throw unsupported(
      `Homebrew, which brings PostgreSQL, is not installed. Install it from https://brew.sh, ` +
        ELSEWHERE,
    )
  }
  const uid = machine.state(`${prefix}/bin/brew`)!.uid
  const owner = uid === 0 ? null : await machine.ask(['id', '-un', String(uid)])
  if (owner === null || owner === '' || owner === 'root') {
    throw unsupported(
      `Homebrew in ${prefix} belongs to root or to a user that does not exist, and it does not ` +
        `run as root. Give it to an administrator as Homebrew describes, ${ELSEWHERE}`,
    )
  }
  const { invokedBy } = machine
  if (invokedBy !== null && invokedBy !== 'root' && invokedBy !== owner) {
    throw unsupported(
      `Homebrew in ${prefix} belongs to ${owner}, and ${invokedBy} runs this setup. Let ${owner} ` +
        `run it with sudo, ${ELSEWHERE}`,
    )
  }
  return { prefix, owner }
}

interface FoundCluster {
  readonly formula: string
  readonly version: number
  readonly port: number
  readonly isRunning: boolean
  /** True if pg_hba.conf lets every user of the machine be every role. */
  readonly trusts: boolean
}

/** Finds the clusters whose formula is installed, newest first. */
function clustersOf(machine: Machine, prefix: string): FoundCluster[] {
  const versions = Array.from({ length: NEWEST_VERSION - 8 }, (_, i) => NEWEST_VERSION - i)
  const names = [...versions.map((version) => `postgresql@${version}`), 'postgresql']
  return names.flatMap((formula) => {
    if (machine.state(`${prefix}/opt/${formula}/bin/postgres`) === null) return []
    const data = `${prefix}/var/${formula}`
    const version = machine.read(`${data}/PG_VERSION`)
    if (version === null) return []
    // Its fourth line is the port of the running server.
    const pid = machine.read(`${data}/postmaster.pid`)
    const settings = machine.read(`${data}/postgresql.conf`) ?? ''
    const configured = /^[ \t]*port[ \t]*=?[ \t]*'?([0-9]+)/m.exec(settings)?.[1]
    return [
      {
        formula,
        version: Number.parseInt(version, 10),
        port: Number(pid?.split('\n')[3] || configured || PORT),
        isRunning: pid !== null,
        trusts: /^[ \t]*(?:local|host)[^#\n]*\btrust\b/m.test(
          machine.read(`${data}/pg_hba.conf`) ?? '',
        ),
      },
    ]
  })
}

/** Tells whether launchd starts a formula with the machine and not with a session. */
function startsWithMachine(machine: Machine, formula: string): boolean {
  return machine.state(`/Library/LaunchDaemons/homebrew.mxcl.${formula}.plist`) !== null
}

function notesOf(machine: Machine, cluster: FoundCluster | undefined): string[] {
  const notes: string[] = []
  if (cluster?.trusts !== false) {
    notes.push(
      'PostgreSQL of Homebrew lets every user of this machine be every role. `svc docs setup` ' +
        'says how it recognizes each user instead.',
    )
  }
  if (cluster?.isRunning === true && !startsWithMachine(machine, cluster.formula)) {
    notes.push(
      `${cluster.formula} runs in the session of a person, and ends with it. To let it start ` +
        `with the machine: brew services stop ${cluster.formula}, then run the setup again.`,
    )
  }
  return notes
}

export function homebrewInstallation(
  machine: Machine,
  platform: Platform,
  { prefix, owner, formula }: Homebrew,
): Step[] {
  const [sudo, ...rest] = asUser(platform, owner)
  const asOwner = [sudo!, `--preserve-env=${PROXIES}`, ...rest]
  const brew = `${prefix}/bin/brew`
  return [
    {
      title: `Install ${formula} by Homebrew, as ${owner}`,
      isDone: async () =>
        clustersOf(machine, prefix).some((cluster) => cluster.formula === formula),
      actions: [command(...asOwner, 'env', 'HOMEBREW_NO_ASK=1', brew, 'install', formula)],
      ifItFails:
        'Check that this machine reaches the servers of Homebrew, and what the output says. ' +
        `If only the cluster is missing: brew postinstall ${formula}`,
    },
  ]
}

/** Returns the commands that start PostgreSQL, now and with the machine. */
export function homebrewStart({ prefix, owner, formula }: Homebrew): Action[] {
  const start = ['services', 'start', `--sudo-service-user=${owner}`, formula]
  return [command('env', 'HOME=/var/root', `${prefix}/bin/brew`, ...start)]
}
