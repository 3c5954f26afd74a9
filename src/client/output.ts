/**
 * Everything that the client prints: results on stdout, progress and failures on stderr; with
 * `--json` one JSON document on stdout and nothing else there. Text of servers and files passes
 * through here and reaches the terminal in a visible form only.
 */
import pc from 'picocolors'
import { CODES, type Code, type TableCode } from '../errors/codes.ts'
import type { Fault } from '../errors/fault.ts'
import type { Kind } from '../errors/kinds.ts'
import { encodeBase64Url } from '../value/base64url.ts'
import type { Json } from '../value/strict-json.ts'
import { UsageCause } from './arguments.ts'
import type { ClientEnvironment } from './environment.ts'
import { serverAnswer } from './requests.ts'
import { printable, printableJson, printableJsonLine, printableLines } from './visible-text.ts'

/** Exit code of a command that a signal ended (wire decisions, section 6). */
export const EXIT_INTERRUPTED = 130
const INTERRUPTED: readonly Code[] = ['CLIENT_INTERRUPTED', 'CLIENT_CHANGE_INTERRUPTED']
const SPINNER_AFTER_MS = 500
const SPINNER_EVERY_MS = 120
const FRAMES = ['|', '/', '-', '\\']

const STYLES = ['bold', 'dim', 'red', 'yellow'] as const
export type Style = (typeof STYLES)[number]
const MARK_BYTES = 12

export class Output {
  readonly json: boolean
  readonly #environment: ClientEnvironment
  /** Delimiter of styled text until it is printed; unguessable, so that no server styles text. */
  readonly #mark: string

  constructor(environment: ClientEnvironment, options: { readonly json: boolean }) {
    this.json = options.json
    this.#environment = environment
    this.#mark = `\0${encodeBase64Url(environment.system.randomBytes(MARK_BYTES))}`
  }

  /** The result of the command, once. `human` is what people read instead of the document. */
  async result(document: Json, human: readonly string[]): Promise<void> {
    const text = this.json ? printableJson(document) : this.#render(human.join('\n'), 'stdout')
    if (text !== '') await this.#environment.stdout.write(`${text}\n`)
  }

  /** One of many results, in its turn: a line of JSON, or of text. */
  async line(document: Json, human: string): Promise<void> {
    const text = this.json ? printableJsonLine(document) : this.#render(human, 'stdout')
    await this.#environment.stdout.write(`${text}\n`)
  }

  /** A step or a remark on stderr; silent with `--json`. */
  async note(text: string): Promise<void> {
    if (!this.json) await this.warn(text)
  }

  /** On stderr in either mode: what must not be lost, such as an operation ID. */
  async warn(text: string): Promise<void> {
    await this.prompt(`${text}\n`)
  }

  /** A question on stderr; the answer is typed behind it. */
  async prompt(text: string): Promise<void> {
    await this.#environment.stderr.write(this.#render(text, 'stderr'))
  }

  bold(text: string): string {
    return this.styled('bold', text)
  }

  styled(style: Style, text: string): string {
    return `${this.#mark}${STYLES.indexOf(style)}${text}${this.#mark}`
  }

  /** Makes text visible, and styles where the stream is a terminal with colours. */
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

  /** Columns that line up, two spaces apart; the head is dim on a terminal. */
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

  /** Shows a spinner on a terminal once `work` takes longer than half a second. */
  async progress<T>(label: string, work: Promise<T>): Promise<T> {
    const { stderr } = this.#environment
    if (this.json || !stderr.isTTY) return work
    let frame = 0
    let ticker: ReturnType<typeof setInterval> | undefined
    const starter = setTimeout(() => {
      ticker = setInterval(() => {
        void stderr.write(`\r${FRAMES[frame++ % FRAMES.length]} ${printable(label)}`)
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

  /** Prints the failure and answers the exit code. */
  async fail(fault: Fault): Promise<number> {
    const { message, next, requestId } = describe(fault)
    const exit = INTERRUPTED.includes(fault.code) ? EXIT_INTERRUPTED : fault.exit
    if (this.json) {
      const { code, retryable } = fault
      const violations = fault.violations.map(({ path, rule }) => ({ path, rule }))
      const error = { code, message, retryable, requestId, next }
      const document = { error: violations.length === 0 ? error : { ...error, violations } }
      if (await this.#isPrinted(document)) return exit
    }
    const name = `${this.styled('red', 'svc')}: ${this.styled('bold', fault.code)}`
    const lines = [`${name}: ${printable(message)}`]
    for (const { path, rule } of fault.violations) lines.push(`  ${printable(`${path}: ${rule}`)}`)
    lines.push(`  ${next}`)
    if (requestId !== null) lines.push(`  ${this.styled('dim', `request ${requestId}`)}`)
    await this.warn(lines.join('\n'))
    return exit
  }

  /** Whoever cannot read stdout is told on stderr. */
  async #isPrinted(document: Json): Promise<boolean> {
    try {
      await this.#environment.stdout.write(`${printableJson(document)}\n`)
      return true
    } catch {
      return false
    }
  }
}

/** What an application refuses is nothing that an operator mends. */
const NEXT_OF_APPLICATION = 'The Function declares this error: the application says what to do.'
const NEXT_OF_KIND: Partial<Record<Kind, string>> = {
  invalid: 'Correct the request.',
  unauthenticated: 'Log in again with `svc login`.',
  forbidden: 'Ask an owner for the capability at this scope.',
  not_found: 'Check the identifiers with `svc status --remote`.',
  conflict: 'Read the state with `svc status --remote` and decide again.',
  rate_limited: 'Wait a moment and try again.',
  unavailable: 'Try again in a moment.',
}

/** What happened and what to do, from the table, the server and the place of the failure. */
function describe(fault: Fault): { message: string; next: string; requestId: string | null } {
  const answer = serverAnswer(fault)
  const row = Object.hasOwn(CODES, fault.code) ? CODES[fault.code as TableCode] : null
  const requestId = answer?.requestId ?? null
  if (fault.code === 'CLIENT_USAGE' && fault.detail !== undefined) {
    const command = fault.cause instanceof UsageCause ? fault.cause.command : null
    const next = `See \`svc ${command === null ? '' : `${command} `}--help\`.`
    return { message: fault.detail, next, requestId }
  }
  const said = row?.message ?? answer?.message ?? fault.message
  const message = fault.detail === undefined ? said : `${said} ${fault.detail}`
  const next = row?.next ?? nextOfUnknown(fault)
  return { message, next, requestId }
}

/** Of a code that is not in the table. */
function nextOfUnknown({ code, kind }: Fault): string {
  if (code.startsWith('APP_')) return NEXT_OF_APPLICATION
  return NEXT_OF_KIND[kind] ?? 'Look for the request ID in the server log.'
}

function isColoured(environment: ClientEnvironment, isTTY: boolean): boolean {
  const noColour = environment.variable('NO_COLOR')
  const named = noColour !== undefined && noColour !== ''
  return isTTY && !named && environment.variable('TERM') !== 'dumb'
}
