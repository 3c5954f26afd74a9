/**
 * Uploads and downloads files with grants of Functions (contract/application.md, Uploads and
 * downloads).
 */
import { isId } from '../../value/ids.ts'
import { backoffMillis, CALL_BACKOFF } from '../backoff.ts'
import { Deadline } from '../calls/deadlines.ts'
import { parseSequence, readBody, readError, readJson } from '../calls/responses.ts'
import { type CallError, clientError, isCallError, responseInvalid } from '../errors.ts'
import type { Platform } from '../platform.ts'
import { hasFields } from '../results.ts'

/** The ID of a stored file, as in the generated references. */
export type FileId = string & { readonly __table: 'files' }

function isFileId(value: unknown): value is FileId {
  return isId('fil', value)
}

export interface UploadGrant {
  readonly path: string
  readonly token: string
  readonly uploadId: string
  readonly maximumBytes: number | bigint
}

export interface DownloadGrant {
  readonly path: string
  readonly token: string
}

export interface DownloadUrl {
  readonly path: string
}

export interface StoredFile {
  readonly fileId: FileId
  readonly uploadId: string
  readonly contentType: string
  /** Size in bytes. */
  readonly size: bigint
  /** 64 lowercase hex characters. */
  readonly sha256: string
  /** Microseconds since the Unix epoch. */
  readonly createdAt: bigint
}

export interface DownloadedFile {
  readonly fileId: FileId
  readonly contentType: string
  /** The digest of the whole file. */
  readonly sha256: string
  /** Size of the whole file in bytes. */
  readonly size: number
  readonly bytes: Uint8Array
}

export interface TransferOptions {
  /** Milliseconds; ten minutes by default. */
  readonly deadlineMillis?: number
  readonly signal?: AbortSignal
}

export interface DownloadOptions extends TransferOptions {
  /** The first and the last byte of a part. */
  readonly range?: { readonly start: number; readonly end: number }
  /** Rejects a longer body; 256 MiB by default. */
  readonly bytesMax?: number
}

interface Service {
  readonly platform: Platform
  readonly url: string
}

const TRANSFER_MILLIS = 600_000
const DOWNLOAD_BYTES_MAX = 256 * 1024 * 1024
const ANSWER_BYTES_MAX = 64 * 1024
const DOWNLOADS_MAX = 5

/**
 * Returns the path of a grant. Throws ARGUMENTS_INVALID for any other path, so that the token is
 * sent nowhere else.
 */
function pathOf(path: string, kind: 'uploads' | 'downloads' | 'signed-downloads'): string {
  if (/^\/v1\/files\/([a-z-]+)\/[\w-]+$/.exec(path)?.[1] === kind) return path
  throw clientError('ARGUMENTS_INVALID', 'The grant has another path.')
}

/** Returns the whole URL. Throws ARGUMENTS_INVALID for any path but that of a signed URL. */
export function downloadUrl({ url }: Pick<Service, 'url'>, { path }: DownloadUrl): string {
  return url + pathOf(path, 'signed-downloads')
}

