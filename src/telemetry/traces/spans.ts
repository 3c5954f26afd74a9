/**
 * Spans as the server describes them. Without an endpoint to export to, no `Traces` is created and
 * OpenTelemetry is not loaded.
 *
 * Names and attributes are those of OpenTelemetry's semantic conventions where they exist, and
 * begin with `svc.` elsewhere. An attribute is never a key, a token, an argument, a result, a
 * stored value, a URL or the message of an error.
 */
import type { LogFields } from '../log.ts'

export type SpanAttributes = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface SpanStart {
  /** A name such as `POST /v1/query`, of a small fixed set. */
  readonly name: string
  readonly kind: 'server' | 'client' | 'internal'
  readonly attributes: SpanAttributes
}

export interface SpanEnd {
  readonly attributes?: SpanAttributes
  /** The code or reason of a failure of the server or of its peer. */
  readonly error?: string
}

export interface Span {
  /** True if the trace is exported. */
  readonly isSampled: boolean
  /** Fields that join log records with the trace; empty if it is not exported. */
  readonly logFields: LogFields
  /** Returns the headers of a request that the span sends: `traceparent` and `tracestate`. */
  headers(): readonly (readonly [name: string, value: string])[]
  /** Starts a span that this one causes. */
  child(start: SpanStart): Span
  set(attributes: SpanAttributes): void
  /** Ends the span. Nothing else may be called afterwards but `headers` and `child`. */
  end(end?: SpanEnd): void
}

export interface RequestStart extends SpanStart {
  /** Headers of the request, which may continue a trace of the client. */
  readonly headers: Headers
  /** Monotonic milliseconds. */
  readonly startedMillis: number
}

export interface Traces {
  /** Starts the span of a request whose caller is authenticated. */
  request(start: RequestStart): Span
  /**
   * Returns a span that another process of this server has started, which exports it: `headers` are
   * those that the span returned there. Here it has children alone.
   */
  started(headers: Headers): Span
  /** Starts a trace of work that no request causes. */
  root(start: SpanStart): Span
  /** Adds attributes to every span that starts from now on. */
  addAttributes(attributes: SpanAttributes): void
  /** Exports what has ended, and waits for that for at most `millis`. Never rejects. */
  close(millis?: number): Promise<void>
}
