/** The `ctx.storage` operations of one Action, each of which is a transaction of its own. */
import { isFault } from '../../errors/fault.ts'
import type { DownloadOperation, FileOperation } from '../../runner/protocol/file-operations.ts'
import type { ErrorReport } from '../../runner/protocol/messages.ts'
import type { RangeRequest } from '../../runner/protocol/operations.ts'
import {
  FILE_DOCUMENTS,
  FUNCTION_PUT_BYTES_MAX,
  FUNCTION_READ_BYTES_MAX,
} from '../../value/files/files.ts'
import type { StorageAccess } from '../../value/manifest.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { OperationResult } from '../calls/outcomes.ts'
import { fileOf } from '../files/file-documents.ts'
import type { FunctionStorage } from '../files/function-storage.ts'
import {
  checkDownload,
  checkFileId,
  checkObject,
  checkUpload,
  DOWNLOAD_METHODS,
  downloadText,
  noFile,
  uploadGrantText,
} from '../files/storage-arguments.ts'
import type { SystemDocuments } from '../files/system-documents.ts'
import { type Cursors, performOperation } from '../invocations/context-operations.ts'
import type { Invocation } from '../invocations/invocation.ts'
import type { Requests } from './outgoing-requests.ts'

export interface ActionFilesPort {
  readonly cursors: Cursors
  readonly documents: SystemDocuments
  readonly storage: FunctionStorage
  readonly requests: Pick<Requests, 'bounded'>
  readonly system: { nowMicros(): bigint }
}

/** An operation on metadata that an Action shares with Queries and Mutations. */
export type MetadataOperation =
  | readonly ['get', string]
  | readonly ['range', RangeRequest]
  | readonly ['delete', string]

/** Returns whether the operation is one on metadata of files, rather than on documents. */
export function concernsFiles([type, operand]: MetadataOperation): boolean {
  return type === 'range' ? operand.table === FILE_DOCUMENTS : operand.startsWith('fil_')
}

const SERVICE_ERROR = 'ServiceError'

export class ActionFiles {
  readonly #port: ActionFilesPort
  readonly #invocation: Pick<Invocation, 'definition' | 'prepared'>
  /** The messages of failures of the storage. */
  readonly #unavailable = new Set<string>()

  constructor(port: ActionFilesPort, invocation: Pick<Invocation, 'definition' | 'prepared'>) {
    this.#port = port
    this.#invocation = invocation
  }

  /** Throws OperationError for a mistake of the author and a failure of the storage. */
  async perform(operation: FileOperation | MetadataOperation): Promise<OperationResult> {
    this.#require(isWrite(operation) ? 'write' : 'read')
    try {
      return await this.#perform(operation)
    } catch (error) {
      if (!isFault(error)) throw error
      const { code, message, detail } = error
      const shown = `ctx.storage: ${detail === undefined ? message : `${message} (${detail})`}`
      if (code === 'UNAVAILABLE') this.#unavailable.add(shown)
      throw new OperationError(SERVICE_ERROR, shown, code)
    }
  }

  /**
   * Returns whether the code rethrew or did not catch a failure of the storage. The runner's
   * report is not trusted, so the server must have thrown it inside this Action.
   */
  isUnavailable({ name, message }: ErrorReport): boolean {
    return name === SERVICE_ERROR && this.#unavailable.has(message)
  }

  #perform(operation: FileOperation | MetadataOperation): Promise<OperationResult> {
    const { documents, cursors } = this.#port
    const { prepared } = this.#invocation
    switch (operation[0]) {
      case 'get':
      case 'range':
        return documents.readShared((transaction) =>
          performOperation({ prepared, transaction, cursors }, operation),
        )
      case 'delete':
        return documents.changeShared((transaction) =>
          performOperation({ prepared, transaction, cursors }, operation),
        )
      case 'grantDownload':
      case 'signDownload':
        return this.#grantDownload(operation)
      case 'grantUpload':
        return this.#grantUpload(operation)
      case 'putFile':
        return this.#put(operation)
      case 'readFile':
        return this.#read(operation)
    }
  }

  async #grantDownload(operation: DownloadOperation): Promise<string> {
    const { documents, storage, system } = this.#port
    const [type, fileId] = operation
    checkDownload(operation)
    const found = await documents.read((transaction) => transaction.get(fileId))
    if (found === null) throw noFile(DOWNLOAD_METHODS[type], fileId)
    return downloadText(storage, operation, system.nowMicros())
  }

  async #grantUpload([, operand]: OperationOf<'grantUpload'>): Promise<string> {
    const { storage } = this.#port
    checkUpload(operand)
    const { releaseId } = this.#invocation.prepared.release
    const grant = await storage.issueUpload({ ...operand, releaseId })
    return uploadGrantText(grant, operand.maximumBytes)
  }

  async #put([, object, base64]: OperationOf<'putFile'>): Promise<string> {
    const { storage, requests } = this.#port
    checkObject('put', object)
    return requests.bounded(async (reserve) => {
      reserve(base64.length)
      const bytes = decodedBytes(base64)
      return JSON.stringify({ $d: await storage.put(object, bytes) })
    })
  }

  async #read([, fileId]: OperationOf<'readFile'>): Promise<string> {
    const { documents, storage, requests } = this.#port
    checkFileId('read', fileId)
    const found = await documents.read((transaction) => transaction.get(fileId))
    if (found === null) throw noFile('read', fileId)
    const file = fileOf(found)
    if (file.size > FUNCTION_READ_BYTES_MAX) {
      const rule = `at most ${FUNCTION_READ_BYTES_MAX} bytes; this file has ${file.size}`
      throw new OperationError('RangeError', `ctx.storage.read: ${rule}`)
    }
    return requests.bounded(async (reserve) => {
      reserve(Number(file.size))
      const bytes = await storage.read(file)
      const { buffer, byteOffset, length } = bytes
      return JSON.stringify({ $b: Buffer.from(buffer, byteOffset, length).toString('base64url') })
    })
  }

  /** Throws OperationError where the Action does not declare the access. */
  #require(access: StorageAccess): void {
    const declared = this.#invocation.definition.uses?.storage
    if (declared === 'write' || declared === access) return
    const fix = `add uses: { storage: "${access}" } to this Action`
    throw new OperationError('TypeError', `ctx.storage: ${fix}`)
  }
}

type OperationOf<Type extends FileOperation[0]> = Extract<
  FileOperation,
  readonly [Type, ...unknown[]]
>

/** Returns whether the operation stores or deletes: the Action must not run again after it. */
export function isWrite([type]: FileOperation | MetadataOperation): boolean {
  return type === 'delete' || type === 'grantUpload' || type === 'putFile'
}

function decodedBytes(base64: string): Uint8Array {
  let bytes: Uint8Array
  try {
    bytes = Uint8Array.fromBase64(base64)
  } catch {
    throw new OperationError('TypeError', 'ctx.storage.put: the bytes are not base64')
  }
  if (bytes.length <= FUNCTION_PUT_BYTES_MAX) return bytes
  const fix = 'make an upload grant for a longer file'
  throw new OperationError(
    'RangeError',
    `ctx.storage.put: at most ${FUNCTION_PUT_BYTES_MAX} bytes; ${fix}`,
  )
}
