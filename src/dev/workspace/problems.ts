/** Formats problems of a Workspace for its author: location, message and fix. */
import { Fault } from '../../errors/fault.ts'

export interface Problem {
  /** Relative to the Workspace, with forward slashes. */
  readonly file: string
  /** Counts from 1; null for the whole file. */
  readonly line: number | null
  /** Counts from 1. */
  readonly column: number | null
  /** The problem, in one or more sentences. */
  readonly message: string
  /** The next step in one sentence; null if the message has it. */
  readonly fix: string | null
  /** Lines of the source around the location. */
  readonly frame?: readonly string[]
}

const PROBLEMS_SHOWN = 20

/** Formats `file:line:column`, then the message, the frame and the fix, indented. */
export function formatProblem({ file, line, column, message, fix, frame }: Problem): string {
  const location = [file, line, line === null ? null : column].filter((part) => part !== null)
  const lines = [...message.split('\n'), ...(frame ?? []), ...(fix === null ? [] : [fix])]
  return [location.join(':'), ...lines.map((text) => `  ${text}`)].join('\n')
}

/** Returns a WORKSPACE_INVALID whose detail lists the problems for a terminal. */
export function workspaceFault(problems: readonly Problem[], cause?: unknown): Fault {
  const shown = problems.slice(0, PROBLEMS_SHOWN).map(formatProblem)
  const more = problems.length - shown.length
  if (more > 0) shown.push(`and ${more} more`)
  return new Fault('WORKSPACE_INVALID', { detail: shown.join('\n'), cause })
}

/** Returns a problem of a whole file. */
export function fileProblem(file: string, message: string, fix: string | null): Problem {
  return { file, line: null, column: null, message, fix }
}
