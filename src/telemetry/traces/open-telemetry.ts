/** Traces by the OpenTelemetry SDK. Only this folder loads it, and only where they are exported. */
import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { System } from '../../system/system.ts'
import { type Logger, redactText } from '../log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { DroppedSpans } from './dropped-spans.ts'
import { OtlpExporter, type OtlpOptions } from './otlp-exporter.ts'
import { Sampling } from './sampling.ts'
import type { RequestStart, Span, SpanAttributes, SpanEnd, SpanStart, Traces } from './spans.ts'
import { parseTraceContext, type TraceContext, traceParent } from './trace-context.ts'

export interface TracesOptions extends Omit<OtlpOptions, 'onExported'> {
  readonly serviceName: string
  readonly version: string
  /** Share of the traces that begin here, from 0 to 1. */
  readonly ratio: number
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  /** Milliseconds between two exports; BATCH_MILLIS by default. */
  readonly batchMillis?: number
}

/** Spans in memory, those that are being exported included: about 2 KiB each. */
const SPANS_MAX = 4_096
const BATCH_SPANS = 512
const BATCH_MILLIS = 2_000
/** Time limit of the last export during the shutdown of the server. */
const CLOSE_MILLIS = 3_000
const ATTRIBUTES_MAX = 32
const ATTRIBUTE_CHARACTERS_MAX = 256

export function openTraces(options: TracesOptions): Traces {
  return new ExportedTraces(options)
}

class ExportedTraces implements Traces {
  readonly #system: System
  readonly #sampling: Sampling
  readonly #provider: TracerProvider
  readonly #tracer: Tracer
  readonly #exporter: OtlpExporter
  readonly #dropped: DroppedSpans
  #attributes: SpanAttributes = {}
  #queued = 0
  #isClosed = false

