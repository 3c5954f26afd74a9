/** `ctx.storage`: metadata of stored files, grants, and in an Action their bytes. */
import {
  DEFAULT_BUCKET,
  FILE_BYTES_MAX,
  FILE_DOCUMENTS,
  FILES_PAGE_MAX,
  FUNCTION_PUT_BYTES_MAX,
  keyPrefixEnd,
  UPLOAD_DOCUMENTS,
} from '../../../value/files/files.ts'
import { DOWNLOAD_SECONDS, UPLOAD_SECONDS } from '../../../value/files/grant-lifetimes.ts'
import type { Call } from '../calls.ts'
import { changeDocument, readDocument, sendRead, sendWriting } from '../operations.ts'
import { Rows } from '../rows.ts'

interface ListOptions {
  readonly bucket?: unknown
  readonly prefix?: unknown
  readonly cursor?: unknown
  readonly limit?: unknown
}

interface ObjectOptions {
  readonly bucket?: unknown
  readonly key?: unknown
  readonly contentType?: unknown
}

interface UploadOptions extends ObjectOptions {
  readonly maximumBytes?: unknown
  readonly expiresInSeconds?: unknown
}

interface DownloadOptions {
  readonly expiresInSeconds?: unknown
  readonly fileName?: unknown
}

interface DownloadUrlOptions extends DownloadOptions {
  readonly inline?: unknown
}

interface FilePage {
  readonly items: readonly unknown[]
  readonly cursor: string | null
  readonly done: boolean
}

const { stringify } = JSON
const { isSafeInteger } = Number
const bytesPrototype = Uint8Array.prototype
const { getPrototypeOf, keys } = Object
// Bytes may have a method of their own by that name.
const { toBase64 } = bytesPrototype
const { apply } = Reflect

function textOf(method: string, name: string, value: unknown): string {
  if (typeof value === 'string' && value.isWellFormed()) return value
  throw new TypeError(`ctx.storage.${method}: ${name} is a string`)
}

function nullableTextOf(method: string, name: string, value: unknown): string | null {
  return value === undefined || value === null ? null : textOf(method, name, value)
}

/** Returns the text of the ID of a file. */
function idText(method: string, id: unknown): string {
  if (typeof id === 'string' && id.startsWith(`${FILE_DOCUMENTS}_`)) return stringify(id)
  throw new TypeError(`ctx.storage.${method} needs the ID of a file, such as "fil_01JZ..."`)
}

function secondsOf(
  method: string,
  value: unknown,
  { default: otherwise, max }: { readonly default: number; readonly max: number },
): number {
  if (value === undefined) return otherwise
  if (isSafeInteger(value) && (value as number) >= 1 && (value as number) <= max) {
    return value as number
  }
  const rule = `expiresInSeconds is a whole number from 1 to ${max}`
  throw new RangeError(`ctx.storage.${method}: ${rule}`)
}

/** The JSON text of the fields of an object, without braces. */
function objectText(method: string, { bucket, key, contentType }: ObjectOptions): string {
  const name = textOf(method, 'bucket', bucket ?? DEFAULT_BUCKET)
  const type = textOf(method, 'contentType', contentType)
  const named = stringify(nullableTextOf(method, 'key', key))
  return `"bucket":${stringify(name)},"key":${named},"contentType":${stringify(type)}`
}

/** The JSON text of the fields of a grant to download a file, without braces. */
function downloadText(method: string, { expiresInSeconds, fileName }: DownloadOptions): string {
  const seconds = secondsOf(method, expiresInSeconds, DOWNLOAD_SECONDS)
  const name = stringify(nullableTextOf(method, 'fileName', fileName))
  return `"expiresInSeconds":${seconds},"fileName":${name}`
}

const OBJECT_OPTIONS = ['bucket', 'key', 'contentType']
const UPLOAD_OPTIONS = [...OBJECT_OPTIONS, 'maximumBytes', 'expiresInSeconds']
const DOWNLOAD_OPTIONS = ['expiresInSeconds', 'fileName']
const DOWNLOAD_URL_OPTIONS = [...DOWNLOAD_OPTIONS, 'inline']
const LIST_OPTIONS = ['bucket', 'prefix', 'cursor', 'limit']

/** Returns the options. Throws if one has another name: it would be overlooked. */
function optionsOf<T extends object>(
  method: string,
  options: T | undefined,
  names: readonly string[],
): T {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`ctx.storage.${method} needs an object of options`)
  }
  for (const name of keys(options)) {
    if (names.includes(name)) continue
    const rule = `there is no option ${stringify(name)}; the options are ${names.join(', ')}`
    throw new TypeError(`ctx.storage.${method}: ${rule}`)
  }
  return options
}

/** The bounds of the keys that begin with a prefix, as a range has them. */
function prefixBounds(prefix: string | null): string {
  if (prefix === null) return ''
  const end = keyPrefixEnd(prefix)
  const lower = `"lower":{"value":${stringify(prefix)},"inclusive":true}`
  const upper = end === null ? '' : `,"upper":{"value":${stringify(end)},"inclusive":false}`
  return `"field":"key",${lower}${upper}`
}

