/** `rehearsal.json` of a Product root: how the last rehearsal of a restore ended. */
import { canonicalJson } from '../../value/canonical-json.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { idField, integer, Micros, text } from '../fields.ts'
import { parse } from '../reading/read.ts'
import { type Infer, schema } from '../schema.ts'

const RehearsalFile = schema({
  version: '1',
  historyId: idField('hst'),
  finishedAtMicros: Micros,
  /** Null if the backup was restored, and the restored documents have the digest of the backup. */
  failureCode: [text(/^[A-Z][A-Z_]{2,63}$/, 'an error code'), '|', 'null'],
  /** The restored state; null after a failure. */
  sequence: [integer(0), '|', 'null'],
  documents: [integer(0), '|', 'null'],
  merkle: [text(/^[0-9a-f]{64}$/, '64 lowercase hex characters'), '|', 'null'],
  /** The end of the newest rehearsal that passed; null if none did. */
  passedAtMicros: [Micros, '|', 'null'],
} as const)
export type RehearsalFile = Infer<typeof RehearsalFile>

/** Throws ValidationError. */
export function parseRehearsal(bytes: Uint8Array): RehearsalFile {
  return parse(RehearsalFile, parseStrictJson(bytes))
}

export function formatRehearsal(rehearsal: RehearsalFile): string {
  return `${canonicalJson({ ...rehearsal })}\n`
}
