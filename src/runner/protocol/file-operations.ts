/**
 * The operations of `ctx.storage` beyond reads of metadata. They come from an untrusted process;
 * names and values inside are checked by the engine, which can tell the author what is wrong.
 */
import { DOWNLOAD_SECONDS, UPLOAD_SECONDS } from '../../value/files/grant-lifetimes.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { count, record, sized } from './shapes.ts'

/** The object that a file becomes. */
export interface ObjectOperand {
  readonly bucket: string
  readonly key: string | null
  readonly contentType: string
}

export interface UploadOperand extends ObjectOperand {
  readonly maximumBytes: number
  readonly expiresInSeconds: number
}

export interface DownloadOperand {
  readonly expiresInSeconds: number
  readonly fileName: string | null
}

export interface SignedDownloadOperand extends DownloadOperand {
  readonly inline: boolean
}

/** An operation that makes a grant to download a file. */
export type DownloadOperation =
  | readonly ['grantDownload', string, DownloadOperand]
  | readonly ['signDownload', string, SignedDownloadOperand]

/** Replies: a grant, a grant, the ID of a file, bytes. The text of `putFile` is base64. */
export type FileOperation =
  | DownloadOperation
  | readonly ['grantUpload', UploadOperand]
  | readonly ['putFile', ObjectOperand, string]
  | readonly ['readFile', string]

const OBJECT_KEYS = ['bucket', 'key', 'contentType']
const OBJECT: ReadonlySet<string> = new Set(OBJECT_KEYS)
const UPLOAD: ReadonlySet<string> = new Set([...OBJECT_KEYS, 'maximumBytes', 'expiresInSeconds'])
const DOWNLOAD_KEYS = ['expiresInSeconds', 'fileName']
const DOWNLOAD: ReadonlySet<string> = new Set(DOWNLOAD_KEYS)
const SIGNED_DOWNLOAD: ReadonlySet<string> = new Set([...DOWNLOAD_KEYS, 'inline'])

/** Decodes an operation on files; null for one of another kind. Throws ValidationError. */
export function decodeFileOperation(json: readonly unknown[]): FileOperation | null {
  const [type, first, second] = json
  switch (type) {
    case 'grantDownload':
      sized(json, 3)
      return [type, text(first), download(second)]
    case 'signDownload':
      sized(json, 3)
      return [type, text(first), signedDownload(second)]
    case 'grantUpload':
      sized(json, 2)
      return [type, upload(first)]
    case 'putFile':
      sized(json, 3)
      return [type, object(record(first, OBJECT)), text(second)]
    case 'readFile':
      sized(json, 2)
      return [type, text(first)]
    default:
      return null
  }
}

function upload(json: unknown): UploadOperand {
  const operand = record(json, UPLOAD)
  return {
    ...object(operand),
    maximumBytes: count(operand.maximumBytes),
    expiresInSeconds: seconds(operand.expiresInSeconds, UPLOAD_SECONDS.max),
  }
}

function signedDownload(json: unknown): SignedDownloadOperand {
  const { inline, ...operand } = record(json, SIGNED_DOWNLOAD)
  if (typeof inline !== 'boolean') throw new ValidationError('a boolean')
  return { ...download(operand), inline }
}

function download(json: unknown): DownloadOperand {
  const { expiresInSeconds, fileName } = record(json, DOWNLOAD)
  return {
    expiresInSeconds: seconds(expiresInSeconds, DOWNLOAD_SECONDS.max),
    fileName: fileName === null ? null : text(fileName),
  }
}

function object({ bucket, key, contentType }: Record<string, unknown>): ObjectOperand {
  return {
    bucket: text(bucket),
    key: key === null ? null : text(key),
    contentType: text(contentType),
  }
}

function seconds(json: unknown, max: number): number {
  const value = count(json)
  if (value < 1 || value > max) throw new ValidationError('the life of a grant')
  return value
}

function text(json: unknown): string {
  if (typeof json !== 'string') throw new ValidationError('a text')
  return json
}