/** `ctx.storage`, whose methods depend on the kind of the Function. */
export class Storage {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  /** Finds a file by its ID, or by the ID of the grant that it was uploaded with. */
  async get(id: unknown): Promise<unknown> {
    const call = this.#call
    if (typeof id !== 'string' || !id.startsWith(`${UPLOAD_DOCUMENTS}_`)) {
      idText('get', id)
      return readDocument(call, id as string)
    }
    const upload = `{"$d":${stringify(id)}}`
    const range = { table: FILE_DOCUMENTS, index: 'byUpload', equal: [upload], bounds: '' }
    return new Rows(call, range, 'asc').first()
  }

  async list(options: ListOptions = {}): Promise<FilePage> {
    const {
      bucket = DEFAULT_BUCKET,
      prefix,
      cursor = null,
      limit = 100,
    } = optionsOf('list', options, LIST_OPTIONS)
    const name = textOf('list', 'bucket', bucket)
    if (!isSafeInteger(limit) || (limit as number) < 1 || (limit as number) > FILES_PAGE_MAX) {
      throw new RangeError(`ctx.storage.list: limit is a whole number from 1 to ${FILES_PAGE_MAX}`)
    }
    const after = nullableTextOf('list', 'cursor', cursor)
    const bounds = prefixBounds(nullableTextOf('list', 'prefix', prefix))
    const range = { table: FILE_DOCUMENTS, index: 'byKey', equal: [stringify(name)], bounds }
    const page = { cursor: after, limit: limit as number }
    return new Rows(this.#call, range, 'asc').paginate(page)
  }

  createDownload(id: unknown, options: DownloadOptions = {}): Promise<unknown> {
    const call = this.#grantingCall('createDownload')
    const given = optionsOf('createDownload', options, DOWNLOAD_OPTIONS)
    const operand = `{${downloadText('createDownload', given)}}`
    return sendRead(call, `["grantDownload",${idText('createDownload', id)},${operand}]`)
  }

  createDownloadUrl(id: unknown, options: DownloadUrlOptions = {}): Promise<unknown> {
    const call = this.#grantingCall('createDownloadUrl')
    const given = optionsOf('createDownloadUrl', options, DOWNLOAD_URL_OPTIONS)
    const { inline = false } = given
    if (typeof inline !== 'boolean') {
      throw new TypeError('ctx.storage.createDownloadUrl: inline is true or false')
    }
    const operand = `{${downloadText('createDownloadUrl', given)},"inline":${inline}}`
    return sendRead(call, `["signDownload",${idText('createDownloadUrl', id)},${operand}]`)
  }

  delete(id: unknown): Promise<unknown> {
    const call = this.#call
    if (call.definition.kind === 'query') {
      throw new TypeError('ctx.storage.delete in a Query: make the Function a mutation')
    }
    return changeDocument(call, `["delete",${idText('delete', id)}]`, 'ctx.storage.delete')
  }

  createUpload(options: UploadOptions): Promise<unknown> {
    const call = this.#actionCall('createUpload')
    const { maximumBytes, expiresInSeconds, ...object } = optionsOf(
      'createUpload',
      options,
      UPLOAD_OPTIONS,
    )
    const isSize = isSafeInteger(maximumBytes) && (maximumBytes as number) >= 0
    if (!isSize || (maximumBytes as number) > FILE_BYTES_MAX) {
      const rule = `maximumBytes is a whole number from 0 to ${FILE_BYTES_MAX}`
      throw new RangeError(`ctx.storage.createUpload: ${rule}`)
    }
    const seconds = secondsOf('createUpload', expiresInSeconds, UPLOAD_SECONDS)
    const bounds = `"maximumBytes":${maximumBytes},"expiresInSeconds":${seconds}`
    const operand = `{${objectText('createUpload', object)},${bounds}}`
    return sendRead(call, `["grantUpload",${operand}]`)
  }

  put(bytes: unknown, options: ObjectOptions): Promise<unknown> {
    const call = this.#actionCall('put')
    const isBytes =
      typeof bytes === 'object' && bytes !== null && getPrototypeOf(bytes) === bytesPrototype
    if (!isBytes) throw new TypeError('ctx.storage.put needs a Uint8Array')
    const { length } = bytes as Uint8Array
    if (length > FUNCTION_PUT_BYTES_MAX) {
      const most = `at most ${FUNCTION_PUT_BYTES_MAX}: make an upload grant for a longer file`
      throw new RangeError(`ctx.storage.put: ${length} bytes, ${most}`)
    }
    const object = objectText('put', optionsOf('put', options, OBJECT_OPTIONS))
    // Added as text: base64 needs no escapes, and stringify would make another copy.
    const text = apply(toBase64, bytes, []) as string
    return sendWriting(call, `["putFile",{${object}},"${text}"]`, 'ctx.storage.put')
  }

  read(id: unknown): Promise<unknown> {
    const call = this.#actionCall('read')
    return sendRead(call, `["readFile",${idText('read', id)}]`)
  }

  /** Throws for a Mutation. */
  #grantingCall(method: string): Call {
    if (this.#call.definition.kind !== 'mutation') return this.#call
    throw new TypeError(
      `ctx.storage.${method} in a Mutation: its result is stored, and a grant must not be; ` +
        'make the grant in a Query or an Action',
    )
  }

  /** Throws unless the Function is an Action. */
  #actionCall(method: string): Call {
    if (this.#call.definition.kind === 'action') return this.#call
    throw new TypeError(`ctx.storage.${method}: only an Action does this; write action(...)`)
  }
}
