/**
 * The ordered channel between the main process and an application process: messages that were
 * posted in one turn of the event loop are sent together, and a request gets one answer.
 */

import type { Code } from '../../errors/codes.ts'
import { Fault, type Violation } from '../../errors/fault.ts'
import type { Kind } from '../../errors/kinds.ts'

/** A failure as it is sent. */
interface SentFailure {
  readonly code: Code
  readonly kind: Kind
  readonly detail: string | undefined
  readonly violations: readonly Violation[]
  readonly retryable: boolean
  readonly retryAfterSeconds: number | undefined
}

type Envelope<Message, Request> =
  | { readonly post: Message }
  | { readonly request: Request; readonly id: number }
  | { readonly cancels: number }
  | { readonly answers: number; readonly result: unknown }
  | { readonly answers: number; readonly failure: SentFailure }

/** The messages and requests of one side, which are sent as structured clones. */
export interface Side {
  readonly message: unknown
  readonly request: unknown
}

export interface ChannelOptions<Theirs extends Side> {
  /** Sends messages; false once the other process has ended. */
  readonly send: (envelopes: readonly unknown[]) => void
  readonly onMessage: (message: Theirs['message']) => void
  /** Answers a request. `signal` is aborted when the asking side no longer waits. */
  readonly onRequest: (request: Theirs['request'], signal: AbortSignal) => Promise<unknown>
  /** Called after all messages that arrived together. */
  readonly onReceived?: () => void
  /** The failure of requests that wait for an answer. */
  readonly lost: () => Fault
}

export class Channel<Ours extends Side, Theirs extends Side> {
  readonly #options: ChannelOptions<Theirs>
  #unsent: Envelope<Ours['message'], Ours['request']>[] = []
  readonly #asked = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #answering = new Map<number, AbortController>()
  #nextId = 0
  #isClosed = false

  constructor(options: ChannelOptions<Theirs>) {
    this.#options = options
  }

  post(message: Ours['message']): void {
    this.#send({ post: message })
  }

  /** Rejects with the failure of the other side, and with `lost` once it has ended. */
  ask<Result>(request: Ours['request'], signal?: AbortSignal): Promise<Result> {
    if (this.#isClosed) return Promise.reject(this.#options.lost())
    const id = this.#nextId++
    const answer = Promise.withResolvers<unknown>()
    this.#asked.set(id, answer)
    this.#send({ request, id })
    const cancel = () => this.#asked.has(id) && this.#send({ cancels: id })
    if (signal?.aborted) cancel()
    else signal?.addEventListener('abort', cancel, { once: true })
    return answer.promise as Promise<Result>
  }

  /** Resolves when everything that was posted before was passed to `send`. */
  async sent(): Promise<void> {
    while (this.#unsent.length > 0) await new Promise((resolve) => setImmediate(resolve))
  }

  /** Takes what the other side sent together. */
  receive(envelopes: readonly unknown[]): void {
    for (const envelope of envelopes as Envelope<Theirs['message'], Theirs['request']>[]) {
      if ('post' in envelope) this.#options.onMessage(envelope.post)
      else if ('request' in envelope) void this.#answer(envelope)
      else if ('cancels' in envelope) this.#answering.get(envelope.cancels)?.abort()
      else this.#answered(envelope)
    }
    this.#options.onReceived?.()
  }

  /** Fails all requests: the other process has ended. */
  close(): void {
    this.#isClosed = true
    this.#unsent = []
    for (const { reject } of this.#asked.values()) reject(this.#options.lost())
    this.#asked.clear()
    for (const controller of this.#answering.values()) controller.abort()
  }

  async #answer({ request, id }: { readonly request: Theirs['request']; readonly id: number }) {
    const controller = new AbortController()
    this.#answering.set(id, controller)
    try {
      const result = await this.#options.onRequest(request, controller.signal)
      this.#send({ answers: id, result })
    } catch (error) {
      this.#send({ answers: id, failure: sentFailure(error) })
    } finally {
      this.#answering.delete(id)
    }
  }

  #answered(envelope: {
    readonly answers: number
    readonly result?: unknown
    readonly failure?: SentFailure
  }) {
    const asked = this.#asked.get(envelope.answers)
    this.#asked.delete(envelope.answers)
    if (envelope.failure === undefined) asked?.resolve(envelope.result)
    else asked?.reject(new Fault(envelope.failure.code, envelope.failure))
  }

  #send(envelope: Envelope<Ours['message'], Ours['request']>): void {
    if (this.#isClosed) return
    if (this.#unsent.length === 0) setImmediate(() => this.#flush())
    this.#unsent.push(envelope)
  }

  #flush(): void {
    const envelopes = this.#unsent
    this.#unsent = []
    if (!this.#isClosed) this.#options.send(envelopes)
  }
}

function sentFailure(error: unknown): SentFailure {
  const fault = error instanceof Fault ? error : new Fault('INTERNAL', { cause: error })
  const { code, kind, violations, retryable, retryAfterSeconds } = fault
  return { code, kind, detail: detailOf(fault), violations, retryable, retryAfterSeconds }
}

/** The private detail; that of the cause too, which is not sent. */
function detailOf({ detail, cause }: Fault): string | undefined {
  if (cause === undefined) return detail
  const text = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
  return detail === undefined ? text : `${detail}: ${text}`
}
