/**
 * Prints results on stdout, progress and failures on stderr; with `--json` stdout gets exactly one
 * JSON document. Control characters in texts of servers and files are escaped here.
 */
import pc from 'picocolors'
import { CODES, type Code, type TableCode } from '../errors/codes.ts'
import type { Fault } from '../errors/fault.ts'
import type { Kind } from '../errors/kinds.ts'
import { encodeBase64Url } from '../value/base64url.ts'
import type { Json } from '../value/strict-json.ts'
import type { ClientEnvironment } from './environment.ts'
import { explanationOf } from './explanations.ts'
import { timeText } from './timestamps.ts'
import { printable, printableJson, printableJsonLine, printableLines } from './visible-text.ts'

/** Exit code of a command that a signal ended (contract/wire.md, Exit codes). */
export const EXIT_INTERRUPTED = 130
const INTERRUPTED: readonly Code[] = ['CLIENT_INTERRUPTED', 'CLIENT_CHANGE_INTERRUPTED']
const SPINNER_AFTER_MS = 500
const SPINNER_EVERY_MS = 120
const FRAMES = ['|', '/', '-', '\\']

const STYLES = ['bold', 'dim', 'red', 'yellow'] as const
export type Style = (typeof STYLES)[number]
const MARK_BYTES = 12

/**
 * The columns of a table by their titles. A cell is a field of the row, formatted by its type and
 * name, or a function of the row.
 */
export type Columns<E, V = unknown> = Readonly<
  Record<string, (keyof E & string) | ((row: E, view: V) => string)>
>

/** Formats a field for people; one whose name ends with `Micros` is a time. */
function fieldText(name: string, value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (Array.isArray(value)) return value.join(',')
  return name.endsWith('Micros') ? timeText(String(value)) : String(value)
}

export class Output {
  readonly json: boolean
  readonly #environment: ClientEnvironment
  /** Delimiter of styled text before printing; random, so that no server can style text. */
  readonly #mark: string

  constructor(environment: ClientEnvironment, options: { readonly json: boolean }) {
    this.json = options.json
    this.#environment = environment
    this.#mark = `\0${encodeBase64Url(environment.system.randomBytes(MARK_BYTES))}`
  }

  /** Prints the result of the command: `document` with --json, otherwise `human`. */
  async result(document: Json, human: readonly string[]): Promise<void> {
    const text = this.json ? printableJson(document) : this.#render(human.join('\n'), 'stdout')
    if (text !== '') await this.#environment.stdout.write(`${text}\n`)
  }

  /** Prints one of many results: a line of JSON with --json or without a text, else the text. */
  async line(document: Json, human: string | null): Promise<void> {
    const isJson = this.json || human === null
    const text = isJson ? printableJsonLine(document) : this.#render(human, 'stdout')
    await this.#environment.stdout.write(`${text}\n`)
  }

  /** Prints a remark on stderr, unless --json is set. */
  async note(text: string): Promise<void> {
    if (!this.json) await this.warn(text)
  }

  /** Prints on stderr, also with --json, what must not be lost, such as an operation ID. */
  async warn(text: string): Promise<void> {
    await this.prompt(`${text}\n`)
  }

  /** Prints a question on stderr without a line end. */
  async prompt(text: string): Promise<void> {
    await this.#environment.stderr.write(this.#render(text, 'stderr'))
  }

  bold(text: string): string {
    return this.styled('bold', text)
  }

  styled(style: Style, text: string): string {
    return `${this.#mark}${STYLES.indexOf(style)}${text}${this.#mark}`
  }

