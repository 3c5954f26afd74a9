/**
 * A receiver of OTLP/HTTP on 127.0.0.1 that keeps the spans it gets. The fields are those of
 * opentelemetry-proto: trace/v1/trace.proto, and its JSON form.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string
  readonly traceState: string
  readonly name: string
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  readonly startNanos: bigint
  readonly endNanos: bigint
  readonly attributes: Readonly<Record<string, unknown>>
  /** 0 unset, 2 error. */
  readonly status: number
  readonly statusMessage: string
  /** Attributes of the program that made the span. */
  readonly resource: Readonly<Record<string, unknown>>
}

export interface ReceiverReply {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string
  /** True if the request gets no response. */
  readonly isSilent?: boolean
}

export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = []
  readonly requests: { path: string; headers: IncomingMessage['headers']; bytes: Buffer }[] = []
  /** Decides the reply to each request; spans of requests with another status than 200 are lost. */
  answer: () => ReceiverReply = () => ({})
  readonly #server: Server

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const bytes = Buffer.concat(chunks)
      const { url = '', headers } = request
      this.requests.push({ path: url, headers, bytes })
      const { status = 200, headers: sent = {}, body = '', isSilent } = this.answer()
      if (isSilent) return
      const isJson = headers['content-type'] === 'application/json'
      if (status === 200) this.spans.push(...(isJson ? spansOfJson(bytes) : spansOfProtobuf(bytes)))
      const type = isJson ? 'application/json' : 'application/x-protobuf'
      response.writeHead(status, { 'content-type': type, ...sent }).end(body)
    })
  }

  static async start(port = 0): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver()
    await new Promise<void>((resolve) => receiver.#server.listen(port, '127.0.0.1', resolve))
    return receiver
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the shape is that of the JSON form of OTLP.
type Json = any

function spansOfJson(bytes: Buffer): ReceivedSpan[] {
  const attributesOf = (list: Json) =>
    Object.fromEntries(list.map(({ key, value }: Json) => [key, Object.values(value)[0]]))
  return JSON.parse(bytes.toString('utf8')).resourceSpans.flatMap(
    ({ resource, scopeSpans }: Json) =>
      scopeSpans.flatMap(({ spans }: Json) =>
        spans.map((span: Json) => ({
          traceId: span.traceId,
          spanId: span.spanId,
          name: span.name,
          kind: span.kind,
          parentSpanId: span.parentSpanId ?? '',
          traceState: span.traceState ?? '',
          startNanos: BigInt(span.startTimeUnixNano),
          endNanos: BigInt(span.endTimeUnixNano),
          attributes: attributesOf(span.attributes),
          status: span.status?.code ?? 0,
          statusMessage: span.status?.message ?? '',
          resource: attributesOf(resource.attributes),
        })),
      ),
  )
}

function spansOfProtobuf(bytes: Buffer): ReceivedSpan[] {
  return messages(bytes, 1).flatMap((resourceSpans) => {
    const [resource] = messages(resourceSpans, 1)
    const scopes = messages(resourceSpans, 2)
    return scopes.flatMap((scope) =>
      messages(scope, 2).map((span) => spanOfProtobuf(span, keyValues(messages(resource!, 1)))),
    )
  })
}

function spanOfProtobuf(bytes: Buffer, resource: ReceivedSpan['resource']): ReceivedSpan {
  const hex = (field: number) => messages(bytes, field)[0]?.toString('hex') ?? ''
  const text = (field: number) => messages(bytes, field)[0]?.toString('utf8') ?? ''
  const status = messages(bytes, 15)[0] ?? Buffer.alloc(0)
  return {
    traceId: hex(1),
    spanId: hex(2),
    traceState: text(3),
    parentSpanId: hex(4),
    name: text(5),
    kind: Number(numbers(bytes, 6)[0] ?? 0),
    startNanos: numbers(bytes, 7)[0]!,
    endNanos: numbers(bytes, 8)[0]!,
    attributes: keyValues(messages(bytes, 9)),
    status: Number(numbers(status, 3)[0] ?? 0),
    statusMessage: messages(status, 2)[0]?.toString('utf8') ?? '',
    resource,
  }
}

function keyValues(list: readonly Buffer[]): Record<string, unknown> {
  const anyValue = (any: Buffer): unknown => {
    const [text] = messages(any, 1)
    if (text !== undefined) return text.toString('utf8')
    const [flag] = numbers(any, 2)
    return flag === undefined ? Number(numbers(any, 3)[0]) : flag === 1n
  }
  return Object.fromEntries(
    list.map((pair) => [messages(pair, 1)[0]!.toString('utf8'), anyValue(messages(pair, 2)[0]!)]),
  )
}

function messages(bytes: Buffer, field: number): Buffer[] {
  return fieldsOf(bytes).flatMap(({ number, value }) =>
    number === field && typeof value !== 'bigint' ? [value] : [],
  )
}

function numbers(bytes: Buffer, field: number): bigint[] {
  return fieldsOf(bytes).flatMap(({ number, value }) =>
    number === field && typeof value === 'bigint' ? [value] : [],
  )
}

/** Reads the fields of a protobuf message: protobuf.dev/programming-guides/encoding. */
function fieldsOf(bytes: Buffer): { readonly number: number; readonly value: bigint | Buffer }[] {
  const found: { number: number; value: bigint | Buffer }[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const number = tag >> 3
    if ((tag & 7) === 0) found.push({ number, value: varint() })
    else if ((tag & 7) === 1) {
      found.push({ number, value: bytes.readBigUInt64LE(at) })
      at += 8
    } else if ((tag & 7) === 2) {
      const length = Number(varint())
      found.push({ number, value: bytes.subarray(at, at + length) })
      at += length
    } else if ((tag & 7) === 5) {
      found.push({ number, value: BigInt(bytes.readUInt32LE(at)) })
      at += 4
    } else throw new Error(`wire type ${tag & 7}`)
  }
  return found
}
