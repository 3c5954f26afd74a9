/** Fills a root from a backup before it is served, and reads files from the backup afterwards. */
import type { DevelopmentEvent } from '../../client/development/events.ts'
import type { DevelopmentRequest } from '../../client/development/workspace-tools.ts'
import { isFault } from '../../errors/fault.ts'
import type { ShutdownStack } from '../../server/shutdown-stack.ts'
import type { BlobOrigin } from '../../storage/blobs/on-demand-blobs.ts'
import type { System } from '../../system/system.ts'
import { buildWorkspace, type Describe } from '../building/build.ts'
import { BackupFiles } from '../copies/backup-files.ts'
import { readCopyRecord } from '../copies/copy-record.ts'
import { copyBackup, type MadeCopy } from '../copies/development-copy.ts'
import { lockedBy } from './holders.ts'
import { requireDevelopment } from './local-environments.ts'

export interface CopiedRootOptions
  extends Pick<
    DevelopmentRequest,
    'rootPath' | 'workspaceDirectory' | 'copy' | 'variables' | 'signal'
  > {
  readonly describe: Describe
  readonly system: System
  readonly closing: ShutdownStack
  readonly report: (event: DevelopmentEvent) => void
}

/** Time between two reports of progress. */
const PROGRESS_MILLIS = 5_000

/**
 * Copies the backup of the request, if there is one. Returns where the files of a copy are; null
 * for a root that is not a copy.
 */
export async function openCopy(options: CopiedRootOptions): Promise<BlobOrigin | null> {
  const { rootPath, variables, closing, report } = options
  await makeCopy(options)
  const record = readCopyRecord(rootPath)
  if (record === null) return null
  const onFailure = (message: string) => report({ event: 'notice', message })
  const files = new BackupFiles({ rootPath, record, variables, onFailure })
  closing.add(async () => files.close())
  return files
}

async function makeCopy(options: CopiedRootOptions): Promise<void> {
  const { rootPath, copy: request, variables, workspaceDirectory, system, report } = options
  const { signal } = options
  if (request === null) return
  const notice = (message: string) => report({ event: 'notice', message })
  let reported = system.monotonicMillis()
  try {
    const made = await copyBackup({
      rootPath,
      request,
      variables,
      system,
      signal,
      requireUsable: requireDevelopment,
      describe: async () => (await buildWorkspace(workspaceDirectory, options)).description,
      onProgress: (documents) => {
        if (system.monotonicMillis() - reported < PROGRESS_MILLIS) return
        reported = system.monotonicMillis()
        notice(`Copied ${documents} documents so far.`)
      },
    })
    if (made !== null) report(copiedEvent(made))
    else notice('The root is a copy of this backup already and stays as it is; --reset makes one.')
  } catch (error) {
    // The author has stopped the command.
    if (signal.aborted) return
    throw isFault(error, 'SERVER_PRODUCT_ROOT_LOCKED') ? lockedBy(rootPath, error) : error
  }
}

function copiedEvent({ record, tables, files }: MadeCopy): DevelopmentEvent {
  const { from, environmentId, historyId, sequence, atMicros, redaction } = record
  const which = { from, environmentId, historyId, sequence, atMicros }
  return { event: 'copied', ...which, tables, files, isRedacted: redaction !== null }
}
