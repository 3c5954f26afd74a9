/**
 * Sends a request with bounds on time, attempts and bytes of the response. It follows no redirect
 * and validates every response, in which it overlooks unknown fields. `replay` decides which
 * failures are retried; sessions.ts adds the credentials of the operator.
 */
import type { Code } from '../../errors/codes.ts'
import { Fault, isFault, type Violation } from '../../errors/fault.ts'
import { KINDS, type Kind } from '../../errors/kinds.ts'
import type { HttpMethod } from '../../value/http/routes.ts'
import { isId } from '../../value/ids.ts'
import type { Secret } from '../../value/secret.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { text } from '../../wire/fields.ts'
import { isJson } from '../../wire/media-types.ts'
import { openSchema, type Schema, schema } from '../../wire/schema.ts'
import type { ClientEnvironment } from '../environment.ts'
import { explanation } from '../explanations.ts'
import { ConnectFailure } from '../network/connections.ts'

export const DEADLINE_MS = 30_000
export const RESPONSE_BYTES_MAX = 4 * 1024 * 1024
/** Attempts in any case; while the server is away more follow, for a time. */
const ATTEMPTS_MAX = 4
const BACKOFF_MS = 200
const BACKOFF_MS_MAX = 1_000
/**
 * Maximum time for retries while a server rejects requests as unavailable. A server that stops
 * rejects them for up to 15 s, until those in flight are answered.
 */
const UNAVAILABLE_MS = 20_000
/**
 * Maximum time for retries while the connection fails. A server that restarts opens its address
 * within 0.2 s, and a supervisor starts one that crashed after 0.5 s.
 */
const UNREACHABLE_MS = 5_000
const RETRY_AFTER_MS_MAX = 10_000

export interface Call<T> {
  readonly method: HttpMethod
  readonly origin: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Bearer token of the Authorization header. */
  readonly bearer?: Secret
  /** A stream is read once, so its request is sent by `sendFromStream`. */
  readonly body?: Json | Uint8Array | ReadableStream<Uint8Array> | undefined
  readonly contentType?: string | undefined
  /** Null for a response without a body (204 No content), `bytes` for a BytesReply. */
  readonly reply: Schema<T> | 'bytes' | null
  /**
   * `safe`: the request may be repeated even if it arrived. `unsafe`: a lost response is a
   * CLIENT_RESULT_UNCERTAIN.
   */
  readonly replay: 'safe' | 'unsafe'
  /** Milliseconds for all attempts together; DEADLINE_MS by default. */
  readonly deadlineMs?: number | undefined
  readonly responseBytesMax?: number | undefined
  /** Receives the headers of each response before its body is read. */
  readonly onHeaders?: (headers: Headers) => void
}

/** A response whose body is not JSON. */
export interface BytesReply {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
}

export interface Network {
  readonly environment: ClientEnvironment
  /** Fires when the command is interrupted. */
  readonly signal: AbortSignal
}

/**
 * Sends a request, with retries. Throws the code of the server, CLIENT_SERVER_UNREACHABLE,
 * CLIENT_RESULT_UNCERTAIN, CLIENT_RESPONSE_INVALID, and on an interrupt CLIENT_INTERRUPTED for a
 * GET or else CLIENT_CHANGE_INTERRUPTED.
 */
export async function send<T>(network: Network, call: Call<T>): Promise<T> {
  const { system } = network.environment
  const begins = system.monotonicMillis()
  const ends = begins + (call.deadlineMs ?? DEADLINE_MS)
  let sent = false
  for (let attempt = 1; ; attempt++) {
    try {
      return await sendOnce(network, call, ends - system.monotonicMillis())
    } catch (caught) {
      const error: unknown = sent && isUnsent(caught) ? lostBefore(caught) : caught
      sent ||= !isUnsent(error)
      if (!isFault(error) || !isRetried(error, call.replay)) throw error
      const wait = retryWait(error, attempt, system.randomBytes(1)[0]!)
      const waited = system.monotonicMillis() + wait
      const isLast = attempt >= ATTEMPTS_MAX && waited - begins > outageMs(error)
      if (isLast || waited >= ends) throw error
      await network.environment.pause(wait, network.signal).catch(() => {
        throw interruptedFault(call)
      })
    }
  }
}

