/** Implements `createClient` of `svc/client`, the client of an application. */
import { IdFactory, isId } from '../value/ids.ts'
import { type Origin, sendCall } from './calls/calls.ts'
import { MutationQueue, type SettledMutation } from './calls/mutation-queue.ts'
import { type TokenHook, Tokens } from './calls/tokens.ts'
import { type CallError, clientError } from './errors.ts'
import {
  type DownloadedFile,
  type DownloadGrant,
  type DownloadOptions,
  type DownloadUrl,
  download,
  downloadUrl,
  type StoredFile,
  type TransferOptions,
  type UploadGrant,
  upload,
} from './files/transfers.ts'
import type { ConnectionStatus } from './live/connection.ts'
import type { LayerValues } from './live/layers.ts'
import { LiveQueries, type Observation } from './live/live-queries.ts'
import { type Page, type PagedObservation, PagedQuery } from './live/pages.ts'
import { type Platform, standardPlatform } from './platform.ts'
import type {
  Action,
  CallParameters,
  ErrorOf,
  FunctionKind,
  FunctionReference,
  Mutation,
  PageArguments,
  Query,
} from './references.ts'
import { encodeArguments, type Shapes } from './shapes.ts'
import type { MutationStore } from './stores/mutation-store.ts'

export interface ClientOptions {
  /** The application address of the server, such as https://api.example.com. */
  readonly url: string
  readonly applicationKey: string
  /** The target that serves the calls, such as `channel:production`. */
  readonly target: string
  readonly token?: TokenHook
  /** Keeps Mutations until the server has responded; without it they fail at their deadline. */
  readonly store?: MutationStore
  /** Called with the outcome of each Mutation that an earlier page load had stored. */
  readonly onSettled?: (settled: SettledMutation) => void
  /** Milliseconds for all attempts of a Query or a Mutation; 30,000 by default. */
  readonly deadlineMillis?: number
  /** Milliseconds for an Action; 11 minutes by default, a minute more than an Action may run. */
  readonly actionDeadlineMillis?: number
  /** Most bytes of one response; 32 MiB by default. */
  readonly responseBytesMax?: number
  /** Replaces parts of the runtime, for tests and for runtimes that lack them. */
  readonly platform?: Partial<Platform>
}

export interface CallOptions {
  readonly deadlineMillis?: number
  readonly signal?: AbortSignal
}

export interface MutationOptions extends CallOptions {
  /** The operation ID of an earlier call, to send exactly that Mutation again. */
  readonly operationId?: string
  /**
   * Changes the values of watched Queries until the Mutation fails, or until the server has sent
   * states that include it. It runs again on each new state, so it must have no other effects.
   */
  readonly optimistic?: (local: LocalValues) => void
}

/** The watched Queries as an optimistic update sees them. */
export interface LocalValues {
  /** Returns undefined if the Query is not watched or has no state yet. */
  get<A, R, E extends string>(reference: Query<A, R, E>, args: NoInfer<A>): R | undefined
  set<A, R, E extends string>(reference: Query<A, R, E>, args: NoInfer<A>, value: NoInfer<R>): void
}

export interface ConnectionState {
  /** `waiting` while the server cannot be reached: shown values may be stale. */
  readonly status: ConnectionStatus
  /** Number of Mutations without a response. */
  readonly pendingMutations: number
  /** The failure of the last attempt to connect. */
  readonly error: CallError | null
}

const CALL_MILLIS = 30_000
const ACTION_MILLIS = 660_000
const RESPONSE_BYTES_MAX = 32 * 1024 * 1024

export function createClient(options: ClientOptions): Client {
  return new Client(options, standardPlatform())
}

export class Client {
  readonly #options: ClientOptions
  readonly #origin: Origin
  readonly #platform: Platform
  readonly #ids: IdFactory
  readonly #live: LiveQueries
  readonly #mutations: MutationQueue
  readonly #listeners = new Set<() => void>()
  readonly #undoEvents: readonly (() => void)[]
  #state: ConnectionState = { status: 'idle', pendingMutations: 0, error: null }

