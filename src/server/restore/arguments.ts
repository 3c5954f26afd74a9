/** Arguments of the mode `restore`. */
import { type ModeOption, parseOptions } from '../command-line/options.ts'

export interface RestoreArguments {
  /** A directory, a tar file, or `s3://bucket/prefix`. */
  readonly from: string
  /** Files with the identities that open the backup. */
  readonly identities: readonly string[]
  readonly root: string
  /** Null reads the setting of a server. */
  readonly database: string | null
  /** `sqlite` or the URL of a PostgreSQL database; null reads the setting of a server. */
  readonly documents: string | null
  /** Null for the only one that the backup has. */
  readonly environmentId: string | null
  /** Null for the newest one. */
  readonly historyId: string | null
  readonly sequence: number | null
  readonly atMicros: bigint | null
  readonly revokesCredentials: boolean
  readonly json: boolean
}

const TABLE = [
  {
    name: '--from',
    value: 'BACKUP',
    required: true,
    description: 'A directory, a tar file, or s3://bucket/prefix',
  },
  {
    name: '--identity',
    value: 'FILE',
    required: true,
    repeats: true,
    description: 'An identity of age that opens the backup; may be given more than once',
  },
  {
    name: '--root',
    value: 'DIR',
    required: true,
    description: 'The new Product root: a path that does not exist, or an empty directory',
  },
  {
    name: '--database',
    value: 'URL',
    description: 'An empty PostgreSQL database for identity; by default the one of the settings',
  },
  {
    name: '--documents',
    value: 'STORE',
    description: 'sqlite, or the URL of a PostgreSQL database without documents',
  },
  {
    name: '--to-sequence',
    value: 'SEQUENCE',
    description: 'Restore the newest state up to this sequence',
  },
  {
    name: '--to-time',
    value: 'TIME',
    description: 'Restore the newest state up to this time, such as 2026-11-26T15:00:00Z',
  },
  { name: '--environment', value: 'ID', description: 'The Environment, if the backup has several' },
  {
    name: '--history',
    value: 'ID',
    description: 'The history; by default the newest one with a whole backup',
  },
  {
    name: '--revoke-resurrected',
    value: null,
    description: 'End every session, invitation and key that works after the restore',
  },
  { name: '--json', value: null, description: 'Print one JSON document on standard output' },
] as const satisfies readonly ModeOption[]
type Option = (typeof TABLE)[number]['name']

export const RESTORE_OPTIONS: readonly ModeOption[] = TABLE

const SEQUENCE = /^(?:0|[1-9][0-9]{0,15})$/
/** The time to the second, a fraction, and the offset. */
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)$/

/** Returns null for arguments that are not valid. */
export function parseRestoreArguments(args: readonly string[]): RestoreArguments | null {
  const values = parseOptions(args, RESTORE_OPTIONS)
  if (values === null) return null
  const one = (name: Option) => values.get(name)?.[0] ?? null
  const [sequence, time] = [one('--to-sequence'), one('--to-time')]
  const atMicros = time === null ? null : parseTime(time)
  if (sequence !== null && (time !== null || !isSequence(sequence))) return null
  if (time !== null && atMicros === null) return null
  return {
    from: one('--from')!,
    identities: values.get('--identity')!,
    root: one('--root')!,
    database: one('--database'),
    documents: one('--documents'),
    environmentId: one('--environment'),
    historyId: one('--history'),
    sequence: sequence === null ? null : Number(sequence),
    atMicros,
    revokesCredentials: values.has('--revoke-resurrected'),
    json: values.has('--json'),
  }
}

function isSequence(text: string): boolean {
  return SEQUENCE.test(text) && Number.isSafeInteger(Number(text))
}

/** Parses a time of RFC 3339, whose offset is required. Returns null for any other text. */
function parseTime(text: string): bigint | null {
  const [, seconds, fraction = '', offset] = TIME.exec(text) ?? []
  if (seconds === undefined) return null
  const millis = Date.parse(`${seconds}${offset}`)
  if (Number.isNaN(millis)) return null
  return BigInt(millis) * 1_000n + BigInt(fraction.padEnd(6, '0'))
}
