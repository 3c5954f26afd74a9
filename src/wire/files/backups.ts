/**
 * The files of a backup (docs/backups-format.md): the sidecar that chains a segment to the one
 * before it, and the records that the lines of a segment have.
 */
import { canonicalJson } from '../../value/canonical-json.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { idField, integer, Micros, text } from '../fields.ts'
import { parse } from '../reading/read.ts'
import { type Infer, schema } from '../schema.ts'

export const BACKUP_FORMAT = 'svc-backup-1'

const Digest = text(/^[0-9a-f]{64}$/, '64 lowercase hex characters')
/** 12 digits in the name of a file. */
const SegmentNumber = integer(1, 999_999_999_999)
const Sequence = integer(0)
/** A time before 1970 is negative. */
const SignedMicros = text(/^(?:0|-?[1-9][0-9]{0,15})$/, 'canonical decimal microseconds')
const Base64 = text(
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
  'base64 with padding',
)

/** The fields that a segment and its sidecar both have. */
const segment = {
  format: `'${BACKUP_FORMAT}'`,
  environmentId: idField('env'),
  /** One life of the data: a restore begins the next one. */
  historyId: idField('hst'),
  number: SegmentNumber,
  kind: "'part' | 'base' | 'increment' | 'catchup'",
  /** The backup that a part or a base belongs to; null for an increment and a catch-up. */
  backupId: [idField('bkp'), '|', 'null'],
  /** The number of the first part of the backup; otherwise that of the segment itself. */
  first: SegmentNumber,
  /** SHA-256 of the sidecar of the segment before; null for the first one of a history. */
  previous: [Digest, '|', 'null'],
  /** The number of the newest base before this segment; null if there is none. */
  previousBase: [SegmentNumber, '|', 'null'],
  /** The segment has the commits after this sequence: 0 for a base and its parts. */
  fromSequence: Sequence,
  /** The newest sequence of the segment: the snapshot of a base and its parts. */
  toSequence: Sequence,
  /** The increments up to this segment join up from the first sequence to the second one. */
  runFrom: Sequence,
  runTo: Sequence,
  /**
   * The segments up to this one name the bytes of all files that documents up to this sequence
   * refer to, as far as a base or the increments have these documents.
   */
  runFiles: Sequence,
  /** SHA-256 of the file with the names of the stored bytes; null if the segment names none. */
  blobs: [Digest, '|', 'null'],
  atMicros: Micros,
} as const

const SegmentHeader = schema({ ...segment, t: "'segment'" } as const)
export type SegmentHeader = Infer<typeof SegmentHeader>

const SidecarFile = schema({
  ...segment,
  /** Digest and length of the file with the encrypted segment. */
  sha256: Digest,
  bytes: integer(1),
} as const)
export type Sidecar = Infer<typeof SidecarFile>

/** Bytes under a name of the target. */
const stored = { bytes: integer(0), name: Digest } as const

/** Texts of the columns of a row; null for the null of SQL. */
const TextRow = schema({ '[string]': 'string | null' })

const RECORDS = {
  environment: schema({
    t: "'environment'",
    /** Texts of `service.json` and `keyring.json`. */
    descriptor: 'string',
    keyring: 'string',
    /** The pepper of the identity database, if the settings include peppers. */
    'pepper?': 'string',
    /** `subjectPepper` of each identity provider by its ID, if the settings include peppers. */
    'subjectPeppers?': schema({ '[string]': 'string' }),
  }),
  shape: schema({ t: "'shape'", table: 'string', shape: 'string' }),
  index: schema({
    t: "'index'",
    table: 'string',
    fields: 'string[]',
    defaults: [['string | null', '[]'], '|', 'null'],
  } as const),
  /** Precedes the documents of the transaction. */
  commit: schema({ t: "'commit'", sequence: integer(1), atMicros: SignedMicros } as const),
  document: schema({
    t: "'document'",
    id: 'string',
    createdAtMicros: SignedMicros,
    sequence: integer(1),
    /** Stored JSON; null for a deleted document, which only increments have. */
    text: 'string | null',
  }),
  operation: schema({
    t: "'operation'",
    id: idField('opn'),
    fingerprint: Base64,
    commitSequence: [integer(1), '|', 'null'],
    releaseId: 'string',
    function: 'string',
    result: 'string',
    attempts: integer(1),
    createdAtMicros: Micros,
  } as const),
  blob: schema({ t: "'blob'", sha256: Digest, ...stored } as const),
  artifact: schema({ t: "'artifact'", sha256: Digest, ...stored } as const),
  control: schema({
    t: "'control'",
    table: 'string',
    /** A text has "t:" before it, an integer "i:", and bytes as base64 have "b:". */
    row: TextRow,
  } as const),
  /** All rows of the table are removed; those that follow are all that it has. */
  controlTable: schema({ t: "'controlTable'", table: 'string' }),
  /** `row` has the columns of the primary key. */
  controlDelete: schema({ t: "'controlDelete'", table: 'string', row: TextRow } as const),
  identity: schema({
    t: "'identity'",
    table: 'string',
    /** Each column as PostgreSQL writes it as text. */
    row: TextRow,
  } as const),
  identityTable: schema({ t: "'identityTable'", table: 'string' }),
  end: schema({
    t: "'end'",
    counts: { '[string]': integer(0) },
    /** The root of the Merkle tree of the documents of a base; null in an increment. */
    merkle: [Digest, '|', 'null'],
  } as const),
}

export type RecordType = keyof typeof RECORDS
export type BackupRecord = { [T in RecordType]: Infer<(typeof RECORDS)[T]> }[RecordType]
export type RecordOf<T extends RecordType> = Extract<BackupRecord, { t: T }>

/** Returns the only text that the sidecar may have: canonical JSON and a line feed. */
export function formatSidecar(sidecar: Sidecar): string {
  return `${canonicalJson({ ...sidecar } satisfies Json)}\n`
}

/** Throws ValidationError for every text but the one of `formatSidecar`. */
export function parseSidecar(bytes: Uint8Array): Sidecar {
  const sidecar = parse(SidecarFile, parseStrictJson(bytes))
  if (formatSidecar(sidecar) !== Buffer.from(bytes).toString('latin1')) {
    throw new ValidationError('canonical JSON')
  }
  return sidecar
}

/** Returns the first line of a segment. */
export function headerOf({ sha256, bytes, ...segment }: Sidecar): SegmentHeader {
  return { t: 'segment', ...segment }
}

export function formatHeader(header: SegmentHeader): string {
  return canonicalJson({ ...header } satisfies Json)
}

/** Parses a line. Throws ValidationError, and SyntaxError for a text that is not JSON. */
export function parseRecord(line: string): BackupRecord {
  const data = JSON.parse(line) as { readonly t?: unknown } | null
  const type = data?.t
  if (typeof type !== 'string' || !Object.hasOwn(RECORDS, type)) {
    throw new ValidationError('a known type of record', '$.t')
  }
  return parse<BackupRecord>(RECORDS[type as RecordType] as never, data)
}

/** Parses the shape of a record. Throws ValidationError, and SyntaxError. */
export function parseShape(json: string): FieldShape {
  const shape: unknown = JSON.parse(json)
  if (!isShape(shape) || shape === null) throw new ValidationError('the shape of a table')
  return shape
}

function isShape(shape: unknown): shape is FieldShape | null {
  if (shape === null || shape === 'any') return true
  return typeof shape === 'object' && Object.values(shape).every(isShape)
}
