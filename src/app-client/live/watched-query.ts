/** One watched Query: its subscription, its newest state, the listeners. */
import type { CallError } from '../errors.ts'
import { decodeResult } from '../results.ts'
import type { Message } from './connection.ts'
import { StateReader } from './state-reader.ts'

/** A watched Query as an application sees it. */
export type QueryState<Result, Failure = CallError> =
  | { readonly status: 'loading'; readonly value: undefined; readonly error: null }
  | { readonly status: 'ready'; readonly value: Result; readonly error: null }
  /** The value is the last one before the failure, if there was one. */
  | { readonly status: 'failed'; readonly value: Result | undefined; readonly error: Failure }

const LOADING = { status: 'loading', value: undefined, error: null } as const

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
  #reader = new StateReader()

  constructor(key: string, request: object) {
    this.key = key
    this.request = request
  }

  /** A subscription begins: its first state has revision 1. */
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
    const state = this.#reader.read(message)
    if (state === null) return false
    this.failures = 0
    this.base = { value: decodeResult(state.result), sequence: state.sequence }
    return true
  }
}