/** Uploads the bytes once. After a lost response the outcome is unknown. Throws CallError. */
export async function upload(
  { platform, url }: Service,
  grant: UploadGrant,
  body: Blob | Uint8Array<ArrayBuffer>,
  options: TransferOptions & { readonly contentType?: string } = {},
): Promise<StoredFile> {
  const path = pathOf(grant.path, 'uploads')
  const size = body instanceof Uint8Array ? body.length : body.size
  if (size > grant.maximumBytes) {
    throw clientError('LIMIT_EXCEEDED', `The grant is for at most ${grant.maximumBytes} bytes.`)
  }
  const { contentType } = options
  const deadline = deadlineOf(platform, options)
  try {
    const response = await platform.fetch(url + path, {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${grant.token}`,
        ...(contentType !== undefined && { 'content-type': contentType }),
      },
      body,
      signal: deadline.signal,
      redirect: 'error',
      credentials: 'omit',
    })
    const json = await readJson(response, ANSWER_BYTES_MAX)
    const error = readError(json, response)
    if (error !== null) throw error
    return readFile(json, response, { uploadId: grant.uploadId, size })
  } catch (error) {
    if (isCallError(error)) throw error
    const message = 'The response was lost. The file may have been stored.'
    const details = { outcomeKnown: false, cause: deadline.reason ?? error }
    throw clientError('CLIENT_RESULT_UNCERTAIN', message, details)
  } finally {
    deadline.close()
  }
}

function deadlineOf(platform: Platform, options: TransferOptions): Deadline {
  return new Deadline(platform, options.deadlineMillis ?? TRANSFER_MILLIS, options.signal)
}

const FILE_FIELDS = ['fileId', 'uploadId', 'contentType', 'size', 'sha256', 'createdAtMicros']

function readFile(
  json: unknown,
  { status, headers }: Response,
  sent: { readonly uploadId: string; readonly size: number },
): StoredFile {
  const isAnswer = status === 201 && hasFields(json, 'version', 'status', 'requestId', 'file')
  if (!isAnswer || json.version !== 1 || json.status !== 'ok') {
    throw responseInvalid(`an unknown response (${status})`)
  }
  const { requestId, file } = json
  if (requestId !== headers.get('x-service-request-id') || !hasFields(file, ...FILE_FIELDS)) {
    throw responseInvalid('the response to another request')
  }
  const { fileId, uploadId, contentType, sha256 } = file
  const size = parseSequence(file.size)
  const createdAt = parseSequence(file.createdAtMicros)
  const isFile =
    isFileId(fileId) &&
    uploadId === sent.uploadId &&
    size === BigInt(sent.size) &&
    typeof contentType === 'string' &&
    typeof sha256 === 'string' &&
    createdAt !== null
  if (!isFile) throw responseInvalid('the metadata of another file')
  return { fileId, uploadId, contentType, size, sha256, createdAt }
}

/** Downloads a file or a part of it, with retries after a lost connection. Throws CallError. */
export async function download(
  service: Service,
  grant: DownloadGrant,
  options: DownloadOptions = {},
): Promise<DownloadedFile> {
  const { platform } = service
  const deadline = deadlineOf(platform, options)
  try {
    for (let attempt = 1; ; attempt++) {
      let error: CallError
      try {
        return await downloadOnce(service, grant, options, deadline)
      } catch (caught) {
        const message = 'The server did not respond.'
        const details = { retryable: true, cause: caught }
        error = isCallError(caught)
          ? caught
          : clientError('CLIENT_SERVER_UNREACHABLE', message, details)
      }
      if (deadline.reason !== null) throw deadline.reason
      if (!error.retryable || attempt === DOWNLOADS_MAX) throw error
      await deadline.pause(backoffMillis(CALL_BACKOFF, attempt, platform))
    }
  } finally {
    deadline.close()
  }
}

async function downloadOnce(
  { platform, url }: Service,
  grant: DownloadGrant,
  { range, bytesMax = DOWNLOAD_BYTES_MAX }: DownloadOptions,
  { signal }: Deadline,
): Promise<DownloadedFile> {
  const path = pathOf(grant.path, 'downloads')
  const response = await platform.fetch(url + path, {
    headers: {
      authorization: `Bearer ${grant.token}`,
      ...(range !== undefined && { range: `bytes=${range.start}-${range.end}` }),
    },
    signal,
    redirect: 'error',
    credentials: 'omit',
  })
  const { status, headers } = response
  if (status >= 400) {
    const error = readError(await readJson(response, ANSWER_BYTES_MAX), response)
    throw error ?? (status >= 502 ? new TypeError() : responseInvalid(`the status ${status}`))
  }
  const bytes = await readBody(response, bytesMax)
  const fileId = headers.get('x-service-file-id')
  const contentType = headers.get('content-type')
  const sha256 = /^"([0-9a-f]{64})"$/.exec(headers.get('etag') ?? '')?.[1]
  const isOfGrant = isFileId(fileId) && path.endsWith(fileId)
  if (!isOfGrant || contentType === null || sha256 === undefined) {
    throw responseInvalid('another file')
  }
  const part = partOf(response, bytes.length, range)
  if (range === undefined && (await sha256Of(bytes)) !== sha256) {
    throw responseInvalid('bytes that do not have the digest of the file')
  }
  return { fileId, contentType, sha256, size: part, bytes }
}

/** Returns the size of the whole file. Throws if the body is not the requested file or part. */
function partOf(
  { status, headers }: Response,
  length: number,
  range: DownloadOptions['range'],
): number {
  const declared = headers.get('content-length')
  const isWhole = status === 200 && range === undefined
  if (declared !== null && Number(declared) !== length) throw new TypeError('a body that is cut')
  if (isWhole) return length
  const content = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get('content-range') ?? '')
  const [start = -1, end = -1, size = -1] = (content ?? []).slice(1).map(Number)
  const isPart =
    range !== undefined &&
    status === 206 &&
    start === range.start &&
    end === Math.min(range.end, size - 1) &&
    length === end - start + 1
  if (!isPart) throw responseInvalid('another part of the file')
  return size
}

/** Throws CLIENT_FILE_FAILED in a runtime without Web Crypto, such as a page without HTTPS. */
async function sha256Of(bytes: Uint8Array): Promise<string> {
  const { subtle } = globalThis.crypto ?? {}
  if (subtle === undefined) {
    throw clientError('CLIENT_FILE_FAILED', 'The digest needs Web Crypto, and so HTTPS.')
  }
  const digest = await subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>)
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
