/**
 * Makes all readings: of a stopped root under its lock, beside a running server without what the
 * lock protects, or inside the server that owns the root.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isFault } from '../../errors/fault.ts'
import type { ProductSettings } from '../../settings/settings.ts'
import { lockRoot } from '../../storage/lock.ts'
import { LOCK_FILE, readProductRoot } from '../../storage/root.ts'
import { readDatabaseId } from '../documents.ts'
import { readBackups } from './collect/backups.ts'
import { readDocumentDatabase, readIdentity } from './collect/databases.ts'
import type { CollectOptions, Found, Inside, LockState } from './collect/options.ts'
import { readRootFiles } from './collect/root-files.ts'
import { readMachine } from './collect/surroundings.ts'
import { type Reading, type Readings, skip } from './readings.ts'

/** Makes the readings. Never rejects for a fault that it can report. */
export async function collect(options: CollectOptions): Promise<Readings> {
  const { settings, system, inside } = options
  const begun = { wall: system.nowMillis(), monotonic: system.monotonicMillis() }
  const { product } = settings
  const held = holdRoot(product, inside)
  try {
    const root = product === null ? null : readRoot(product.root)
    const found = root !== null && 'value' in root ? root.value : null
    const [identity, documentDatabase] = await Promise.all([
      readIdentity(settings, system),
      readDocumentDatabase(settings, bindingOf(product, found), system),
    ])
    const { stored, ...ofDocuments } = documentDatabase
    const ofRoot = await readRootFiles(options, held.state, root, stored)
    const backups = await readBackups(product, root, system)
    const machine = await readMachine(options, held.state)
    const elapsedMillis = system.monotonicMillis() - begun.monotonic
    const driftMillis = system.nowMillis() - begun.wall - elapsedMillis
    return {
      ...machine,
      ...identity,
      ...ofDocuments,
      ...ofRoot,
      backups,
      clock: { value: { driftMillis, elapsedMillis } },
      lock: held.state,
    }
  } finally {
    held.release()
  }
}

/** Takes the lock of a stopped root; it is released after the readings. */
function holdRoot(
  product: ProductSettings | null,
  inside: Inside | null,
): { readonly state: LockState; readonly release: () => void } {
  const release = (): void => undefined
  if (product === null) return { state: skip('no Product root is configured'), release }
  if (inside !== null) return { state: { value: 'this server' }, release }
  const path = join(product.root, LOCK_FILE)
  if (!existsSync(path)) return { state: { value: 'never started' }, release }
  try {
    const lock = lockRoot(path)
    return { state: { value: 'stopped' }, release: () => lock.release() }
  } catch (error) {
    if (isFault(error, 'SERVER_PRODUCT_ROOT_LOCKED'))
      return { state: { value: 'running' }, release }
    const failed = isFault(error) ? (error.detail ?? error.code) : 'it cannot be locked'
    return { state: { failed }, release }
  }
}

function readRoot(path: string): Reading<Found> {
  try {
    return { value: readProductRoot(path) }
  } catch (error) {
    return { failed: isFault(error) ? (error.detail ?? error.code) : 'it cannot be read' }
  }
}

function bindingOf(product: ProductSettings | null, found: Found | null) {
  if (product === null || found === null) return null
  try {
    const databaseId = readDatabaseId(product.root)
    return { environmentId: found.descriptor.environmentId, databaseId }
  } catch {
    return null
  }
}
