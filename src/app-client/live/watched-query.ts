/** One watched Query: its subscription, its newest state and its listeners. */
import type { CallError } from '../errors.ts'
import { decodeResult } from '../results.ts'
import type { Message } from './connection.ts'
import { listOf, patchedList, reuse, withList } from './lists.ts'
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
  /** False once the server has sent a patch that does not fit: it then sends whole states. */
  takesPatches = true
  /** The list of the base. Its own array, since an application may sort the one that it has. */
  #list: readonly unknown[] | null = null
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
    this.#list = null
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
    const before = this.#withOwnList()
    const value = reuse(before, decodeResult(state.result))
    this.#rebase(value, state.sequence, value === before)
    return true
  }

  /** Applies a patch to the base. Returns false if it does not fit. */
  receivePatch(message: Message): boolean {
    try {
      const sequence = this.#reader.readPatch(message)
      const list = patchedList(this.base!.value, this.#list!, message)
      this.#rebase(withList(this.base!.value, list), sequence)
      return true
    } catch {
      this.takesPatches = false
      return false
    }
  }

  #withOwnList(): unknown {
    const value = this.base?.value
    return this.#list === null ? value : withList(value, this.#list)
  }

  /** Sets the base. The application keeps the value that it has if that `isSame`. */
  #rebase(value: unknown, sequence: bigint | null, isSame = false): void {
    const list = listOf(value)
    const given = list === null ? value : withList(value, [...list])
    this.base = { value: isSame ? this.base?.value : given, sequence }
    this.#list = list
  }
}
