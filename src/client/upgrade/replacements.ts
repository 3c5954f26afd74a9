/**
 * Replaces the executable of a server, waits until the new version serves, and goes back by itself
 * if it does not. Every step may be repeated: a run that was killed is continued by its journal.
 */
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { Fault, isFault } from '../../errors/fault.ts'
import { explanation } from '../explanations.ts'
import { type Disk, putFile } from './disk.ts'
import { fileDigest } from './installations.ts'
import { JOURNAL, type Journal, removeJournal, writeJournal } from './journal.ts'
import type { Run } from './programs.ts'
import { canStart } from './server-checks.ts'
import type { Service } from './services/service.ts'
import { updateShared } from './shared-files.ts'

/** Time for a server without migrations to become ready. */
const READY_MS = 120_000
/** Factor by which a migration may take longer than its estimate. */
const MIGRATION_FACTOR = 5
const POLL_MS = 1_000
/** Longer than `svc-server ready` waits for an answer. */
const ASK_MS = 20_000
/** Polls after which a server that cannot be asked counts as ready while it runs. */
const UNASKED_POLLS = 15
/** Exit codes of a version without the mode, and of a server whose port the system chooses. */
const EXITS_UNASKED: readonly (number | null)[] = [2, 78]

/** The files of a replacement. */
export interface Places {
  readonly primary: string
  /** Null where both names are one file. */
  readonly secondary: string | null
  readonly previous: string
  /** The directory of files under way, on the file system of the executables. */
  readonly work: string
}

/** Names inside the directory of files under way. */
export const WORK = { executable: 'svc-server', members: 'files', journal: JOURNAL } as const

export interface Replacement {
  readonly places: Places
  readonly run: Run
  readonly disk: Disk
  /** Null where no manager runs the server. */
  readonly service: Service | null
  monotonicMillis(): number
  pause(millis: number): Promise<void>
  note(text: string): Promise<void>
}

/**
 * Puts the new executable in place, and continues as `complete` does. Throws
 * CLIENT_UPGRADE_ROLLED_BACK and CLIENT_UPGRADE_NOT_READY.
 */
export async function replace(replacement: Replacement, journal: Journal): Promise<string[]> {
  const { places, disk } = replacement
  writeJournal(join(places.work, WORK.journal), journal)
  putFile(disk, places.primary, places.previous)
  disk.rename(join(places.work, WORK.executable), places.primary)
  return complete(replacement, journal)
}

/**
 * Continues a replacement that was killed. Returns null if nothing was replaced yet, so that the
 * upgrade begins again; otherwise as `replace` does.
 */
export async function resume(replacement: Replacement, journal: Journal): Promise<string[] | null> {
  const { places } = replacement
  if (journal.step === 'back') return goBack(replacement, journal)
  if (fileDigest(places.primary) === journal.toDigest) return complete(replacement, journal)
  removeJournal(join(places.work, WORK.journal))
  return null
}

/** Restarts the server, waits for it and finishes. Returns the files that were left as they are. */
async function complete(replacement: Replacement, journal: Journal): Promise<string[]> {
  const { service, note } = replacement
  if (service !== null && journal.wasRunning) {
    await note(`Restarting ${service.name}.`)
    if (!(await serves(replacement, journal, () => service.restart()))) {
      return goBack(replacement, journal)
    }
  }
  return finish(replacement, journal)
}

/** Starts the server and waits until it is ready. Returns false if it does not become so. */
async function serves(
  replacement: Replacement,
  journal: Pick<Journal, 'migrationSeconds'>,
  start: () => Promise<void>,
): Promise<boolean> {
  const { places, run, service, pause, monotonicMillis } = replacement
  const { user, variables, isRunning, hasFailed } = service!
  const until = monotonicMillis() + READY_MS + journal.migrationSeconds * 1_000 * MIGRATION_FACTOR
  try {
    await start()
  } catch (error) {
    if (isFault(error, 'CLIENT_UPGRADE_NOT_READY')) return false
    throw error
  }
  for (let unasked = 0; monotonicMillis() < until; ) {
    const options = { user, variables, timeoutMs: ASK_MS }
    const { status } = await run([places.primary, 'ready'], options)
    if (status === 0) return true
    if (await hasFailed()) return false
    unasked = EXITS_UNASKED.includes(status) && (await isRunning()) ? unasked + 1 : 0
    if (unasked === UNASKED_POLLS) return true
    await pause(POLL_MS)
  }
  return false
}

