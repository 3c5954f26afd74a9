/** One watched Query: its subscription, its newest state and its listeners. */
import type { CallError } from '../errors.ts'
import { decodeResult } from '../results.ts'
import type { Message } from './connection.ts'
import { StateReader } from './state-reader.ts'

/** The state of a watched Query for the application. */
export type QueryState<Result, Failure = CallError> =
  | { readonly status: 'loading'; readonly value: undefined; readonly error: null }
  | { readonly status: 'ready'; readonly value: Result; readonly error: null }
  /** The value is the last one before the failure, if there is one. */
  | { readonly status: 'failed'; readonly value: Result | undefined; readonly error: Failure }

const LOADING = { status: 'loading', value: undefined, error: null } as const

export interface BaseState {
  readonly value: unknown
  /** The commit up to which the value is current; null if the Query read no data. */
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
  /** Number of consecutive failures of the subscription. */
  failures = 0
  /** Cancels the timer, which ends an unused subscription or starts another attempt. */
  cancelPlan: () => void = () => undefined
  #reader = new StateReader()

  constructor(key: string, request: object) {
    this.key = key
    this.request = request
  }

  /** Starts a subscription, whose first state has revision 1. */
  begin(subscriptionId: string): void {
    this.subscriptionId = subscriptionId
    this.#reader = new StateReader()
  }

  end(): void {
    this.subscriptionId = null
  }

  forget(): void {
    this.base = null
    this.show(LOADING)
  }

  /** Calls the listeners unless the value is the current one. */
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

  /** Reads a state or a part of one. Returns whether the base changed. Throws for gaps. */
  receive(message: Message): boolean {
    const state = this.#reader.read(message)
    if (state === null) return false
    this.failures = 0
    this.base = { value: decodeResult(state.result), sequence: state.sequence }
    return true
  }
}
