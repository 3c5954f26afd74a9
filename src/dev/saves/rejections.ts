/** Explains why saved source is not served, and what its author can do. */
import type { DevelopmentEvent } from '../../client/development/events.ts'
import { CODES, type TableCode } from '../../errors/codes.ts'
import { Fault, violationLines } from '../../errors/fault.ts'
import { codeFrameOfFile, findLocation } from '../workspace/code-frames.ts'

type Rejected = Extract<DevelopmentEvent, { event: 'rejected' }>

const RESET = 'Or delete all documents: start again with `svc dev --reset`.'
const WAYS_OUT = [
  'Make new fields optional, or give them a default: v.optional(...).default(...).',
  'Or change the documents with a migration that the schema requires: `svc docs migrations`.',
  RESET,
]
const MISSING = /\([a-z0-9_]+\.([A-Za-z0-9_]+): a required field\)/i
/** Codes of a full disk or a used-up quota in the detail of a failed write. */
const DISK_FULL = /\b(?:ENOSPC|EDQUOT|SQLITE_FULL)\b/
const FREE_SPACE = 'Free space on this disk; documents and code that are stored stay as they are.'
const RETRIED = 'The save is tried again every second.'
const DOCUMENT_CHECK = /^checks\.(?:documents|unique|indexes)(?::|$)/

interface RejectionOptions {
  /** Absolute path of the Workspace. */
  readonly directory: string
  /** True if the save is retried without a change of the source. */
  readonly isRetried: boolean
}

export function explainRejection(
  error: unknown,
  { directory, isRetried }: RejectionOptions,
): Rejected {
  if (!(error instanceof Fault)) {
    const message = error instanceof Error ? error.message : 'Unknown failure.'
    return { event: 'rejected', code: 'CLIENT_FAILED', message, details: [], next: [] }
  }
  const { code, message, detail, violations } = error
  if (code === 'WORKSPACE_INVALID') {
    const details = withFrames((detail ?? '').split('\n'), directory)
    return { event: 'rejected', code, message, details, next: [] }
  }
  if (violations.some(({ path }) => DOCUMENT_CHECK.test(path))) {
    const details = violationLines(error).map((line) => line.replace(/^checks\./, ''))
    const fit = 'The stored documents do not fit the new schema.'
    const field = MISSING.exec(details.join('\n'))?.[1]
    const next = field === undefined ? WAYS_OUT : waysOutOfMissing(field)
    return { event: 'rejected', code, message: fit, details, next }
  }
  const details = [...violationLines(error), ...(detail === undefined ? [] : [detail])]
  const retried = isRetried ? [RETRIED] : []
  if (DISK_FULL.test(detail ?? '')) {
    const full = 'The save is not served: the disk of the root is full.'
    return { event: 'rejected', code, message: full, details, next: [FREE_SPACE, ...retried] }
  }
  const own = CODES[code as TableCode]?.next
  const next = [...(own === undefined ? [] : [own]), ...retried]
  return { event: 'rejected', code, message, details, next }
}

/** Returns the steps for a required field that stored documents lack. */
function waysOutOfMissing(field: string): string[] {
  return [
    `Make \`${field}\` optional, or give it a default: v.optional(...).default(...).`,
    'Or fill it with a migration in migrations.ts that `requires` names: `svc docs migrations`.',
    'If it replaces another field, keep that one as v.optional(...) until it has been copied.',
    'A migration that is complete is not repeated; give it a new name.',
    RESET,
  ]
}

/** Adds lines of source below each line that is the location of a problem. */
function withFrames(lines: readonly string[], directory: string): string[] {
  return lines.flatMap((line) => {
    const location = line.startsWith(' ') ? null : findLocation(line)
    if (location === null) return [line]
    return [line, ...codeFrameOfFile(directory, location).map((text) => `    ${text}`)]
  })
}