  constructor(options: TracesOptions) {
    const { system, log, metrics, ratio, serviceName, version } = options
    const { spansExported, spansDropped } = metrics.counters
    this.#system = system
    this.#sampling = new Sampling(system, ratio)
    this.#dropped = new DroppedSpans(log, system, (spans) => spansDropped.add(spans))
    this.#exporter = new OtlpExporter({
      ...options,
      onExported: (spans, dropped, reason) => {
        this.#queued -= spans
        spansExported.add(spans - dropped)
        if (dropped > 0) this.#dropped.add(dropped, reason ?? '')
      },
    })
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes({
        'service.name': serviceName,
        'service.version': version,
      }),
      // What is not sampled never reaches the SDK.
      sampler: new AlwaysOnSampler(),
      idGenerator: {
        generateTraceId: () => randomId(system, 16),
        generateSpanId: () => randomId(system, 8),
      },
      spanLimits: {
        attributeCountLimit: ATTRIBUTES_MAX,
        attributeValueLengthLimit: ATTRIBUTE_CHARACTERS_MAX,
      },
      spanProcessors: [this.#processor(options.batchMillis ?? BATCH_MILLIS)],
    })
    this.#tracer = this.#provider.getTracer('svc', version)
    metrics.addSource(() => ({ spansQueued: this.#queued }))
  }

  request(start: RequestStart): Span {
    const { headers, startedMillis } = start
    const caller = readCaller(headers)
    return this.#sampling.samples(caller)
      ? this.#begin(start, remoteContext(caller), startedMillis)
      : new UnsampledSpan(this.#system, caller)
  }

  started(headers: Headers): Span {
    const span = readCaller(headers)
    if (span === null || !span.isSampled) return new UnsampledSpan(this.#system, span)
    const system = this.#system
    const clock = new TraceClock(system, system.monotonicMillis())
    return new StartedSpan({ tracer: this.#tracer, clock, common: this.#attributes }, span)
  }

  root(start: SpanStart): Span {
    return this.#sampling.samples(null)
      ? this.#begin(start, ROOT_CONTEXT, this.#system.monotonicMillis())
      : new UnsampledSpan(this.#system, null)
  }

  addAttributes(attributes: SpanAttributes): void {
    this.#attributes = { ...this.#attributes, ...attributes }
  }

  async close(millis = CLOSE_MILLIS): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#exporter.closeSoon()
    const timer = setTimeout(() => void this.#exporter.shutdown(), millis)
    try {
      await this.#provider.shutdown()
    } finally {
      clearTimeout(timer)
      this.#dropped.report()
    }
  }

  #begin(start: SpanStart, parent: Context, startedMillis: number): Span {
    const system = this.#system
    const clock = new TraceClock(system, startedMillis)
    const common = this.#attributes
    return new SampledSpan({ tracer: this.#tracer, clock, common }, start, parent, startedMillis)
  }

  /** Bounds what the SDK holds, and counts what it would drop silently. */
  #processor(scheduledDelayMillis: number): SpanProcessor {
    const batches = new BatchSpanProcessor({
      exporter: this.#exporter,
      maxQueueSize: SPANS_MAX,
      maxExportBatchSize: BATCH_SPANS,
      scheduledDelayMillis,
      // The exporter ends every batch in time.
      exportTimeoutMillis: 60_000,
    })
    return {
      onStart: () => {},
      onEnd: (span: ReadableSpan) => {
        if (this.#isClosed || this.#queued >= SPANS_MAX) {
          this.#dropped.add(1, this.#isClosed ? 'closed' : 'queue')
          return
        }
        this.#queued += 1
        batches.onEnd(span)
      },
      forceFlush: () => batches.forceFlush(),
      shutdown: () => batches.shutdown(),
    }
  }
}

/** The state that the spans of one trace share in this process. */
interface TraceState {
  readonly tracer: Tracer
  readonly clock: TraceClock
  /** Attributes of each span. */
  readonly common: SpanAttributes
}

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
} as const

class SampledSpan implements Span {
  readonly isSampled = true
  readonly #state: TraceState
  readonly #span: SdkSpan
  readonly #context: Context

  constructor(state: TraceState, start: SpanStart, parent: Context, startedMillis?: number) {
    const { tracer, clock, common } = state
    const attributes = { ...common, ...start.attributes }
    const startTime = clock.at(startedMillis)
    this.#state = state
    this.#span = tracer.startSpan(
      start.name,
      { kind: KINDS[start.kind], attributes: present(attributes), startTime },
      parent,
    )
    this.#context = trace.setSpan(ROOT_CONTEXT, this.#span)
  }

  get logFields() {
    const { traceId, spanId } = this.#span.spanContext()
    return { trace_id: traceId, span_id: spanId }
  }

  headers() {
    const { traceId, spanId, traceState } = this.#span.spanContext()
    const state = traceState?.serialize() ?? null
    return headersOf({ traceId, spanId, isSampled: true, state })
  }

  child(start: SpanStart): Span {
    return new SampledSpan(this.#state, start, this.#context)
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(present(attributes))
  }

  end({ attributes, error }: SpanEnd = {}): void {
    if (attributes !== undefined) this.set(attributes)
    if (error !== undefined) {
      this.#span.setAttribute('error.type', error)
      this.#span.setStatus({ code: SpanStatusCode.ERROR })
    }
    this.#span.end(this.#state.clock.at())
  }
}

/** A span that another process of this server has started, sets the attributes of and ends. */
class StartedSpan implements Span {
  readonly isSampled = true
  readonly #state: TraceState
  readonly #started: TraceContext

  constructor(state: TraceState, started: TraceContext) {
    this.#state = state
    this.#started = started
  }

  get logFields() {
    const { traceId, spanId } = this.#started
    return { trace_id: traceId, span_id: spanId }
  }

  headers() {
    return headersOf(this.#started)
  }

  child(start: SpanStart): Span {
    return new SampledSpan(this.#state, start, remoteContext(this.#started))
  }

  set(): void {}
  end(): void {}
}

/** The position of a request in a trace that is not exported. Its headers tell callees so. */
class UnsampledSpan implements Span {
  readonly isSampled = false
  readonly logFields = {}
  readonly #system: System
  readonly #caller: TraceContext | null
  #context: TraceContext | null = null

  constructor(system: System, caller: TraceContext | null) {
    this.#system = system
    this.#caller = caller
  }

  headers() {
    this.#context ??= {
      traceId: this.#caller?.traceId ?? randomId(this.#system, 16),
      spanId: randomId(this.#system, 8),
      isSampled: false,
      state: this.#caller?.state ?? null,
    }
    return headersOf(this.#context)
  }

  child(): Span {
    return this
  }

  set(): void {}
  end(): void {}
}

/** Wall clock of one trace: it begins with the clock of the system, and never steps. */
class TraceClock {
  readonly #system: System
  readonly #startedMillis: number
  /** Milliseconds since the Unix epoch at `startedMillis`. */
  readonly #epochMillis: number

  constructor(system: System, startedMillis: number) {
    this.#system = system
    this.#startedMillis = startedMillis
    this.#epochMillis = system.nowMillis() - (system.monotonicMillis() - startedMillis)
  }

  /** Returns seconds and nanoseconds since the epoch, of now by default. */
  at(monotonicMillis = this.#system.monotonicMillis()): [number, number] {
    const millis = this.#epochMillis + (monotonicMillis - this.#startedMillis)
    const seconds = Math.floor(millis / 1000)
    return [seconds, Math.floor((millis - seconds * 1000) * 1000) * 1000]
  }
}

function readCaller(headers: Headers): TraceContext | null {
  const parent = headers.get('traceparent')
  if (parent === null) return null
  const context = parseTraceContext(parent, headers.get('tracestate'))
  // A credential in the wrong place is not passed on.
  if (context === null || context.state === null) return context
  return redactText(context.state) === context.state ? context : { ...context, state: null }
}

function remoteContext(caller: TraceContext | null): Context {
  if (caller === null) return ROOT_CONTEXT
  const { traceId, spanId, state } = caller
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: 1,
    isRemote: true,
    ...(state !== null && { traceState: createTraceState(state) }),
  })
}

function headersOf(context: TraceContext): readonly (readonly [string, string])[] {
  const parent = ['traceparent', traceParent(context)] as const
  return context.state === null ? [parent] : [parent, ['tracestate', context.state]]
}

function present(attributes: SpanAttributes): Record<string, string | number | boolean> {
  const out: Record<string, string | number | boolean> = {}
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) out[name] = value
  }
  return out
}

/** An ID of zeros is invalid, and as rare as a collision. */
function randomId(system: System, bytes: number): string {
  const id = system.randomBytes(bytes)
  if (id.every((byte) => byte === 0)) id[0] = 1
  return id.toHex()
}
