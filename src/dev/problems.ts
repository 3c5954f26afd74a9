/** What is wrong with a Workspace, for its author: where, what, and how to mend it. */
import { Fault } from '../errors/fault.ts'

export interface Problem {
  /** Relative to the Workspace, with forward slashes. */
  readonly file: string
  /** From 1; null where the whole file is meant. */
  readonly line: number | null
  /** From 1. */
  readonly column: number | null
  /** One sentence or more. */
  readonly message: string
  /** What to do, in one sentence; null where the message says it. */
  readonly mend: string | null
}

const PROBLEMS_SHOWN = 20

/** `file:line:column`, then the message and the mend, indented. */
export function formatProblem({ file, line, column, message, mend }: Problem): string {
  const place = [file, line, line === null ? null : column].filter((part) => part !== null)
  const lines = [...message.split('\n'), ...(mend === null ? [] : [mend])]
  return [place.join(':'), ...lines.map((text) => `  ${text}`)].join('\n')
}

/** A WORKSPACE_INVALID whose detail is meant for the author's terminal. */
export function workspaceFault(problems: readonly Problem[], cause?: unknown): Fault {
  const shown = problems.slice(0, PROBLEMS_SHOWN).map(formatProblem)
  const more = problems.length - shown.length
  if (more > 0) shown.push(`and ${more} more`)
  return new Fault('WORKSPACE_INVALID', { detail: shown.join('\n'), cause })
}

/** A problem of a file as a whole. */
export function fileProblem(file: string, message: string, mend: string | null): Problem {
  return { file, line: null, column: null, message, mend }
}
