/** Checks what readers of the log saw against each other and against acknowledged Mutations. */

export interface SeenRecord {
  readonly cursor: string
  readonly event: string
  readonly message: string
  readonly requestId?: string | undefined
  readonly fields?: Readonly<Record<string, unknown>> | undefined
}

/** A record of an archive segment, which has a sequence instead of a cursor. */
export interface ArchivedRecord extends Omit<SeenRecord, 'cursor'> {
  readonly sequence: number
}

export interface LogHistory {
  /** Numbers that acknowledged Mutations wrote. */
  readonly acknowledged: readonly number[]
  /** Records in the order of the pages, read from the start by one reader. */
  readonly paged: readonly SeenRecord[]
  /** Records in the order of the stream, which continued at its last cursor after each cut. */
  readonly followed: readonly SeenRecord[]
  /** Records of each segment, in the order of the chain. */
  readonly segments: readonly (readonly ArchivedRecord[])[]
  readonly pruned: number
  /** Records of a stream that were written after its session was revoked. */
  readonly afterRevocation: number
}

const LOGGED = /^logged (\d+)$/

export function checkLog(history: LogHistory) {
  const { acknowledged, paged, followed, segments, pruned, afterRevocation } = history
  const violations: string[] = []
  const archived = segments.flat()
  for (const [name, records] of Object.entries({ paged, followed })) {
    const doubled = records.length - new Set(records.map(({ cursor }) => cursor)).size
    if (doubled > 0) violations.push(`${doubled} records are doubled in ${name}`)
  }
  const unordered = archived.filter(
    (each, i) => i > 0 && each.sequence <= archived[i - 1]!.sequence,
  )
  if (unordered.length > 0) violations.push(`${unordered.length} archived records are not in order`)
  violations.push(...differences('stream and pages', followed.map(keyOf), paged.map(keyOf)))
  // Either may have newer records: those that are in no segment yet, and those after the last page.
  const common = Math.min(archived.length, paged.length)
  const [left, right] = [archived, paged].map((each) => each.slice(0, common).map(contentOf))
  violations.push(...differences('archive and pages', left!, right!))
  const written = new Set(paged.map(numberOf).filter((number) => number !== null))
  const missing = acknowledged.filter((number) => !written.has(number))
  const reports = paged.filter(({ event }) => event === 'log.dropped')
  const dropped = reports.reduce((sum, { fields }) => sum + Number(fields?.dropped), 0)
  if (missing.length > dropped) {
    violations.push(`${missing.length} acknowledged Mutations have no record, ${dropped} dropped`)
  }
  if (afterRevocation > 0) violations.push(`${afterRevocation} records after a revocation`)
  const counts = {
    acknowledged: acknowledged.length,
    paged: paged.length,
    followed: followed.length,
    archived: archived.length,
    segments: segments.length,
    pruned,
    missing: missing.length,
    dropped,
  }
  return { violations, counts }
}

function numberOf({ event, message }: Pick<SeenRecord, 'event' | 'message'>): number | null {
  const found = event === 'function.log' ? LOGGED.exec(message) : null
  return found === null ? null : Number(found[1])
}

const keyOf = ({ cursor }: SeenRecord): string => cursor

function contentOf({ event, message, requestId }: Omit<SeenRecord, 'cursor'>): string {
  return JSON.stringify([event, message, requestId ?? null])
}

/** Compares two sequences and names the first difference. */
function differences(name: string, left: readonly string[], right: readonly string[]): string[] {
  const length = Math.max(left.length, right.length)
  const at = Array.from({ length }, (_, i) => i).find((i) => left[i] !== right[i])
  if (at === undefined) return []
  return [`${name} differ at ${at} of ${length}: ${left[at]} is not ${right[at]}`]
}