  /** Escapes control characters, and applies styles if the stream is a terminal with colours. */
  #render(text: string, stream: 'stdout' | 'stderr'): string {
    const colors = pc.createColors(isColoured(this.#environment, this.#environment[stream].isTTY))
    return text
      .split(this.#mark)
      .map((part, i) =>
        i % 2 === 0
          ? printableLines(part)
          : colors[STYLES[Number(part[0])]!](printableLines(part.slice(1))),
      )
      .join('')
  }

  /** Formats aligned columns, two spaces apart; the head is dim on a terminal. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
    const clean = rows.map((row) => row.map(printable))
    const widths = head.map((title, i) =>
      Math.max(title.length, ...clean.map((row) => [...(row[i] ?? '')].length)),
    )
    const line = (cells: readonly string[]): string =>
      cells
        .map((cell, i) => cell + ' '.repeat(Math.max(0, widths[i]! - [...cell].length)))
        .join('  ')
        .trimEnd()
    return [this.styled('dim', line(head)), ...clean.map(line)]
  }

  /** Formats a table by its columns. */
  columns<E, V>(rows: readonly E[], columns: Columns<E, V>, view?: V): string[] {
    const cells = Object.values(columns)
    const texts = rows.map((row) =>
      cells.map((cell) =>
        typeof cell === 'string' ? fieldText(cell, row[cell]) : cell(row, view as V),
      ),
    )
    return this.table(Object.keys(columns), texts)
  }

  /** Formats a table below an empty line; returns no line for a table without rows. */
  section<E>(rows: readonly E[], columns: Columns<E>): string[] {
    return rows.length === 0 ? [] : ['', ...this.columns(rows, columns)]
  }

  /**
   * Shows a spinner on a terminal if `work` takes longer than half a second. A label that is a
   * function is called for each turn of it.
   */
  async progress<T>(label: string | (() => string), work: Promise<T>): Promise<T> {
    const { stderr } = this.#environment
    if (this.json || !stderr.isTTY) return work
    let frame = 0
    let ticker: ReturnType<typeof setInterval> | undefined
    const starter = setTimeout(() => {
      ticker = setInterval(() => {
        const text = typeof label === 'string' ? label : label()
        void stderr.write(`\r${FRAMES[frame++ % FRAMES.length]} ${printable(text)}`)
      }, SPINNER_EVERY_MS)
    }, SPINNER_AFTER_MS)
    try {
      return await work
    } finally {
      clearTimeout(starter)
      clearInterval(ticker)
      if (frame > 0) await stderr.write('\r\u001b[2K')
    }
  }

  /** Prints the failure and returns the exit code. */
  async fail(fault: Fault): Promise<number> {
    const { text, detail, next, requestId } = describe(fault)
    const exit = INTERRUPTED.includes(fault.code) ? EXIT_INTERRUPTED : fault.exit
    if (this.json) {
      const { code, retryable } = fault
      const violations = fault.violations.map(({ path, rule }) => ({ path, rule }))
      const message = joined(text, detail)
      const error = { code, message, retryable, requestId, next }
      const document = { error: violations.length === 0 ? error : { ...error, violations } }
      if (await this.#isPrinted(document)) return exit
    }
    const name = `${this.styled('red', 'svc')}: ${this.styled('bold', fault.code)}`
    // A server may have written the text, so it stays on one line.
    const lines = [`${name}: ${joined(printable(text), detail)}`]
    const { subjects } = explanationOf(fault)
    for (const { path, rule } of fault.violations) {
      const named = Object.hasOwn(subjects, path) ? `${path} ${subjects[path]}` : path
      lines.push(`  ${printable(`${named}: ${rule}`)}`)
    }
    lines.push(`  ${next}`)
    if (requestId !== null) lines.push(`  ${this.styled('dim', `request ${requestId}`)}`)
    await this.warn(lines.join('\n'))
    return exit
  }

  /** Returns false if stdout cannot be written; the failure is then printed on stderr. */
  async #isPrinted(document: Json): Promise<boolean> {
    try {
      await this.#environment.stdout.write(`${printableJson(document)}\n`)
      return true
    } catch {
      return false
    }
  }
}

/** Next step for a code that a Function declares, which only the application can explain. */
const NEXT_OF_APPLICATION =
  'The Function declares this error. Read the documentation of the application.'
/** Next steps for codes that are not in the table, because the server is newer. */
const NEXT_OF_KIND: Partial<Record<Kind, string>> = {
  invalid: 'Correct the request, then send it again.',
  unauthenticated: 'Log in again with `svc login`.',
  forbidden: 'Ask an owner to grant the capability at this scope.',
  not_found: 'Check the identifiers with `svc status`.',
  conflict: 'Read the current state with `svc status`, then repeat the change from there.',
  gone: 'Choose a resource that still exists; `svc status` lists them.',
  too_large: 'Send a smaller request.',
  rate_limited: 'Wait a moment, then try again.',
  unavailable: 'Wait a moment, then try again.',
  deadline: 'Try again, or have the request do less.',
  uncertain: 'Read the current state with `svc status` before you try again.',
  corrupt: 'Stop the server, keep a copy of its data, then investigate or restore a backup.',
}

export interface Description {
  readonly text: string
  /** May have several lines, such as the problems of a Workspace. */
  readonly detail: string | undefined
  readonly next: string
  readonly requestId: string | null
}

function joined(text: string, detail: string | undefined): string {
  if (detail === undefined) return text
  return `${text}${detail.includes('\n') ? '\n' : ' '}${detail}`
}

/** Returns what happened and what to do next, from the table, the server and the detail. */
export function describe(fault: Fault): Description {
  const explanation = explanationOf(fault)
  const { requestId } = explanation
  const row = Object.hasOwn(CODES, fault.code) ? CODES[fault.code as TableCode] : null
  const next = explanation.next ?? row?.next ?? nextOfUnknown(fault)
  // The detail of a usage fault is a complete message.
  if (fault.code === 'CLIENT_USAGE' && fault.detail !== undefined) {
    return { text: fault.detail, detail: undefined, next, requestId }
  }
  const text = row?.message ?? explanation.message ?? fault.message
  return { text, detail: fault.detail, next, requestId }
}

/** Returns the next step for a code that is not in the table. */
function nextOfUnknown({ code, kind }: Fault): string {
  if (code.startsWith('APP_')) return NEXT_OF_APPLICATION
  return NEXT_OF_KIND[kind] ?? 'Find the request ID in the server log: its entry has the cause.'
}

function isColoured(environment: ClientEnvironment, isTTY: boolean): boolean {
  const noColour = environment.variable('NO_COLOR')
  const named = noColour !== undefined && noColour !== ''
  return isTTY && !named && environment.variable('TERM') !== 'dumb'
}