/** Drops the mark that nothing was sent, since an earlier attempt may have arrived. */
function lostBefore({ detail }: Fault): Fault {
  return new Fault('CLIENT_SERVER_UNREACHABLE', { detail })
}

function isRetried(fault: Fault, replay: Call<unknown>['replay']): boolean {
  if (fault.cause instanceof UnsentCause && fault.cause.isLasting) return false
  return replay === 'safe' && (fault.retryable || fault.code === 'CLIENT_SERVER_UNREACHABLE')
}

/** Returns how long the failure may last before it is reported; 0 if it is not an outage. */
function outageMs({ code, kind }: Fault): number {
  if (code === 'CLIENT_SERVER_UNREACHABLE') return UNREACHABLE_MS
  return kind === 'unavailable' ? UNAVAILABLE_MS : 0
}

/**
 * Doubles from BACKOFF_MS up to BACKOFF_MS_MAX, with a jitter of one half, unless the server sends
 * Retry-After.
 */
function retryWait(fault: Fault, attempt: number, random: number): number {
  if (fault.retryAfterSeconds !== undefined) {
    return Math.min(fault.retryAfterSeconds * 1000, RETRY_AFTER_MS_MAX)
  }
  const most = Math.min(BACKOFF_MS * 2 ** (attempt - 1), BACKOFF_MS_MAX)
  return most / 2 + (most / 2) * (random / 255)
}

/**
 * Sends a request whose body is a stream, in one attempt, as fast as the server reads it. Throws as
 * `send` does; a lost response is a CLIENT_RESULT_UNCERTAIN.
 */
export function sendFromStream<T>(network: Network, call: Call<T>): Promise<T> {
  return sendOnce(network, { ...call, replay: 'unsafe' }, call.deadlineMs ?? DEADLINE_MS)
}

async function sendOnce<T>(network: Network, call: Call<T>, leftMs: number): Promise<T> {
  const deadline = AbortSignal.timeout(Math.max(1, Math.trunc(leftMs)))
  let response: Response
  let bytes: Uint8Array
  try {
    response = await network.environment.fetch(call.origin + call.path, {
      method: call.method,
      headers: headersOf(call),
      ...(call.body === undefined ? {} : { body: bodyOf(call.body) }),
      // Credentials are never sent to another address, so a redirect is not followed.
      redirect: 'manual',
      signal: AbortSignal.any([deadline, network.signal]),
    })
    call.onHeaders?.(response.headers)
    bytes = await readBounded(response, call.responseBytesMax ?? RESPONSE_BYTES_MAX)
  } catch (error) {
    throw transportFault(network, call, deadline.aborted ? deadline.reason : error)
  }
  if (response.status >= 200 && response.status <= 299) return readReply(call, response, bytes)
  throw await failureOf(call, response, bytes)
}

/** A stream says something every 15 s (contract/wire.md, Logs). */
const SILENCE_MS = 45_000
const LINE_CHARACTERS_MAX = 1024 * 1024

/** A reader of lines that returns this has read enough, and the request ends. */
export const LAST_LINE = Symbol('last line')
/** Receives one line. */
export type OnLine = (line: string) => Promise<unknown>

type StreamCall = Omit<Call<unknown>, 'reply' | 'replay' | 'deadlineMs' | 'responseBytesMax'>

/**
 * Calls `onLine` for each line of the answer in its turn; resolves at its end. Faults: those of
 * `send`; CLIENT_SERVER_UNREACHABLE also where nothing comes for 45 s.
 */
export function sendForLines(network: Network, call: StreamCall, onLine: OnLine): Promise<void> {
  return streamed(network, call, async (_, body) => {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const bytes of body) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop()!
      for (const line of lines) if ((await onLine(line)) === LAST_LINE) return
      if (rest.length > LINE_CHARACTERS_MAX) throw new Fault('CLIENT_RESPONSE_INVALID')
    }
  })
}

/** Receives the next bytes of a response; those after them are read once it resolves. */
export type OnBytes = (bytes: Uint8Array) => unknown

/** Receives the head of a successful response before its bytes. */
export type OnHead = (head: Omit<BytesReply, 'bytes'>) => void

