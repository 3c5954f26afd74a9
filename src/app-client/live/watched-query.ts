/** One watched Query: its subscription, its newest state, the listeners. */
import { parseSequence } from '../calls/responses.ts'
import { type CallError, responseInvalid } from '../errors.ts'
import { decodeResult, hasExactly } from '../results.ts'
import type { Message } from './connection.ts'

/** A watched Query as an application sees it. */
export type QueryState<Result, Failure = CallError> =
  | { readonly status: 'loading'; readonly value: undefined; readonly error: null }
  | { readonly status: 'ready'; readonly value: Result; readonly error: null }
  /** The value is the last one before the failure, if there was one. */
  | { readonly status: 'failed'; readonly value: Result | undefined; readonly error: Failure }

const LOADING = { status: 'loading', value: undefined, error: null } as const
/** Characters of a state in parts (wire decisions, section 4). */
const STATE_CHARACTERS_MAX = 8 * 1024 * 1024
const HEAD = ['version', 'type', 'subscriptionId', 'revision', 'snapshotSequence', 'releaseId']

export interface BaseState {
  readonly value: unknown
  /** The commit up to which the value is current; null where the Query read no data. */
  readonly sequence: bigint | null
}

export class WatchedQuery {
  readonly key: string
  /** The fields of its subscribe message: a call without its kind. */
  readonly request: object
  readonly listeners = new Set<() => void>()
  subscriptionId: string | null = null
  /** The newest state of the server. */
  base: BaseState | null = null
  view: QueryState<unknown> = LOADING
  /** Failures of the subscription one after the other. */
  failures = 0
  /** Cancels what is planned: the end of an unused subscription, or another attempt. */
  cancelPlan: () => void = () => undefined
  #revision = 0n
  #fragments: string[] = []

  constructor(key: string, request: object) {
    this.key = key
    this.request = request
  }

  /** A subscription begins: its first state has revision 1. */
  begin(subscriptionId: string): void {
    this.subscriptionId = subscriptionId
    this.#revision = 0n
    this.#fragments = []
  }

  end(): void {
    this.subscriptionId = null
  }

  forget(): void {
    this.base = null
    this.show(LOADING)
  }

  /** Shows a value to the listeners, unless they see it already. */
  showValue(value: unknown): void {
    if (this.view.status === 'ready' && this.view.value === value) return
    this.show({ status: 'ready', value, error: null })
  }

  fail(error: CallError): void {
    this.show({ status: 'failed', value: this.view.value, error })
  }

  show(view: QueryState<unknown>): void {
    this.view = view
    for (const listener of [...this.listeners]) listener()
  }

  /** Takes a state or a part of one. Returns whether the base changed. Throws for gaps. */
  receive(message: Message): boolean {
    const revision = parseSequence(message.revision)
    const sequence = parseSequence(message.snapshotSequence)
    if (revision !== this.#revision + 1n) throw responseInvalid('a state out of order')
    let result: unknown
    if (hasExactly(message, ...HEAD, 'result')) {
      if (this.#fragments.length > 0) throw responseInvalid('a state within another')
      result = message.result
    } else {
      const text = this.#addPart(message)
      if (text === null) return false
      result = JSON.parse(text)
    }
    this.#revision = revision
    this.failures = 0
    this.base = { value: decodeResult(result), sequence }
    return true
  }

  /** Returns the text of a result once its last part is there. */
  #addPart(message: Message): string | null {
    const { part, parts, fragment } = message
    const isNext =
      hasExactly(message, ...HEAD, 'part', 'parts', 'fragment') &&
      part === this.#fragments.length + 1 &&
      Number.isSafeInteger(parts) &&
      (parts as number) >= Math.max(2, part as number) &&
      typeof fragment === 'string'
    if (!isNext) throw responseInvalid('parts of a state out of order')
    this.#fragments.push(fragment as string)
    const length = this.#fragments.reduce((sum, each) => sum + each.length, 0)
    if (length > STATE_CHARACTERS_MAX) throw responseInvalid('a state that is too long')
    if (part !== parts) return null
    return this.#fragments.splice(0).join('')
  }
}
