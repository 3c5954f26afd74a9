/**
 * `svc upgrade`: from the address of a release to the new version that serves. Everything that can
 * be rejected is rejected before the first file is replaced.
 */
import { chmodSync, readFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { isFault } from '../../errors/fault.ts'
import { ensurePrivateDirectory } from '../../system/files.ts'
import { compareVersions, RELEASE_PUBLIC_KEY, UPGRADE_URL } from '../../value/version.ts'
import type { Context } from '../contexts.ts'
import { explained } from '../explanations.ts'
import { withPath } from '../files.ts'
import { resolvePath } from '../roots/roots.ts'
import { withLock } from '../sessions/locks.ts'
import { usage } from '../usage.ts'
import { addressText, parseAddress } from './addresses.ts'
import { unpackRelease } from './archives.ts'
import { type Disk, REAL_DISK } from './disk.ts'
import type { Source } from './downloads.ts'
import { rejected } from './faults.ts'
import { fileDigest, findInstallation, type Installation } from './installations.ts'
import { type Journal, readJournal, WORK_DIRECTORY } from './journal.ts'
import { KEY_FILE_BYTES_MAX, type PublicKey, parsePublicKey } from './minisign.ts'
import { programRunner, type Run } from './programs.ts'
import { downloadArchive, readRelease, type SignedRelease } from './releases.ts'
import { type Replacement, removeWork, replace, resume, WORK } from './replacements.ts'
import { checkServer, type ServerCheck } from './server-checks.ts'
import type { Service } from './services/service.ts'
import { findService } from './services/services.ts'

const LOCK = '.svc-upgrade.lock'
/** The command whose help a wrong use names. */
const COMMAND = { name: 'upgrade' }
const ARCHIVE = 'archive.tar.gz'
/** Other processes presume a lock dead that is not renewed for a minute. */
const LOCK_RENEWAL_MS = 15_000
/** The server runs the checks of the new version as its own user, who has to reach it. */
const WORK_MODE = 0o711
const EXECUTABLE_MODE = 0o755
const MIB = 1024 * 1024

export interface UpgradeRequest {
  readonly from: string | undefined
  readonly version: string | undefined
  readonly publicKeyFile: string | undefined
  readonly allowsDowngrade: boolean
  /** Says what would be done and replaces nothing. */
  readonly checks: boolean
  /** Permits an upgrade that is one way. */
  readonly yes: boolean
  /** Permits one that is one way without a backup. */
  readonly withoutBackup: boolean
}

export interface UpgradeOutcome {
  readonly outcome: 'current' | 'checked' | 'upgraded'
  readonly from: string
  readonly to: string
  /** The time of the signature; null for an upgrade that an earlier run had begun. */
  readonly signedAt: string | null
  readonly directory: string
  /** Null where no manager runs the server. */
  readonly service: Service | null
  readonly wasRunning: boolean
  /** Null where no server was checked. */
  readonly check: ServerCheck | null
  /** Files that were left as they are, since they were changed after their installation. */
  readonly kept: readonly string[]
}

/** Runs an upgrade. `disk` is the real one but in tests. */
export async function upgrade(
  context: Context,
  request: UpgradeRequest,
  disk: Disk = REAL_DISK,
): Promise<UpgradeOutcome> {
  const { environment } = context
  const run = programRunner(environment)
  const installation = await findInstallation(environment, run)
  return exclusively(context, installation, () =>
    new Upgrade(context, request, { installation, run, disk }).run(),
  )
}

/** Runs `work` while no other upgrade of the directory runs. Throws CLIENT_UPGRADE_RUNNING. */
async function exclusively<T>(
  { environment, signal }: Context,
  { directory }: Installation,
  work: () => Promise<T>,
): Promise<T> {
  const path = join(directory, LOCK)
  const failure = () => rejected('CLIENT_UPGRADE_RUNNING', `It holds ${path}.`)
  let renewal: ReturnType<typeof setInterval> | undefined
  const renewed = (): Promise<T> => {
    renewal = setInterval(() => renew(path, environment.system.nowMillis()), LOCK_RENEWAL_MS)
    return work()
  }
  try {
    const wait = { waitMsMax: 0, failure }
    return await withLock(path, environment.system, signal, renewed, wait)
  } catch (error) {
    if (renewal !== undefined || !isFault(error, 'CLIENT_FILE_FAILED')) throw error
    throw explained(error, { next: `Run the command as the owner of ${directory}.` })
  } finally {
    clearInterval(renewal)
  }
}

function renew(path: string, nowMillis: number): void {
  try {
    utimesSync(path, nowMillis / 1_000, nowMillis / 1_000)
  } catch {
    // The lock was removed by hand. Files that are replaced meanwhile stay whole all the same.
  }
}

interface Parts {
  readonly installation: Installation
  readonly run: Run
  readonly disk: Disk
}

/** A release whose executable lies beside the installed one, verified. */
interface Prepared {
  readonly release: SignedRelease
  readonly archiveDigest: string
  readonly check: ServerCheck | null
}

class Upgrade {
  readonly #context: Context
  readonly #request: UpgradeRequest
  readonly #installation: Installation
  readonly #run: Run
  readonly #disk: Disk
  readonly #work: string

  constructor(context: Context, request: UpgradeRequest, { installation, run, disk }: Parts) {
    this.#context = context
    this.#request = request
    this.#installation = installation
    this.#run = run
    this.#disk = disk
    this.#work = join(installation.directory, WORK_DIRECTORY)
  }

  async run(): Promise<UpgradeOutcome> {
    const service = await this.#service()
    const journal = readJournal(join(this.#work, WORK.journal))
    if (journal !== null) {
      const resumed = await this.#resume(journal, service)
      if (resumed !== null) return resumed
    }
    try {
      return await this.#begin(service)
    } finally {
      if (readJournal(join(this.#work, WORK.journal)) === null) this.#clear()
    }
  }

  async #begin(service: Service | null): Promise<UpgradeOutcome> {
    const from = await this.#installedVersion()
    const source = this.#source()
    const release = await readRelease(source, this.#key())
    const outcome = {
      from,
      to: release.version,
      signedAt: release.signedAt,
      directory: this.#installation.directory,
      service,
      wasRunning: service !== null && (await service.isRunning()),
      check: null,
      kept: [],
    }
    if (!this.#isWanted(release, from, source)) return { ...outcome, outcome: 'current' }
    const prepared = await this.#prepare(source, release, service)
    const { check } = prepared
    if (this.#request.checks) return { ...outcome, check, outcome: 'checked' }
    this.#requirePermission(check)
    const next = this.#journal(prepared, outcome)
    const kept = await this.#context.uninterrupted(replace(this.#replacement(service), next))
    return { ...outcome, check, kept, outcome: 'upgraded' }
  }

  /** Finds the service. Throws CLIENT_UPGRADE_IMPOSSIBLE where only root can act as its user. */
  async #service(): Promise<Service | null> {
    const { platform, program } = this.#context.environment
    const search = {
      run: this.#run,
      executable: this.#installation.primary,
      userId: program.userId,
    }
    const service = await findService(search, platform)
    if (service === null || service.user === null || program.userId === 0) return service
    const detail = `${service.name} runs as another user.`
    throw rejected('CLIENT_UPGRADE_IMPOSSIBLE', detail, 'Run the command as root.')
  }

  async #resume(journal: Journal, service: Service | null): Promise<UpgradeOutcome | null> {
    const { from, to } = journal
    if (this.#request.checks) {
      throw rejected(
        'CLIENT_UPGRADE_RUNNING',
        `An upgrade from ${from} to ${to} was interrupted.`,
        'Run `svc upgrade`, which finishes it.',
      )
    }
    const { output, uninterrupted } = this.#context
    await output.note(`An upgrade from ${from} to ${to} was interrupted, and is continued.`)
    const kept = await uninterrupted(resume(this.#replacement(service), journal))
    if (kept === null) return null
    return {
      outcome: 'upgraded',
      from,
      to,
      signedAt: null,
      directory: this.#installation.directory,
      service,
      wasRunning: journal.wasRunning,
      check: null,
      kept,
    }
  }

  async #installedVersion(): Promise<string> {
    const { primary } = this.#installation
    const version = await this.#versionOf(primary)
    if (version !== null) return version
    const next = 'Install a release with its install.sh.'
    throw rejected('CLIENT_UPGRADE_IMPOSSIBLE', `${primary} does not run.`, next)
  }

  /** Returns the version that an executable says, without the commit; null if it does not run. */
  async #versionOf(executable: string): Promise<string | null> {
    const { status, stdout } = await this.#run([executable, 'version'])
    return status === 0 ? (/ (\d+\.\d+\.\d+)(?:[+ \n]|$)/.exec(stdout)?.[1] ?? null) : null
  }

  #source(): Source {
    const { environment, signal } = this.#context
    const { from, version } = this.#request
    const mirror = environment.variable('SVC_BASE_URL') || this.#installation.receipt?.base
    const text = from ?? (mirror || UPGRADE_URL)
    if (text === '') throw usage('Name the address of a release with --from.', COMMAND)
    const address = parseAddress(environment, text, version ?? null)
    return { address, fetch: environment.fetch, signal }
  }

  /** Throws CLIENT_USAGE without a key: nothing is installed that cannot be verified. */
  #key(): PublicKey {
    const { publicKeyFile } = this.#request
    const text = publicKeyFile === undefined ? RELEASE_PUBLIC_KEY : this.#readKey(publicKeyFile)
    const key = parsePublicKey(text)
    if (key !== null) return key
    throw usage(
      publicKeyFile === undefined
        ? 'This version has no key of its releases: name one with --public-key-file.'
        : `${publicKeyFile} is not a public key of minisign.`,
      COMMAND,
    )
  }

  #readKey(file: string): string {
    const path = resolvePath(this.#context.environment, file)
    return withPath(path, () => readFileSync(path, 'utf8').slice(0, KEY_FILE_BYTES_MAX))
  }

  /** Returns false for the installed version. Throws CLIENT_UPGRADE_OLDER. */
  #isWanted({ version }: SignedRelease, from: string, { address }: Source): boolean {
    const { version: wanted, allowsDowngrade } = this.#request
    if (wanted !== undefined && wanted !== version) {
      throw rejected(
        'CLIENT_UPGRADE_UNDELIVERED',
        `The release at ${addressText(address)} is ${version}, not ${wanted}.`,
        `Name the address of ${wanted} with --from.`,
      )
    }
    const difference = compareVersions(version, from)
    if (difference === 'older' && !allowsDowngrade) {
      throw rejected('CLIENT_UPGRADE_OLDER', `It is ${version}, and ${from} is installed.`)
    }
    return difference !== 'same'
  }

  /** Downloads, verifies and unpacks the release, and lets it check the server. */
  async #prepare(
    source: Source,
    release: SignedRelease,
    service: Service | null,
  ): Promise<Prepared> {
    const { target, receipt } = this.#installation
    this.#clear()
    withPath(this.#work, () => ensurePrivateDirectory(this.#work))
    chmodSync(this.#work, WORK_MODE)
    const archive = join(this.#work, ARCHIVE)
    const executable = join(this.#work, WORK.executable)
    let bytes = 0
    const downloaded = downloadArchive(source, release, {
      target,
      to: archive,
      onBytes: (total) => {
        bytes = total
      },
    })
    const label = (): string => `downloading ${release.version}: ${Math.floor(bytes / MIB)} MiB`
    const archiveDigest = await this.#context.output.progress(label, named(archive, downloaded))
    const others = receipt === null ? null : join(this.#work, WORK.members)
    await named(executable, unpackRelease(archive, { executable, others }))
    this.#disk.remove(archive)
    chmodSync(executable, EXECUTABLE_MODE)
    const said = await this.#versionOf(executable)
    if (said !== release.version) {
      const found = said === null ? 'does not run on this machine' : `says that it is ${said}`
      throw rejected('CLIENT_UPGRADE_BLOCKED', `The executable ${found}.`)
    }
    if (service === null) return { release, archiveDigest, check: null }
    const checking = checkServer(this.#run, executable, service)
    const check = await this.#context.output.progress('checking the server', checking)
    return { release, archiveDigest, check }
  }

  /** Throws CLIENT_UPGRADE_ONE_WAY for a step that cannot be taken back and was not permitted. */
  #requirePermission(check: ServerCheck | null): void {
    if (check === null || !check.isOneWay) return
    const { yes, withoutBackup } = this.#request
    const text = `The check says:\n${check.text}\n`
    if (check.backup === null && !withoutBackup) {
      throw rejected(
        'CLIENT_UPGRADE_ONE_WAY',
        `${text}No backup would be made before.`,
        'Set SERVICE_BACKUP_RECIPIENTS, or make a backup and add --yes --without-backup.',
      )
    }
    if (!yes) throw rejected('CLIENT_UPGRADE_ONE_WAY', text)
  }

  #journal(
    { release, archiveDigest, check }: Prepared,
    { from, wasRunning }: Pick<UpgradeOutcome, 'from' | 'wasRunning'>,
  ): Journal {
    const { primary, target, receipt } = this.#installation
    return {
      version: 1,
      from,
      to: release.version,
      fromDigest: fileDigest(primary),
      toDigest: fileDigest(join(this.#work, WORK.executable)),
      archiveDigest,
      target,
      share: receipt?.share ?? null,
      isOneWay: check?.isOneWay ?? false,
      migrationSeconds: check?.seconds ?? 0,
      wasRunning,
      step: 'forward',
    }
  }

  #replacement(service: Service | null): Replacement {
    const { environment, output } = this.#context
    const { primary, secondary } = this.#installation
    // What was begun is finished: an interrupt ends the command afterwards.
    const { signal } = new AbortController()
    return {
      places: { primary, secondary, previous: `${primary}.previous`, work: this.#work },
      run: this.#run,
      disk: this.#disk,
      service,
      monotonicMillis: () => environment.system.monotonicMillis(),
      pause: (millis) => environment.pause(millis, signal),
      note: (text) => output.note(text),
    }
  }

  #clear(): void {
    const { primary, secondary } = this.#installation
    const places = { primary, secondary, previous: '', work: this.#work }
    removeWork({ places, disk: this.#disk })
  }
}

/** Names the file in a failure of the file system, such as a full disk. */
async function named<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (isFault(error)) throw error
    return withPath(path, () => {
      throw error
    })
  }
}
