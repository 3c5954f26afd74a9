/**
 * Sends spans to a receiver by OTLP/HTTP (opentelemetry.io/docs/specs/otlp). Connections are those
 * of guarded-fetch.ts: their certificates are verified, and no proxy and no redirect is followed.
 */
import { JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import { FetchFailure, readBody, send, toFetchFailure } from '../../system/guarded-fetch.ts'
import type { Secret } from '../../value/secret.ts'

export interface OtlpOptions {
  readonly url: string
  readonly protocol: 'http/protobuf' | 'http/json'
  readonly headers: readonly { readonly name: string; readonly value: Secret }[]
  /** Called for every batch, with the number of spans that the receiver did not take and why. */
  readonly onExported: (spans: number, dropped: number, reason: string | null) => void
  /** EXPORT_MILLIS by default. */
  readonly exportMillis?: number
}

/** Milliseconds that a batch may take, repetitions included: the default of OpenTelemetry. */
const EXPORT_MILLIS = 10_000
/**
 * The first pause, which doubles, and the longest one, also where the receiver asks for more: half
 * of the time of a batch, so that it can be repeated.
 */
const REPEAT_MILLIS = 1_000
const REPEAT_MILLIS_MAX = 5_000
/** Bounds the memory that a receiver can make the server use with its response. */
const RESPONSE_BYTES_MAX = 64 * 1024
/** Statuses after which the request may be repeated (OTLP, Retryable Response Codes). */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])

const FORMS = {
  'http/protobuf': { serializer: ProtobufTraceSerializer, type: 'application/x-protobuf' },
  'http/json': { serializer: JsonTraceSerializer, type: 'application/json' },
} as const

type Attempt =
  | { readonly kind: 'accepted'; readonly rejectedSpans: number }
  | { readonly kind: 'failed'; readonly reason: string; readonly repeatMillis: number | null }

export class OtlpExporter implements SpanExporter {
  readonly #options: OtlpOptions
  readonly #url: URL
  readonly #closed = new AbortController()
  #isClosing = false

  constructor(options: OtlpOptions) {
    this.#options = options
    this.#url = new URL(options.url)
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    void this.#export(spans).then(({ dropped, reason }) => {
      this.#options.onExported(spans.length, dropped, reason)
      // Losses were reported above, so the processor gets a success and does not report them again.
      done({ code: 0 })
    })
  }

  /** Batches that are sent from now on are not repeated. */
  closeSoon(): void {
    this.#isClosing = true
  }

  /** Aborts what is being sent. */
  async shutdown(): Promise<void> {
    this.#closed.abort()
  }

  async #export(
    spans: ReadableSpan[],
  ): Promise<{ readonly dropped: number; readonly reason: string | null }> {
    const { protocol, exportMillis = EXPORT_MILLIS } = this.#options
    const timeout = AbortSignal.timeout(exportMillis)
    const signal = AbortSignal.any([this.#closed.signal, timeout])
    try {
      const body = FORMS[protocol].serializer.serializeRequest(spans)
      if (body === undefined) return { dropped: spans.length, reason: 'encoding' }
      for (let repeated = 0; ; repeated++) {
        const attempt = await this.#send(body, signal)
        if (attempt.kind === 'accepted') {
          const { rejectedSpans } = attempt
          return { dropped: rejectedSpans, reason: rejectedSpans === 0 ? null : 'rejected' }
        }
        const { reason, repeatMillis } = attempt
        const isLast = this.#isClosing || repeatMillis === null || signal.aborted
        if (isLast) return { dropped: spans.length, reason }
        const millis = Math.max(repeatMillis, REPEAT_MILLIS * 2 ** repeated)
        if (!(await elapsed(Math.min(millis, REPEAT_MILLIS_MAX), signal))) {
          return { dropped: spans.length, reason }
        }
      }
    } catch (error) {
      return { dropped: spans.length, reason: error instanceof Error ? error.name : 'unknown' }
    }
  }

  async #send(body: Uint8Array, signal: AbortSignal): Promise<Attempt> {
    const { protocol, headers } = this.#options
    const { serializer, type } = FORMS[protocol]
    const url = this.#url
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
    const dial = { host: url.hostname.replace(/^\[|\]$/g, ''), port }
    try {
      const response = await send(dial, {
        url,
        method: 'POST',
        body,
        signal,
        headers: {
          ...Object.fromEntries(headers.map(({ name, value }) => [name, value.reveal()])),
          host: url.host,
          'user-agent': 'svc-server',
          accept: type,
          connection: 'close',
          'accept-encoding': 'identity',
          'content-type': type,
          'content-length': String(body.length),
        },
      })
      try {
        const status = response.statusCode ?? 0
        if (status < 200 || status > 299) {
          return {
            kind: 'failed',
            reason: `status ${status}`,
            repeatMillis: RETRYABLE.has(status)
              ? parseRetryAfter(response.headers['retry-after']) * 1000
              : null,
          }
        }
        const bytes = await readBody(response, { bodyBytesMax: RESPONSE_BYTES_MAX })
        const { partialSuccess } = serializer.deserializeResponse(bytes)
        const rejected = Number(partialSuccess?.rejectedSpans ?? 0)
        return { kind: 'accepted', rejectedSpans: Number.isSafeInteger(rejected) ? rejected : 0 }
      } finally {
        response.destroy()
      }
    } catch (error) {
      const { reason, cause } = toFetchFailure(error, signal)
      const isLost = reason === 'connection'
      return {
        kind: 'failed',
        reason: isLost ? `connection${codeOf(cause)}` : reason,
        repeatMillis: isLost ? 0 : null,
      }
    }
  }
}

/** Returns whether the time has passed before the signal was aborted. */
async function elapsed(millis: number, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(true), millis)
  const onAbort = () => resolve(false)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

function parseRetryAfter(retryAfter: string | undefined): number {
  return retryAfter !== undefined && /^[0-9]{1,4}$/.test(retryAfter) ? Number(retryAfter) : 0
}

function codeOf(cause: unknown): string {
  const inner = cause instanceof FetchFailure ? cause.cause : cause
  const code = inner instanceof Error && 'code' in inner ? inner.code : undefined
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? ` ${code}` : ''
}