/**
 * Restores the previous executable and starts it, unless it cannot start on the databases as they
 * are. Always throws.
 */
async function goBack(replacement: Replacement, forward: Journal): Promise<never> {
  const { places, run, disk, note, service } = replacement
  const journal: Journal = { ...forward, step: 'back' }
  if (service === null) return goBackAlone(replacement, journal)
  writeJournal(join(places.work, WORK.journal), journal)
  const log = await service.log()
  const end = log === '' ? '' : ` Its log ends:\n${log}\n`
  const reason = `${journal.to} did not become ready.${end}`
  if (await service.isRunning()) await service.stop()
  const { from } = journal
  const isThere = lstatSync(places.previous, { throwIfNoEntry: false })?.isFile() === true
  if (!isThere || fileDigest(places.previous) !== journal.fromDigest) {
    await stay(replacement, journal)
    throw notReady(`${reason} ${places.previous} is not ${from}, so it was not restored.`)
  }
  // Only the previous version knows whether the new one has migrated anything yet.
  if (journal.isOneWay && !(await canStart(run, places.previous, service))) {
    await stay(replacement, journal)
    throw notReady(
      `${reason} The databases were migrated, and ${from} cannot start on them, so ${journal.to} ` +
        'stays installed.',
      'Fix what the log names. The way back is the backup of `database.migrates_one_way` in the ' +
        'log: `svc docs upgrade` says how to restore it.',
    )
  }
  await note(`Restoring ${from}.`)
  putFile(disk, places.previous, places.primary)
  const isReady = await serves(replacement, { migrationSeconds: 0 }, () => service.start())
  removeWork(replacement)
  if (isReady) throw new Fault('CLIENT_UPGRADE_ROLLED_BACK', { detail: reason })
  throw notReady(`${reason} ${from} was restored, and is not ready either.`)
}

/** Restores the files for a run that continues without a service to start. */
function goBackAlone({ places, disk }: Replacement, { from }: Journal): never {
  putFile(disk, places.previous, places.primary)
  removeWork({ places, disk })
  throw notReady(`${from} was restored, and no service starts it.`, 'Start the server.')
}

/** Leaves the new version in place and lets the manager try again to start it. */
async function stay(replacement: Replacement, journal: Journal): Promise<void> {
  await replacement.service!.start().catch(() => {})
  await finish(replacement, journal)
}

function notReady(detail: string, next?: string): Fault {
  const cause = next === undefined ? undefined : explanation({ next })
  return new Fault('CLIENT_UPGRADE_NOT_READY', { detail, cause })
}

/** Replaces the other name and the shared files. Returns those that were left as they are. */
async function finish(replacement: Replacement, journal: Journal): Promise<string[]> {
  const { places, disk } = replacement
  if (places.secondary !== null) putFile(disk, places.primary, places.secondary)
  const kept = journal.share === null ? [] : sharedOf(replacement, journal, journal.share)
  removeWork(replacement)
  return kept
}

function sharedOf({ places, disk }: Replacement, journal: Journal, share: string): string[] {
  const members = join(places.work, WORK.members)
  if (lstatSync(members, { throwIfNoEntry: false }) === undefined) return []
  try {
    return updateShared({
      disk,
      share,
      members,
      version: journal.to,
      archiveDigest: journal.archiveDigest,
      digest: journal.toDigest,
    })
  } catch (error) {
    // The server runs the new version. Pages and completions must not make that a failure.
    if (!isFault(error, 'CLIENT_FILE_FAILED')) throw error
    return [share]
  }
}

/** Removes what was under way; the journal last, since it says that something is. */
export function removeWork({ places, disk }: Pick<Replacement, 'places' | 'disk'>): void {
  const { journal, ...others } = WORK
  for (const name of Object.values(others)) disk.remove(join(places.work, name))
  removeJournal(join(places.work, journal))
  disk.remove(places.work)
}
