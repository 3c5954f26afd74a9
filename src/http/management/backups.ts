/** Backups: the list, a new one, and the archive of one of them. */
import { Fault } from '../../errors/fault.ts'
import {
  type BackupMaker,
  createBackup,
  listStoredBackups,
  openBackup,
  readStoredBackup,
} from '../../product/backups/backups.ts'
import type { BackupCreated, BackupList, BackupState } from '../../wire/backups/backups.ts'
import { backupOperations, TAR_MEDIA_TYPE } from '../../wire/operations/backups.ts'
import { disposition } from '../file-answers.ts'
import { lineStream } from '../transfers/line-streams.ts'
import { operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Call, type Route } from './route.ts'

/**
 * Each reads a file of the backup at a time, in pieces, for as long as its reader takes.
 * @limit Backups: downloads of backups at one time; one more is `PRODUCT_UNAVAILABLE`
 */
export const BACKUP_DOWNLOADS_MAX = 4
/** Time after which a download checks again that its reader is authorized. */
const REAUTHORIZE_MILLIS = 10_000

export interface BackupsApp extends ProductApp {
  /** Null in `svc dev`, which makes none. */
  readonly backups: BackupMaker | null
  /** Downloads that are open. */
  readonly backupDownloads: { open: number }
}

export const backupRoutes: readonly Route<BackupsApp>[] = bind(backupOperations, {
  listBackups({ app }) {
    const body: BackupList = { version: 1, items: listStoredBackups(app.product) }
    return { status: 200, body }
  },

  createBackup({ app, actor, operationId, body: asked, requestId }) {
    const input = {
      recipients: asked.recipients,
      operationId,
      changedAtMicros: BigInt(asked.changedAtMicros),
      requestId,
    }
    const ports = { ...app.product, backups: app.backups }
    const { result, operation } = createBackup(ports, actor, input)
    const body: BackupCreated = { version: 1, ...result, operation: operationField(operation) }
    return { status: operation.replayed ? 200 : 201, body }
  },

  readBackup({ app, params }) {
    const body: BackupState = { version: 1, ...readStoredBackup(app.product, params.backupId) }
    return { status: 200, body }
  },

  readBackupContent(call) {
    const { app, actor, params, request, requestId, pace } = call
    const { backupDownloads } = app
    if (backupDownloads.open >= BACKUP_DOWNLOADS_MAX) {
      throw new Fault('PRODUCT_UNAVAILABLE', { detail: 'too many downloads of backups' })
    }
    const { backupId } = params
    const ports = { ...app.product, backups: app.backups }
    const archive = openBackup(ports, actor, { backupId, requestId })
    backupDownloads.open += 1
    let isOpen = true
    const release = () => {
      if (isOpen) backupDownloads.open -= 1
      isOpen = false
    }
    // A reader that disconnects before the first piece never starts the generator.
    request.signal.addEventListener('abort', release, { once: true })
    const headers = {
      'content-type': TAR_MEDIA_TYPE,
      'content-disposition': disposition('attachment', `${backupId}.tar`),
    }
    const body = lineStream(pieces(call, archive, release), pace)
    return { status: 200, file: new Response(body, { headers }) }
  },
})

/** Yields the archive between calls, for as long as its reader is authorized. */
async function* pieces(
  {
    app,
    turns,
    authorized,
  }: Pick<Call<BackupsApp, string, unknown>, 'app' | 'turns' | 'authorized'>,
  archive: AsyncGenerator<Uint8Array>,
  release: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    const { system } = app.product
    let checkedAt = system.monotonicMillis()
    for await (const piece of archive) {
      if (system.monotonicMillis() - checkedAt > REAUTHORIZE_MILLIS) {
        await authorized(() => undefined)
        checkedAt = system.monotonicMillis()
      }
      await turns.take(piece.length)
      yield piece
    }
  } finally {
    release()
    await archive.return(undefined)
  }
}