/** Calls `onBytes` for the bytes of the answer, and fails as `sendForLines` does. */
export function sendForBytes(
  network: Network,
  call: StreamCall,
  onBytes: OnBytes,
  onHead: OnHead = () => {},
): Promise<void> {
  return streamed(network, call, async (head, body) => {
    onHead(head)
    for await (const bytes of body) await onBytes(bytes)
  })
}

/** Status of a response with the range that the request names. */
const PARTIAL = 206

async function streamed(
  network: Network,
  call: StreamCall,
  read: (head: Omit<BytesReply, 'bytes'>, body: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  const silence = new AbortController()
  const late = (): void => silence.abort(new DOMException('no answer in time', 'TimeoutError'))
  let timer = setTimeout(late, SILENCE_MS)
  const full: Call<unknown> = { ...call, reply: null, replay: 'safe' }
  // The server is not silent while the reader is busy.
  async function* heard(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const bytes of body) {
      clearTimeout(timer)
      yield bytes
      timer = setTimeout(late, SILENCE_MS)
    }
  }
  try {
    const response = await network.environment.fetch(call.origin + call.path, {
      method: call.method,
      headers: headersOf(full),
      ...(call.body === undefined ? {} : { body: bodyOf(call.body) }),
      redirect: 'manual',
      signal: AbortSignal.any([silence.signal, network.signal]),
    })
    call.onHeaders?.(response.headers)
    const { status, headers, body } = response
    if (status !== 200 && !(status === PARTIAL && call.headers?.range !== undefined)) {
      throw await failureOf(full, response, await readBounded(response, RESPONSE_BYTES_MAX))
    }
    await read({ status, headers }, heard(body as unknown as AsyncIterable<Uint8Array>))
  } catch (error) {
    throw transportFault(network, full, silence.signal.aborted ? silence.signal.reason : error)
  } finally {
    clearTimeout(timer)
  }
}

function headersOf(call: Call<unknown>): Record<string, string> {
  const headers: Record<string, string> = { accept: 'application/json', ...call.headers }
  if (call.bearer !== undefined) headers.authorization = `Bearer ${call.bearer.reveal()}`
  if (call.body !== undefined) headers['content-type'] = call.contentType ?? 'application/json'
  return headers
}

function bodyOf(body: NonNullable<Call<unknown>['body']> | null): BodyInit {
  // A copy would double the memory of a package. No array here has a shared buffer.
  if (body instanceof Uint8Array) return body as Uint8Array<ArrayBuffer>
  return body instanceof ReadableStream ? body : JSON.stringify(body)
}

/** Reads the body. Throws CLIENT_RESPONSE_INVALID for more than `bytesMax`. */
export async function readBounded(response: Response, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = response.body?.getReader()
  for (;;) {
    const next = await reader?.read()
    if (next === undefined || next.done) return Buffer.concat(chunks)
    length += next.value.length
    if (length > bytesMax) {
      await reader?.cancel().catch(() => {})
      throw new Fault('CLIENT_RESPONSE_INVALID', {
        detail: `The response has more than ${bytesMax} bytes.`,
      })
    }
    chunks.push(next.value)
  }
}

function transportFault(network: Network, call: Call<unknown>, error: unknown): Fault {
  if (isFault(error)) return error
  if (network.signal.aborted) return interruptedFault(call)
  const unsent = error instanceof ConnectFailure ? new UnsentCause(error.isLasting) : undefined
  const detail = `${call.origin}: ${reasonOf(error)}.`
  if (unsent === undefined && call.replay === 'unsafe')
    return new Fault('CLIENT_RESULT_UNCERTAIN', { detail })
  return new Fault('CLIENT_SERVER_UNREACHABLE', { detail, cause: unsent })
}

function reasonOf(error: unknown): string {
  if (error instanceof ConnectFailure) return error.message
  if (error instanceof Error && error.name === 'TimeoutError') return 'no response in time'
  return systemCode(error) ?? 'the connection was lost'
}

/** Marks a Fault of a request of which no byte was sent. */
class UnsentCause {
  /** True if another attempt fails in the same way. */
  readonly isLasting: boolean

  constructor(isLasting: boolean) {
    this.isLasting = isLasting
  }
}

/** Tells whether no attempt of the request was sent. */
export function isUnsent(error: unknown): error is Fault {
  return isFault(error) && error.cause instanceof UnsentCause
}

