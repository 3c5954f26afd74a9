/**
 * Stored files: names, bounds and grants (contract/application.md, Upload and download grants;
 * contract/wire.md, Grants). The metadata of a file is a document of the reserved table `files`.
 */

/** The name of the table in validators and schemas. */
export const FILES_TABLE = 'files'
/**
 * The tables of the document store that hold metadata of files, and upload grants. Their names are
 * the prefixes of their IDs, so no author can declare them.
 */
export const FILE_DOCUMENTS = 'fil'
export const UPLOAD_DOCUMENTS = 'upl'
/** The tables of multipart uploads that S3 clients began, and of their parts. */
export const MULTIPART_DOCUMENTS = 's3u'
export const PART_DOCUMENTS = 's3p'

/** The bucket that always exists. */
export const DEFAULT_BUCKET = 'default'
/** Names of buckets, which S3 clients accept as well. */
export const BUCKET_NAME = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/
/** Bytes of the UTF-8 of an object key. */
export const OBJECT_KEY_BYTES_MAX = 1_024
/** Bytes of one file. */
export const FILE_BYTES_MAX = 5 * 1024 ** 3
/** Bytes that an Action passes to `ctx.storage.put`, and bytes that it gets from `read`. */
export const FUNCTION_PUT_BYTES_MAX = 8 * 1024 ** 2
export const FUNCTION_READ_BYTES_MAX = 16 * 1024 ** 2
/** Characters of a `Content-Type`. */
export const CONTENT_TYPE_CHARACTERS_MAX = 255
/** Bytes of the UTF-8 of a name that a browser saves a download under. */
export const FILE_NAME_BYTES_MAX = 255
/** Files of one page of a list. */
export const FILES_PAGE_MAX = 1_000

/** @limit Stored files: parts of one multipart upload */
export const PARTS_MAX = 10_000
/** @limit Stored files: bytes of each part of a multipart upload but the last, at least */
export const PART_BYTES_MIN = 5 * 1024 ** 2
/** @limit Stored files: unfinished multipart uploads of one bucket */
export const MULTIPART_UPLOADS_MAX = 1_000
/** @limit Stored files: time after which an unfinished multipart upload is removed */
export const MULTIPART_SECONDS_MAX = 7 * 24 * 3_600
/** @limit Stored files: bytes of the names and values of the `x-amz-meta-*` headers of an object */
export const USER_METADATA_BYTES_MAX = 2 * 1024

/** RFC 9110, section 8.3.1, with optional parameters. */
const TOKEN = "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
const PARAMETER = `[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|"[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]*")`
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:${PARAMETER})*$`)

export function isBucketName(text: string): boolean {
  return BUCKET_NAME.test(text)
}

/** Returns whether the text is a media type that can be sent as a header unchanged. */
export function isContentType(text: string): boolean {
  return text.length <= CONTENT_TYPE_CHARACTERS_MAX && MEDIA_TYPE.test(text)
}

/** Returns whether the text is 1 to 1,024 bytes of UTF-8 without NUL. It is never a file path. */
export function isObjectKey(text: string): boolean {
  return text.length > 0 && !text.includes('\0') && fits(text, OBJECT_KEY_BYTES_MAX)
}

/**
 * Control characters, separators, and the controls that change the direction of text, with which
 * "exe.txt" can be shown for a program.
 */
const NO_FILE_NAME = /[\u0000-\u001f\u007f-\u009f/\\\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/

/** Returns whether the text is 1 to 255 bytes of UTF-8, all of them allowed in file names. */
export function isFileName(text: string): boolean {
  return text.length > 0 && !NO_FILE_NAME.test(text) && fits(text, FILE_NAME_BYTES_MAX)
}

function fits(text: string, bytesMax: number): boolean {
  return text.isWellFormed() && utf8Length(text) <= bytesMax
}

/** The number of bytes in UTF-8 of a text without lone surrogates. */
function utf8Length(text: string): number {
  let bytes = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    // A surrogate is half of a character of four bytes.
    bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : unit >= 0xd800 && unit <= 0xdfff ? 2 : 3
  }
  return bytes
}

/** The smallest text, in the order of keys, above all that begin with `prefix`; null if none is. */
export function keyPrefixEnd(prefix: string): string | null {
  const points = [...prefix]
  while (points.length > 0) {
    const last = points.pop()!.codePointAt(0)!
    if (last === 0x10ffff) continue
    const next = last === 0xd7ff ? 0xe000 : last + 1
    return points.join('') + String.fromCodePoint(next)
  }
  return null
}
