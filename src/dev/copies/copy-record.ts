/** The file by which a root remembers the backup that its documents are a copy of. */
import { join } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import { COPY_FILE } from '../../storage/root.ts'
import { FileFailure, readSecretFile, writeFileAtomic } from '../../system/files.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { idField, integer, Micros, text } from '../../wire/fields.ts'
import { parse } from '../../wire/reading/read.ts'
import { type Infer, schema } from '../../wire/schema.ts'

const BYTES_MAX = 64 * 1024

const CopyFile = schema({
  version: '1',
  /** A directory or a file, absolute, or `s3://bucket/prefix`. */
  from: 'string',
  /** Absolute paths of the files that open the backup, for files that are read later. */
  identities: 'string[]',
  environmentId: idField('env'),
  historyId: idField('hst'),
  /** The state of the backup. */
  sequence: integer(0),
  atMicros: Micros,
  copiedAtMicros: Micros,
  /** SHA-256 of the redaction file; null without one. */
  redaction: [text(/^[0-9a-f]{64}$/, 'a SHA-256'), '|', 'null'],
} as const)
export type CopyRecord = Omit<Infer<typeof CopyFile>, 'version'>

/** Returns null for a root that is not a copy. Throws CLIENT_ROOT_INVALID. */
export function readCopyRecord(rootPath: string): CopyRecord | null {
  try {
    const bytes = readSecretFile(join(rootPath, COPY_FILE), { bytesMax: BYTES_MAX })
    const { version: _, ...record } = parse(CopyFile, parseStrictJson(bytes))
    return record
  } catch (error) {
    if (error instanceof FileFailure && error.reason === 'missing') return null
    if (!(error instanceof FileFailure) && !(error instanceof ValidationError)) throw error
    const detail = `Its file ${COPY_FILE} cannot be read; --reset removes it.`
    throw new Fault('CLIENT_ROOT_INVALID', { detail, cause: error })
  }
}

export function writeCopyRecord(rootPath: string, record: CopyRecord): void {
  writeFileAtomic(join(rootPath, COPY_FILE), `${JSON.stringify({ version: 1, ...record })}\n`)
}
