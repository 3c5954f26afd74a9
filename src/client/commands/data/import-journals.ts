/**
 * The journal of an import: how far it came, and what its IDs are made of. An interrupted import
 * continues from it and makes the same IDs and requests again, so that no document is doubled.
 */
import { Fault } from '../../../errors/fault.ts'
import { writeFileAtomic } from '../../../system/files.ts'
import { encodeBase64Url } from '../../../value/base64url.ts'
import { parseStrictJson } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { TableName } from '../../../wire/data.ts'
import { idField, integer, Micros, TargetField, text } from '../../../wire/fields.ts'
import { type Infer, schema } from '../../../wire/schema.ts'
import type { Context } from '../../contexts.ts'
import { explanation } from '../../explanations.ts'
import { readIfPresent, withPath } from '../../files.ts'
import { START } from './line-files.ts'

const JOURNAL_BYTES_MAX = 16 * 1024
const SEED_BYTES = 5
/** The server accepts times of the last 24 h, and a run may take some of them. */
const RENEWED_AFTER_MICROS = 12n * 3_600n * 1_000_000n

const Journal = schema({
  version: '1',
  environmentId: idField('env'),
  target: TargetField,
  table: TableName,
  tagged: 'boolean',
  /** Random part of the IDs. */
  seed: text(/^[A-Za-z0-9_-]{7}$/, 'a seed'),
  /** Time part of the IDs. */
  startedAtMicros: Micros,
  /** The time to which the number of a line is added: the creation time of its document. */
  changedAtMicros: Micros,
  lines: integer(0),
  bytes: integer(0),
  digest: text(/^[0-9a-f]{64}$/, 'a SHA-256'),
  inserted: integer(0),
  unchanged: integer(0),
  /** True once the whole file is imported. */
  finished: 'boolean',
})
export type Journal = Infer<typeof Journal>

/** The parts that identify an import; a journal of another one is rejected. */
export type ImportSubject = Pick<Journal, 'environmentId' | 'target' | 'table' | 'tagged'>

/**
 * Reads the journal of an import, or begins one, and writes it. Throws CLIENT_FILE_FAILED, also for
 * the journal of another import or of a finished one.
 */
export async function openJournal(
  { environment: { system } }: Context,
  path: string,
  subject: ImportSubject,
): Promise<Journal> {
  const now = system.nowMicros()
  const known = await readJournal(path)
  if (known === null) {
    const seed = encodeBase64Url(system.randomBytes(SEED_BYTES))
    const at = { startedAtMicros: String(now), changedAtMicros: String(now) }
    const counts = { inserted: 0, unchanged: 0, finished: false }
    const journal: Journal = { version: 1, ...subject, seed, ...at, ...START, ...counts }
    writeJournal(path, journal)
    return journal
  }
  const names = ['environmentId', 'target', 'table', 'tagged'] as const
  const other = names.find((name) => known[name] !== subject[name])
  if (other !== undefined) throw unusable(path, `belongs to an import with another ${other}`)
  if (known.finished) throw unusable(path, 'says that the file is imported')
  if (now - BigInt(known.changedAtMicros) < RENEWED_AFTER_MICROS) return known
  const renewed: Journal = { ...known, changedAtMicros: String(now) }
  writeJournal(path, renewed)
  return renewed
}

/** Replaces the journal durably. */
export function writeJournal(path: string, journal: Journal): void {
  withPath(path, () => writeFileAtomic(path, `${JSON.stringify(journal)}\n`))
}

async function readJournal(path: string): Promise<Journal | null> {
  const bytes = readIfPresent(path, JOURNAL_BYTES_MAX)
  if (bytes === null) return null
  const { parse } = await import('../../../wire/reading/read.ts')
  try {
    return parse(Journal, parseStrictJson(bytes))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw unusable(path, 'is no journal of an import')
  }
}

export function unusable(path: string, reason: string): Fault {
  return new Fault('CLIENT_FILE_FAILED', {
    detail: `${path} ${reason}.`,
    cause: explanation({
      next: 'Name another file with --journal, or remove this one to import the file anew.',
    }),
  })
}
