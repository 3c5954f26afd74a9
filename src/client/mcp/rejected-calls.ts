/**
 * The record of tool calls of agents that were rejected or failed. Most of them cause no request,
 * so the audit of the server cannot have them; `svc mcp rejections` shows this record. It stands
 * beside the credentials, and names what was called and why it was rejected, never what was given.
 */
import { join } from 'node:path'
import { CODES, type TableCode } from '../../errors/codes.ts'
import { Fault, reasonText } from '../../errors/fault.ts'
import { ensurePrivateDirectory, writeFileAtomic } from '../../system/files.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { idField, Micros } from '../../wire/fields.ts'
import { type Infer, schema } from '../../wire/schema.ts'
import type { Context } from '../contexts.ts'
import { explanation } from '../explanations.ts'
import { readIfPresent, sweepTemporaries, withPath } from '../files.ts'
import { withLock } from '../sessions/locks.ts'
import { credentialsDirectory } from '../sessions/profiles.ts'
import { printable } from '../visible-text.ts'

export const REJECTED_CALLS_FILE = 'mcp-rejections-v1.json'
/**
 * Rejected calls that are kept, of all agents of one user; the oldest are removed.
 * @limit Requests: rejected calls of agents that are kept
 */
export const REJECTED_CALLS_MAX = 1_000
/** Exceeds REJECTED_CALLS_MAX rows with texts of full length. */
const FILE_BYTES_MAX = 8 * 1024 * 1024
const PRIVATE_FILE = 0o600
/** Characters of the name of a tool, and of a reason. */
const NAME_CHARACTERS_MAX = 128
const REASON_CHARACTERS_MAX = 300
/** Milliseconds between two writes, so that a loop of rejected calls does not load the disk. */
const WRITE_INTERVAL_MS = 1_000

const RejectedCallField = schema({
  atMicros: Micros,
  /** Null for a `svc dev`, and where no session was opened. */
  managementOrigin: 'string | null',
  environmentId: [idField('env'), '|', 'null'],
  /** The derived session of the agent, which the audit of the server names. */
  sessionId: [idField('ops'), '|', 'null'],
  tool: 'string',
  code: 'string',
  reason: 'string',
})
export type RejectedCall = Infer<typeof RejectedCallField>

/** The server and the session that a call was for. */
export type CallSubject = Pick<RejectedCall, 'managementOrigin' | 'environmentId' | 'sessionId'>

const RejectedCallsFile = schema({
  version: '1',
  calls: [[RejectedCallField, '[]'], '&', `unknown[] <= ${REJECTED_CALLS_MAX}`],
})

export class RejectedCalls {
  readonly path: string
  readonly #directory: string
  readonly #context: Pick<Context, 'environment' | 'output'>
  /** Calls that are not written, at most REJECTED_CALLS_MAX. */
  #pending: RejectedCall[] = []
  #writing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #warned = false

  /** Throws CLIENT_USAGE if no directory for the file is known. */
  constructor(context: Pick<Context, 'environment' | 'output'>) {
    this.#directory = credentialsDirectory(context.environment)
    this.path = join(this.#directory, REJECTED_CALLS_FILE)
    this.#context = context
  }

  /** Records a call, which is written within WRITE_INTERVAL_MS. */
  add(tool: string, fault: Fault, subject: CallSubject): void {
    const row = Object.hasOwn(CODES, fault.code) ? CODES[fault.code as TableCode] : null
    const reason = reasonText(fault) ?? row?.message ?? ''
    this.#pending.push({
      atMicros: String(this.#context.environment.system.nowMicros()),
      ...subject,
      tool: printable(tool.slice(0, NAME_CHARACTERS_MAX)),
      code: fault.code,
      reason: printable(reason.slice(0, REASON_CHARACTERS_MAX)),
    })
    this.#pending = this.#pending.slice(-REJECTED_CALLS_MAX)
    this.#timer ??= setTimeout(() => void this.flush(), WRITE_INTERVAL_MS)
  }

  /** Writes what is pending. Warns once where it cannot be written, and never rejects. */
  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    await this.#writing
    if (this.#pending.length === 0) return
    this.#writing = this.#write().catch((error: unknown) => this.#warn(error))
    await this.#writing
  }

  /** Returns the calls that are kept, newest first. Throws CLIENT_FILE_FAILED. */
  async list(): Promise<readonly RejectedCall[]> {
    return (await this.#read()).toReversed()
  }

  async #write(): Promise<void> {
    const { system } = this.#context.environment
    withPath(this.#directory, () => ensurePrivateDirectory(this.#directory))
    const lock = join(this.#directory, 'mcp-rejections-v1.lock')
    await withLock(lock, system, new AbortController().signal, async () => {
      sweepTemporaries(this.path)
      const kept = await this.#read()
      const added = this.#pending
      this.#pending = []
      const calls = [...kept, ...added].slice(-REJECTED_CALLS_MAX)
      const text = `${canonicalJson({ version: 1, calls: calls.map((call) => ({ ...call })) })}\n`
      withPath(this.path, () => writeFileAtomic(this.path, text, { mode: PRIVATE_FILE }))
    })
  }

  async #read(): Promise<readonly RejectedCall[]> {
    const bytes = readIfPresent(this.path, FILE_BYTES_MAX)
    if (bytes === null) return []
    const { parse } = await import('../../wire/reading/read.ts')
    try {
      return parse(RejectedCallsFile, parseStrictJson(bytes)).calls
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      throw new Fault('CLIENT_FILE_FAILED', {
        detail: `${this.path} is damaged: ${error.message}.`,
        cause: explanation({ next: 'Remove the file, then rejected calls are recorded again.' }),
      })
    }
  }

  #warn(error: unknown): void {
    if (this.#warned) return
    this.#warned = true
    const reason = error instanceof Error ? error.message : String(error)
    void this.#context.output.warn(
      `warning: rejected calls are not recorded in ${this.path}: ${printable(reason)}`,
    )
  }
}
