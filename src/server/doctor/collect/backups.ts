/** Reads what the target of backups has, without a key that opens it, and changes nothing there. */
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { findChainEnd, listHistories, readSidecar } from '../../../backups/format/chain.ts'
import { readRehearsal } from '../../../backups/rehearsal/rehearsals.ts'
import type { BackupFiles } from '../../../backups/targets/targets.ts'
import type { BackupSettings, BackupTargetSettings } from '../../../settings/backups.ts'
import type { ProductSettings } from '../../../settings/settings.ts'
import { REHEARSAL_FILE } from '../../../storage/root.ts'
import type { System } from '../../../system/system.ts'
import type { EnvironmentId } from '../../../value/ids.ts'
import { openBackupTarget } from '../../backups/targets.ts'
import {
  type BackupsReading,
  type BackupTargetReading,
  type Reading,
  type Readings,
  skip,
} from '../readings.ts'
import type { Found } from './options.ts'
import { readingOf, reasonOf } from './reading-of.ts'

/** Time for all accesses to a target, of which a remote one may not answer. */
const TARGET_MILLIS = 10_000

/** Never rejects. */
export async function readBackups(
  product: ProductSettings | null,
  root: Reading<Found> | null,
  system: Pick<System, 'nowMicros'>,
): Promise<Readings['backups']> {
  if (product === null || root === null) return skip('no Product root is configured')
  if (!('value' in root)) return skip('the root cannot be read')
  const { environmentId } = root.value.descriptor
  return readingOf(() => readingFor(product, environmentId, system))
}

async function readingFor(
  { root, backups }: ProductSettings,
  environmentId: EnvironmentId,
  system: Pick<System, 'nowMicros'>,
): Promise<BackupsReading> {
  const last = readRehearsal(join(root, REHEARSAL_FILE))
  const age = (atMicros: string) => Number((system.nowMicros() - BigInt(atMicros)) / 1_000n)
  return {
    recipients: backups?.recipients.length ?? 0,
    target: await readTarget(backups, environmentId, age),
    baseIntervalMillis: backups?.baseIntervalMillis ?? 0,
    rehearses: (backups?.rehearsalIdentityPath ?? null) !== null,
    rehearsal: last && { ageMillis: age(last.finishedAtMicros), failureCode: last.failureCode },
  }
}

async function readTarget(
  backups: BackupSettings | null,
  environmentId: EnvironmentId,
  age: (atMicros: string) => number,
): Promise<BackupTargetReading | null> {
  const settings = backups?.target ?? null
  if (settings === null) return null
  const target = await openBackupTarget(settings)
  const { location } = target
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    requireWritable(settings)
    const late = new Promise<never>((_, reject) => {
      const failure = Object.assign(new Error(), { code: 'it does not answer in 10 s' })
      timer = setTimeout(() => reject(failure), TARGET_MILLIS)
    })
    const newest = await Promise.race([readNewest(target, environmentId), late])
    const isWritable = settings.kind === 'directory'
    const found = newest && { sequence: newest.sequence, ageMillis: age(newest.atMicros) }
    return { location, failure: null, isWritable, newest: found }
  } catch (error) {
    return { location, failure: reasonOf(error), isWritable: false, newest: null }
  } finally {
    clearTimeout(timer)
  }
}

/** A write into a bucket would change it. */
function requireWritable(settings: BackupTargetSettings): void {
  if (settings.kind === 'directory') accessSync(settings.path, constants.R_OK | constants.W_OK)
}

async function readNewest(
  target: BackupFiles,
  environmentId: EnvironmentId,
): Promise<{ readonly sequence: number; readonly atMicros: string } | null> {
  const historyId = (await listHistories(target, environmentId)).at(-1)
  if (historyId === undefined) return null
  const address = { environmentId, historyId }
  const { number, base } = await findChainEnd(target, address)
  if (base === null) return null
  const { sidecar: whole } = await readSidecar(target, address, base)
  const { sidecar: last } = await readSidecar(target, address, number)
  // Increments after a gap lead nowhere before the next base.
  const isJoined = last.runFrom <= whole.toSequence && last.runTo >= whole.toSequence
  if (!isJoined) return { sequence: whole.toSequence, atMicros: whole.atMicros }
  return { sequence: last.runTo, atMicros: last.atMicros }
}
