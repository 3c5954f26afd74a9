/** `svc-server verify-storage`: compares the metadata of files with their bytes. */

import { openSystemDocuments } from '../engine/files/open-system-documents.ts'
import { KINDS } from '../errors/kinds.ts'
import { type LostContent, type StorageReport, verifyStorage } from '../product/files/verify.ts'
import { parseSettings } from '../settings/settings.ts'
import { fault } from '../settings/sources.ts'
import { openProductRoot } from '../storage/root.ts'
import { realSystem } from '../system/system.ts'
import { createLog } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import { openBlobs } from './blobs.ts'
import { REPAIR } from './command-line/arguments.ts'
import { openRootDocuments } from './documents.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'
import { prepareMigrations } from './upgrade/preparation.ts'

/** Runs the mode. Returns the exit code of corruption if bytes are missing or damaged. */
export async function run(
  environment: ProcessEnvironment,
  io: ServerIo,
  args: readonly string[],
): Promise<number> {
  const configuration = parseSettings(environment, 'verify-storage')
  const { product } = configuration
  if (product === null) {
    const rule = 'the Product root whose files are verified'
    throw fault('SERVER_CONFIGURATION_MISSING', 'SERVICE_PRODUCT_ROOT', rule)
  }
  const system = realSystem()
  const log = createLog({ system, sink: io.err, level: 'warn' })
  const migrates = ['control', 'documents'] as const
  await prepareMigrations({ configuration, identity: null, migrates, system, log })
  const root = await openProductRoot(product.root, system)
  try {
    const { environmentId } = root.descriptor
    const rootPath = product.root
    const blobs = await openBlobs({ rootPath, environmentId, storage: product.storage })
    const metrics = new Metrics(system)
    const { database } = product
    // With lost documents the bytes of their files would look orphaned.
    const shared = { acceptedLoss: null, system, log, metrics }
    const opened = await openRootDocuments({ root, database, ...shared })
    try {
      const documents = openSystemDocuments(opened.store, system)
      const repair = args.includes(REPAIR)
      const found = await verifyStorage({ documents, blobs }, { repair })
      report(io, found, repair)
      return found.lost.length > 0 ? KINDS.corrupt.exit : 0
    } finally {
      await opened.close()
    }
  } finally {
    root.close()
  }
}

function report({ out }: ServerIo, found: StorageReport, repair: boolean): void {
  const { files, contents, bytes, lost, orphaned } = found
  out(`Verified ${files} files: ${contents} contents, ${bytes} bytes.\n`)
  for (const each of lost) out(`${describe(each, repair)}\n`)
  for (const sha256 of orphaned) {
    out(repair ? `Removed ${sha256}, which no file has.\n` : `Orphaned: ${sha256}\n`)
  }
  if (lost.length > 0) {
    out('Restore the bytes from a backup of the Product root: metadata and grants are unchanged.\n')
  } else if (orphaned.length > 0 && !repair) {
    out(`The server removes orphaned bytes when it starts; ${REPAIR} removes them now.\n`)
  } else {
    out('No file is damaged.\n')
  }
}

function describe({ sha256, condition, fileIds }: LostContent, repair: boolean): string {
  const aside = repair && condition === 'damaged' ? ', set aside in files/damaged' : ''
  return `${condition}: ${sha256} of ${fileIds.join(', ')}${aside}`
}
