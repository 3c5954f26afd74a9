/** Arguments of the mode `restore`. */

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

/** The options with a value, in the order of the help. */
const OPTIONS = [
  '--from',
  '--identity',
  '--root',
  '--database',
  '--documents',
  '--to-sequence',
  '--to-time',
  '--environment',
  '--history',
] as const
const FLAGS = ['--revoke-resurrected', '--json'] as const
type Option = (typeof OPTIONS)[number]

const SEQUENCE = /^(?:0|[1-9][0-9]{0,15})$/
/** The time to the second, a fraction, and the offset. */
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)$/

/** Returns null for arguments that are not valid. */
export function parseRestoreArguments(args: readonly string[]): RestoreArguments | null {
  const values = new Map<Option, string[]>()
  const flags = new Set<string>()
  for (let i = 0; i < args.length; i++) {
    const name = args[i]!
    if ((FLAGS as readonly string[]).includes(name)) {
      flags.add(name)
      continue
    }
    const value = args[++i]
    if (!(OPTIONS as readonly string[]).includes(name) || value === undefined) return null
    const known = values.get(name as Option) ?? []
    // A backup may have several recipients, of whom each has an identity.
    if (known.length > 0 && name !== '--identity') return null
    values.set(name as Option, [...known, value])
  }
  const one = (name: Option) => values.get(name)?.[0] ?? null
  const [from, root, identities = []] = [one('--from'), one('--root'), values.get('--identity')]
  if (from === null || root === null || identities.length === 0) return null
  const [sequence, time] = [one('--to-sequence'), one('--to-time')]
  const atMicros = time === null ? null : parseTime(time)
  if (sequence !== null && (time !== null || !isSequence(sequence))) return null
  if (time !== null && atMicros === null) return null
  return {
    from,
    identities,
    root,
    database: one('--database'),
    documents: one('--documents'),
    environmentId: one('--environment'),
    historyId: one('--history'),
    sequence: sequence === null ? null : Number(sequence),
    atMicros,
    revokesCredentials: flags.has('--revoke-resurrected'),
    json: flags.has('--json'),
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