  constructor(options: ClientOptions, platform: Platform) {
    const url = options.url.replace(/\/+$/, '')
    const { applicationKey, responseBytesMax = RESPONSE_BYTES_MAX } = options
    const tokens = new Tokens(options.token)
    this.#options = options
    this.#platform = { ...platform, ...options.platform }
    this.#origin = { platform: this.#platform, url, applicationKey, tokens, responseBytesMax }
    this.#ids = new IdFactory(this.#platform)
    const onChange = () => this.#changed()
    this.#live = new LiveQueries({ ...this.#origin, onChange })
    this.#mutations = new MutationQueue({
      platform: this.#platform,
      store: options.store ?? null,
      deadlineMillis: options.deadlineMillis ?? CALL_MILLIS,
      onChange,
      onSettled: (settled) => options.onSettled?.(settled),
      send: (mutation) => sendCall(this.#origin, { ...mutation, kind: 'mutation' }),
    })
    this.#undoEvents = [
      this.#platform.onWake(() => {
        this.#live.connection.wake()
        this.#mutations.wake()
      }),
      this.#platform.onOffline(() => this.#live.connection.offline()),
    ]
  }

  /** Calls a Query once. Like every call, it rejects with CallError. */
  query<A, R, E extends string>(
    reference: Query<A, R, E>,
    ...[args, options]: CallParameters<A, CallOptions>
  ): Promise<R> {
    return this.#call(reference, args, options, CALL_MILLIS) as Promise<R>
  }

  /** Calls an Action. It is never sent again, also after a lost response. */
  action<A, R, E extends string>(
    reference: Action<A, R, E>,
    ...[args, options]: CallParameters<A, CallOptions>
  ): Promise<R> {
    const millis = this.#options.actionDeadlineMillis ?? ACTION_MILLIS
    return this.#call(reference, args, { deadlineMillis: millis, ...options }, millis) as Promise<R>
  }

  /** Calls a Mutation after all earlier ones. It takes effect at most once. */
  async mutation<A, R, E extends string>(
    reference: Mutation<A, R, E>,
    ...[args, options = {}]: CallParameters<A, MutationOptions>
  ): Promise<R> {
    const { operationId = this.#ids.make('opn'), optimistic, signal } = options
    if (!isId('opn', operationId)) {
      throw clientError('ARGUMENTS_INVALID', 'operationId is not an operation ID.')
    }
    const layer =
      optimistic === undefined
        ? null
        : this.#live.addLayer((values) => optimistic(this.#localValues(values)))
    try {
      const { result, commitSequence } = await this.#mutations.add({
        operationId,
        function: reference.name,
        target: this.#options.target,
        body: this.#envelope(reference, args, operationId),
        createdAtMillis: this.#platform.nowMillis(),
        deadlineMillis: options.deadlineMillis ?? this.#options.deadlineMillis ?? CALL_MILLIS,
        signal,
      })
      if (layer !== null) {
        if (commitSequence === null) this.#live.removeLayer(layer)
        else this.#live.commitLayer(layer, commitSequence)
      }
      return result as R
    } catch (error) {
      if (layer !== null) this.#live.removeLayer(layer)
      throw error
    }
  }

  /**
   * Calls `onValue` with the result of a Query, now and after each change. Returns a function that
   * stops the watch. Without `onError` only `observe` shows a failure.
   */
  watch<A, R, E extends string>(
    reference: Query<A, R, E>,
    args: NoInfer<A>,
    onValue: (value: NoInfer<R>) => void,
    onError?: (error: ErrorOf<NoInfer<E>>) => void,
  ): () => void {
    const observation = this.observe(reference, args)
    let last: unknown
    const report = (): void => {
      const state = observation.current()
      if (state === last) return
      last = state
      if (state.status === 'ready') onValue(state.value)
      else if (state.status === 'failed') onError?.(state.error)
    }
    const stop = observation.subscribe(report)
    report()
    return stop
  }

  /** Returns a Query to watch. Equal Queries share one subscription. Throws ARGUMENTS_INVALID. */
  observe<A, R, E extends string>(
    reference: Query<A, R, E>,
    args: NoInfer<A>,
  ): Observation<R, ErrorOf<E>> {
    const text = encodeArguments(reference.arguments as Shapes, args)
    const { target } = this.#options
    const request = { target, function: reference.name, arguments: JSON.parse(text) }
    return this.#live.observe(keyOf(reference, text), request) as Observation<R, ErrorOf<E>>
  }

  /**
   * Watches a list in pages of `pageSize` items. The Function takes `cursor`, `limit` and, for
   * pages without gaps, `until`, and returns what `paginate` returns. `args` are its other
   * arguments.
   */
  paginate<A, I, E extends string>(
    reference: Query<A, Page<I>, E>,
    args: PageArguments<A>,
    { pageSize }: { readonly pageSize: number },
  ): PagedObservation<I, ErrorOf<E>> {
    const canBound = Object.hasOwn(reference.arguments, 'until')
    const limit = reference.arguments.limit === 'float64' ? pageSize : BigInt(pageSize)
    const watchPage = (range: { cursor: string | null; until: string | null }) => {
      const page = range.until === null ? { cursor: range.cursor } : range
      return this.observe(reference, { ...args, ...page, limit } as A)
    }
    return new PagedQuery(watchPage, canBound) as PagedObservation<I, ErrorOf<E>>
  }

  /** Uploads bytes with the grant that an Action returned. An upload is never sent again. */
  upload(
    grant: UploadGrant,
    body: Blob | Uint8Array<ArrayBuffer>,
    options?: TransferOptions & { readonly contentType?: string },
  ): Promise<StoredFile> {
    return upload(this.#origin, grant, body, options)
  }

  /** Downloads a file or a part of it with a grant, and checks its length and digest. */
  download(grant: DownloadGrant, options?: DownloadOptions): Promise<DownloadedFile> {
    return download(this.#origin, grant, options)
  }

  /**
   * Returns the URL of a file for `<img>`, `<video>` or a link, from what
   * `ctx.storage.createDownloadUrl` made. Never log or store it. Throws ARGUMENTS_INVALID.
   */
  downloadUrl(made: DownloadUrl): string {
    return downloadUrl(this.#origin, made)
  }

  /** The state of the connection and of pending Mutations, for display. */
  readonly connection: { current(): ConnectionState; subscribe(run: () => void): () => void } = {
    current: () => this.#state,
    subscribe: (listener) => {
      this.#listeners.add(listener)
      return () => this.#listeners.delete(listener)
    },
  }

  /**
   * Connects and sends waiting Mutations at once. React Native applications call it when the
   * network is back.
   */
  reconnectNow(): void {
    if (this.#live.connection.status !== 'idle') this.#live.connection.reconnect()
    this.#mutations.wake()
  }

  /** Call this when the user changes. Clears all watched states and reconnects. */
  identityChanged(): void {
    this.#live.forgetAll()
  }

  /** Closes the client. The next client of the store sends the Mutations that are stored. */
  close(): void {
    for (const undo of this.#undoEvents) undo()
    this.#mutations.close()
    this.#live.close()
  }

  async #call(
    reference: FunctionReference<FunctionKind, unknown, unknown, string>,
    args: unknown,
    options: CallOptions = {},
    millis: number,
  ): Promise<unknown> {
    const { kind } = reference
    const { result } = await sendCall(this.#origin, {
      kind,
      target: this.#options.target,
      body: this.#envelope(reference, args, null),
      operationId: null,
      deadlineMillis: options.deadlineMillis ?? this.#options.deadlineMillis ?? millis,
      signal: options.signal,
    })
    return result
  }

  #envelope(
    reference: { readonly name: string; readonly arguments: object },
    args: unknown,
    operationId: string | null,
  ): string {
    const encoded = encodeArguments(reference.arguments as Shapes, args)
    const { target } = this.#options
    const head = { version: 1, target, function: reference.name }
    const fields = operationId === null ? head : { ...head, operationId }
    return `${JSON.stringify(fields).slice(0, -1)},"arguments":${encoded}}`
  }

  #localValues(values: LayerValues): LocalValues {
    const key = (reference: { readonly name: string; readonly arguments: object }, args: unknown) =>
      keyOf(reference, encodeArguments(reference.arguments as Shapes, args))
    return {
      get: <A, R, E extends string>(reference: Query<A, R, E>, args: NoInfer<A>) =>
        values.get(key(reference, args)) as R | undefined,
      set: (reference, args, value) => values.set(key(reference, args), value),
    }
  }

  #changed(): void {
    const { status, error } = this.#live.connection
    this.#state = { status, error, pendingMutations: this.#mutations.pending }
    for (const listener of [...this.#listeners]) listener()
  }
}

function keyOf({ name }: { readonly name: string }, argumentsText: string): string {
  return `${name} ${argumentsText}`
}
