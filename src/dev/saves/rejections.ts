/** Explains why saved source is not served, with ways out. */
import type { DevelopmentEvent } from '../../client/development/events.ts'
import { CODES, type TableCode } from '../../errors/codes.ts'
import { Fault } from '../../errors/fault.ts'
import { codeFrameOfFile, findLocation } from '../code-frames.ts'

type Rejected = Extract<DevelopmentEvent, { event: 'rejected' }>

const WAYS_OUT = [
  'Make new fields optional: v.optional(...).',
  'Or make them optional first, save, fill them with a Mutation, then make them required.',
  'Or delete all documents: start again with `svc dev --reset`.',
]
const DOCUMENT_CHECK = /^checks\.(?:documents|unique|indexes)(?::|$)/

/** `directory` is the Workspace. */
export function rejectionOf(error: unknown, directory: string): Rejected {
  if (!(error instanceof Fault)) {
    const message = error instanceof Error ? error.message : 'Unknown failure.'
    return { event: 'rejected', code: 'CLIENT_FAILED', message, details: [], next: [] }
  }
  const { code, message, detail, violations } = error
  const next = CODES[code as TableCode]?.next
  const own = next === undefined ? [] : [next]
  if (code === 'WORKSPACE_INVALID') {
    const details = withFrames((detail ?? '').split('\n'), directory)
    return { event: 'rejected', code, message, details, next: [] }
  }
  if (violations.some(({ path }) => DOCUMENT_CHECK.test(path))) {
    const details = violations.map(({ path, rule }) => `${path.replace('checks.', '')}: ${rule}`)
    const fit = 'The stored documents do not fit the new schema.'
    return { event: 'rejected', code, message: fit, details, next: WAYS_OUT }
  }
  const rules = violations.map(({ path, rule }) => `${path}: ${rule}`)
  const details = [...rules, ...(detail === undefined ? [] : [detail])]
  return { event: 'rejected', code, message, details, next: own }
}

/** Adds the lines of source below each location that a problem begins with. */
function withFrames(lines: readonly string[], directory: string): string[] {
  return lines.flatMap((line) => {
    const location = line.startsWith(' ') ? null : findLocation(line)
    if (location === null) return [line]
    return [line, ...codeFrameOfFile(directory, location).map((text) => `    ${text}`)]
  })
}
