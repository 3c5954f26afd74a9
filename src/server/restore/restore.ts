/** `svc-server restore`: makes a new server from a backup (docs/disaster.md). */
import { resolve } from 'node:path'
import type { RestoredPeppers } from '../../backups/restore/peppers.ts'
import { restoreBackup } from '../../backups/restore/restore.ts'
import type { Progress } from '../../backups/restore/verified-backup.ts'
import { Database } from '../../database/database.ts'
import { assert } from '../../errors/assert.ts'
import { configuredPeppers } from '../../identity/pepper-checks.ts'
import { findIdentityPepper, readRestoreDatabases } from '../../settings/restore.ts'
import { readStorage } from '../../settings/storage.ts'
import { realSystem, type System } from '../../system/system.ts'
import type { Secret } from '../../value/secret.ts'
import { openBlobs } from '../blobs.ts'
import type { ProcessEnvironment, ServerIo } from '../io.ts'
import { parseRestoreArguments } from './arguments.ts'
import { type PepperState, reportJson, reportText } from './reports.ts'
import { findHistory, openIdentities, openTarget } from './sources.ts'

/** Time between two lines of progress. */
const PROGRESS_MILLIS = 1_000

export async function run(
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
): Promise<number> {
  const parsed = parseRestoreArguments(args)
  assert(parsed !== null, 'the arguments were checked before')
  const pepper = findIdentityPepper(environment)
  const opener = openIdentities(parsed.identities)
  const target = await openTarget(parsed.from, environment)
  const address = await findHistory(target, parsed)
  const databases = readRestoreDatabases(environment, parsed)
  const storage = readStorage(environment)
  const { environmentId } = address
  const root = resolve(parsed.root)
  const system = realSystem()
  const identity = new Database({ url: databases.identity.url, connectionsMax: 2 })
  try {
    const result = await restoreBackup({
      source: { target, opener },
      address,
      goal: { sequence: parsed.sequence, atMicros: parsed.atMicros },
      destination: { root, identity, documents: databases.documents?.url ?? null, system },
      openBlobs: () => openBlobs({ rootPath: root, environmentId, storage, isFilled: true }),
      hasBlobsInRoot: (storage?.s3 ?? null) === null,
      revokesCredentials: parsed.revokesCredentials,
      restoresPeppers: true,
      onProgress: progressOf(io, system),
    })
    const pepperState = stateOf(pepper, result.peppers)
    const { revokesCredentials: isRevoked, json } = parsed
    const report = { ...result, root, from: address, isRevoked, pepper: pepperState }
    io.out(json ? reportJson(report) : reportText(report))
    return 0
  } finally {
    await identity.close()
  }
}

function stateOf(
  configured: Secret | null,
  { identity, identityCheck }: RestoredPeppers,
): PepperState {
  const pepper = configured ?? identity
  if (pepper === null || identityCheck === null) return 'unknown'
  const { digest } = configuredPeppers(pepper, [])[0]!
  if (Buffer.compare(digest, identityCheck) !== 0) return 'wrong'
  return configured === null ? 'restored' : 'right'
}

/** Prints each step when it begins, and then once a second. Two of them may run side by side. */
function progressOf(io: ServerIo, system: Pick<System, 'monotonicMillis'>): Progress {
  const printed = new Map<string, number>()
  return (step, done) => {
    const now = system.monotonicMillis()
    if (now - (printed.get(step) ?? Number.NEGATIVE_INFINITY) < PROGRESS_MILLIS) return
    printed.set(step, now)
    io.err(`${step}: ${done}\n`)
  }
}
