/** Requests of the page to the loopback server, which sends them on with a derived session. */
import type {
  ConsoleDownloads,
  ConsoleOperationName,
  ConsoleOperations,
  ConsoleUploads,
} from '../client/console/operations.ts'
import type { CallArguments, ReplyOf } from '../client/requests/operation-requests.ts'
import { encodeBase64Url } from '../value/base64url.ts'
import type { Capability } from '../value/capabilities.ts'
import { type EnvironmentId, encodeUlid, type ProjectId } from '../value/ids.ts'
import type { LogLine, LogRecord } from '../wire/logs.ts'
import { nowMillis } from './clock.ts'

/** The facts that the page knows from its start. */
export interface About {
  readonly version: string
  readonly operatorId: string
  readonly operatorName: string
  /** The session of the login, which the sessions of the page end with. */
  readonly sessionId: string
  readonly managementOrigin: string
  /** The options of `svc` commands that act on the Environment of the start. */
  readonly commandOptions: string
  /** True at a `svc dev`, which has one session and no operators. */
  readonly isLocal: boolean
  readonly administersOperators: boolean
  /** True if the operator manages operators at the installation, not at a Project alone. */
  readonly managesInstallation: boolean
  /** The Environment that the page shows first. */
  readonly environmentId: string
  readonly environments: readonly {
    readonly projectId: ProjectId
    readonly environmentId: EnvironmentId
    readonly name: string
    readonly capabilities: readonly Capability[]
  }[]
}

/** A failure as the command line describes it. */
export class Failure extends Error {
  readonly code: string
  readonly next: string
  readonly requestId: string | null
  readonly violations: readonly { readonly path: string; readonly rule: string }[]

  constructor({ code, message, next, requestId, violations }: FailureFields) {
    super(message)
    this.code = code
    this.next = next
    this.requestId = requestId
    this.violations = violations
  }
}

interface FailureFields {
  readonly code: string
  readonly message: string
  readonly next: string
  readonly requestId: string | null
  readonly violations: Failure['violations']
}

const ENDED: FailureFields = {
  code: 'CONSOLE_ENDED',
  message: 'The console does not answer. It ends with its command and after hours without use.',
  next: 'Run svc console again and open the address that it shows.',
  requestId: null,
  violations: [],
}

/** Returns the failure that an exception is; a defect of the page is one too. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error
  const message = error instanceof Error ? error.message : 'The page failed.'
  return new Failure({ ...ENDED, code: 'CONSOLE_FAILED', message, next: 'Reload the page.' })
}

interface PostOptions {
  /** True for a request that a timer made, which does not count as a use. */
  readonly background?: boolean
  readonly signal?: AbortSignal
}

function post(path: string, body: unknown, options: PostOptions): Promise<Response> {
  const { background = false, signal } = options
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (background) headers['x-console-background'] = 'yes'
  return send(path, { method: 'POST', headers, body: JSON.stringify(body) }, signal)
}

async function send(path: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
  try {
    return await fetch(path, signal === undefined ? init : { ...init, signal })
  } catch (error) {
    if (signal?.aborted === true) throw error
    throw new Failure(ENDED)
  }
}

const JSON_TYPE = 'application/json'

async function resultOf<T>(response: Response): Promise<T> {
  if (response.status === 503 && response.headers.get('content-type') !== JSON_TYPE) {
    const message = 'The console has as many requests or transfers as it allows.'
    const next = 'Wait until one has ended, then try again.'
    throw new Failure({ ...ENDED, code: 'CONSOLE_BUSY', message, next })
  }
  if (response.status === 413 && response.headers.get('content-type') !== JSON_TYPE) {
    const next = 'Use the command line for a value of this size.'
    throw new Failure({ ...ENDED, code: 'CONSOLE_TOO_LARGE', message: 'It is too large.', next })
  }
  if (response.headers.get('content-type') !== JSON_TYPE) throw new Failure(ENDED)
  const answer = await response.json()
  if (answer.error !== undefined) throw new Failure(answer.error)
  return answer.result
}

export async function readAbout(): Promise<About> {
  return resultOf(await post('about', {}, {}))
}

/** The parts of a request without the Environment and the Operation ID, which the server adds. */
export type PageInput<N extends ConsoleOperationName> =
  CallArguments<ConsoleOperations[N]> extends [input?: infer I] ? Omitted<NonNullable<I>> : never
type Omitted<I> = {
  readonly [K in keyof I as K extends 'query' | 'body' ? K : never]: I[K]
} & { readonly params?: Readonly<Record<string, string>> }

/** Sends the request of an operation and returns its response. Throws a Failure. */
export async function call<N extends ConsoleOperationName>(
  name: N,
  environmentId: string,
  input: PageInput<N> | Record<never, never> = {},
  options: PostOptions = {},
): Promise<ReplyOf<ConsoleOperations[N]>> {
  return resultOf(await post(`call/${name}`, { environmentId, ...input }, options))
}

/** The parts of a request whose response or body is a file. */
interface TransferInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number>>
  readonly body?: unknown
}

/**
 * Has the browser save the response of an operation as a file. Throws the Failure of a request
 * that the server rejects; the browser reports what fails later.
 */
export async function download(
  name: keyof ConsoleDownloads,
  environmentId: string,
  input: TransferInput,
  fileName: string,
): Promise<void> {
  const prepared = await post(`prepare/${name}`, { environmentId, ...input, fileName }, {})
  const { path } = await resultOf<{ readonly path: string }>(prepared)
  const link = document.createElement('a')
  link.href = path
  link.download = ''
  link.click()
}

/** Sends a file as the body of an operation and returns the response. Throws a Failure. */
export async function upload<N extends keyof ConsoleUploads>(
  name: N,
  environmentId: string,
  input: Omit<TransferInput, 'body'> & { readonly contentType: string },
  file: Blob,
): Promise<ReplyOf<ConsoleUploads[N]>> {
  const call = new TextEncoder().encode(JSON.stringify({ environmentId, ...input }))
  const headers = {
    'content-type': 'application/octet-stream',
    'x-console-call': encodeBase64Url(call),
  }
  return resultOf(await send(`upload/${name}`, { method: 'POST', headers, body: file }))
}

/** Calls `onRecord` for each new record of the log until the signal fires. Throws a Failure. */
export async function follow(
  environmentId: string,
  query: Readonly<Record<string, string>>,
  onRecord: (record: LogRecord) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await post('follow', { environmentId, query }, { signal })
  if (response.headers.get('content-type') !== 'application/x-ndjson') {
    return resultOf(response)
  }
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + value).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const record = JSON.parse(line) as LogLine | { readonly error: FailureFields }
      if ('error' in record) throw new Failure(record.error)
      if ('event' in record) onRecord(record)
    }
  }
}

/** Returns a new identifier, such as the ID of a document of a table. */
export function newId(prefix: string): string {
  return `${prefix}_${encodeUlid(nowMillis(), crypto.getRandomValues(new Uint8Array(10)))}`
}

export function nowMicros(): string {
  return String(BigInt(nowMillis()) * 1000n)
}