function interruptedFault(call: Call<unknown>): Fault {
  return new Fault(call.method === 'GET' ? 'CLIENT_INTERRUPTED' : 'CLIENT_CHANGE_INTERRUPTED')
}

/** Returns the system error code of an error or of one of its causes; null for none. */
export function systemCode(error: unknown): string | null {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code
  }
  return null
}

async function readReply<T>(call: Call<T>, response: Response, bytes: Uint8Array): Promise<T> {
  if (call.reply === null) return undefined as T
  const { status, headers } = response
  if (call.reply === 'bytes') return { status, headers, bytes } as T
  const json = jsonOf(response, bytes)
  // arktype takes longer to load than most commands take, so it is loaded for a response only.
  const { read } = await import('../../wire/reading/read.ts')
  return read(openSchema(call.reply), json, 'CLIENT_RESPONSE_INVALID')
}

/** Parses the body as strict JSON. Throws CLIENT_RESPONSE_INVALID. */
export function jsonOf(response: Response, bytes: Uint8Array): Json {
  if (!isJson(response.headers.get('content-type'))) {
    throw new Fault('CLIENT_RESPONSE_INVALID', {
      detail: `HTTP ${response.status} without a JSON body.`,
    })
  }
  try {
    return parseStrictJson(bytes)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('CLIENT_RESPONSE_INVALID', {
      detail: `HTTP ${response.status} with a body that is not JSON.`,
    })
  }
}

/** Statuses with which a gateway reports that the server is not available. */
const GATEWAY: readonly number[] = [502, 503, 504]

async function failureOf(
  call: Call<unknown>,
  response: Response,
  bytes: Uint8Array,
): Promise<Fault> {
  const envelope = await errorEnvelope(response, bytes)
  if (envelope === null) {
    const { status } = response
    const detail = `${call.origin} responded with HTTP ${status}, not in the format of svc-server.`
    if (!GATEWAY.includes(response.status)) return new Fault('CLIENT_RESPONSE_INVALID', { detail })
    return call.replay === 'unsafe'
      ? new Fault('CLIENT_RESULT_UNCERTAIN', { detail })
      : new Fault('CLIENT_SERVER_UNREACHABLE', { detail })
  }
  const { code, message, retryable, violations } = envelope
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new Fault(code as Code, {
    // The HTTP status gives the kind of a code that this version does not know.
    kind: kindOfStatus(response.status),
    retryable,
    violations,
    cause: explanation({ requestId: envelope.requestId, message }),
    retryAfterSeconds: retryAfter >= 0 ? retryAfter : undefined,
  })
}

interface ErrorEnvelope {
  readonly requestId: string | null
  readonly code: string
  readonly message: string
  readonly retryable: boolean
  readonly violations: readonly Violation[]
}

/** The parts of an error response that are read; a newer server may send more. */
const FailureReply = schema({
  version: '1',
  status: "'error'",
  'requestId?': 'unknown',
  error: {
    code: text(/^[A-Z][A-Z0-9_]{0,127}$/, 'a code'),
    message: 'string',
    'retryable?': 'unknown',
    'violations?': 'unknown',
    '+': 'ignore',
  },
  '+': 'ignore',
})
const ViolationField = schema({ path: 'string', rule: 'string', '+': 'ignore' })

async function errorEnvelope(response: Response, bytes: Uint8Array): Promise<ErrorEnvelope | null> {
  let json: Json
  try {
    json = jsonOf(response, bytes)
  } catch {
    return null
  }
  const { fits } = await import('../../wire/reading/read.ts')
  if (!fits(FailureReply, json)) return null
  const { error, requestId } = json
  const violations = Array.isArray(error.violations) ? error.violations : []
  return {
    requestId: isId('req', requestId) ? requestId : null,
    code: error.code,
    message: error.message,
    retryable: error.retryable === true,
    violations: violations
      .filter((each) => fits(ViolationField, each))
      .map(({ path, rule }) => ({ path, rule })),
  }
}

function kindOfStatus(status: number): Kind {
  const kinds = Object.keys(KINDS) as Kind[]
  const exact = kinds.find((kind) => KINDS[kind].status === status)
  return exact ?? (status < 500 ? 'invalid' : 'internal')
}
