/** Calls of the page: the name of an operation and its parts, as the request of a route. */
import { Fault } from '../../errors/fault.ts'
import { IdFactory, type IdSource } from '../../value/ids.ts'
import { isJsonObject, type Json, parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { followLogs } from '../../wire/operations/logs.ts'
import { ENVIRONMENT_BASE, type ManagementOperation } from '../../wire/operations/operation.ts'
import { localName } from '../local-names.ts'
import type { AnyInput } from '../requests/operation-requests.ts'
import { type OnLine, RESPONSE_BYTES_MAX } from '../requests/requests.ts'
import type { ConsoleEnvironment, ConsoleSession, ConsoleSessions } from './console-sessions.ts'
import { delegationOf, withLookUp } from './delegations.ts'
import { consoleDownload, consoleOperation, consoleUpload } from './operations.ts'
import { type DownloadSink, downloadInto } from './page-transfers.ts'

/** Bytes of a response that the page reads at most. */
export const RESULT_BYTES_MAX = 16 * 1024 * 1024

/** A call as the page sends it. */
interface PageCall {
  readonly environmentId: string
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | number>>
  readonly body: Json | undefined
  /** Name that a download is saved under, where every system takes it. */
  readonly fileName: string
  /** Media type of an upload. */
  readonly contentType: string
}

/** The file of an upload. */
export interface UploadContent {
  readonly stream: ReadableStream<Uint8Array>
  readonly length: number
}

/** Sends the calls of the page with the derived sessions. */
export class PageCalls {
  readonly #sessions: ConsoleSessions
  readonly #ids: IdFactory

  constructor(sessions: ConsoleSessions, source: IdSource) {
    this.#sessions = sessions
    this.#ids = new IdFactory(source)
  }

  /**
   * Sends the request of an operation and returns its response; null for one without a body. Throws
   * CLIENT_USAGE for an operation or parts that the page may not send, and what the request throws.
   */
  async call(name: string, bytes: Uint8Array): Promise<Json> {
    const operation = known(consoleOperation(name), name)
    const { environment, input, call } = this.#resolved(operation, bytes)
    const sending = async (session: ConsoleSession['session']): Promise<Json> =>
      ((await session.anyCall(operation, input)) as unknown as Json | undefined) ?? null
    const given = delegationOf(operation, call.body)
    if (given === null) return sending(await this.#sessionFor(operation, environment))
    const { role, scope } = given
    return withLookUp(operation, input, this.#sessions.whileDelegating(role, scope, sending))
  }

  /** Sends the request of an operation whose response is a file, and passes the file on. */
  async download(name: string, bytes: Uint8Array, sink: DownloadSink): Promise<void> {
    const operation = known(consoleDownload(name), name)
    const { environment, input, call } = this.#resolved(operation, bytes)
    const session = await this.#sessionFor(operation, environment)
    const fileName = localName(call.fileName) ?? 'download'
    const begin = (length: number | null): void => sink.begin({ name: fileName, length })
    await downloadInto({ begin, write: sink.write }, session, operation, input)
  }

  /**
   * Sends the request of an operation whose body is a file, and returns its response. Throws
   * PLATFORM_BODY_TOO_LARGE before it reads the file.
   */
  async upload(name: string, bytes: Uint8Array, content: UploadContent): Promise<Json> {
    const operation = known(consoleUpload(name), name)
    const { stream: body, length } = content
    if (length > bodyBytesMaxOf(operation)) throw new Fault('PLATFORM_BODY_TOO_LARGE')
    const { environment, input, call } = this.#resolved(operation, bytes)
    const session = await this.#sessionFor(operation, environment)
    const request = { ...input, body, contentType: call.contentType }
    return ((await session.anyUpload(operation, request, length)) as Json | undefined) ?? null
  }

  #resolved(operation: ManagementOperation, bytes: Uint8Array) {
    const call = parsed(bytes)
    const environment = this.#environmentOf(call)
    return { call, environment, input: this.#inputOf(operation, call, environment) }
  }

  /** Passes on the lines of the log of an Environment until `onLine` returns LAST_LINE. */
  async follow(bytes: Uint8Array, onLine: OnLine): Promise<void> {
    const call = parsed(bytes)
    const environment = this.#environmentOf(call)
    const input = this.#inputOf(followLogs, call, environment)
    const session = await this.#sessions.of(environment)
    await session.anyLines(followLogs, onLine, input)
  }

  /** Operators without administration see and end their own sessions alone. */
  #sessionFor({ access }: ManagementOperation, environment: ConsoleEnvironment) {
    const sessions = this.#sessions
    if (access.kind !== 'operator') return sessions.of(environment)
    const isAdministration = access.capability !== null || sessions.administersOperators
    return isAdministration ? sessions.ofAdministration() : sessions.of(environment)
  }

  #environmentOf({ environmentId }: PageCall): ConsoleEnvironment {
    const environment = this.#sessions.environment(environmentId)
    if (environment === null) throw rejected('The operator cannot reach this Environment.')
    return environment
  }

  #inputOf(
    operation: ManagementOperation,
    { params, query, body }: PageCall,
    { projectId, environmentId }: ConsoleEnvironment,
  ): AnyInput {
    const isOfEnvironment = operation.path.startsWith(ENVIRONMENT_BASE)
    const all = isOfEnvironment ? { ...params, projectId, environmentId } : params
    for (const [, name = ''] of operation.path.matchAll(/:(\w+)/g)) {
      if (!Object.hasOwn(all, name)) throw rejected(`The parameter ${name} is missing.`)
    }
    const bytesMax = operation.responseBytesMax ?? RESPONSE_BYTES_MAX
    return {
      params: all,
      query,
      body,
      responseBytesMax: Math.min(bytesMax, RESULT_BYTES_MAX),
      ...(operation.operationId !== 'none' && { operationId: this.#ids.make('opn') }),
    }
  }
}

function known(operation: ManagementOperation | null, name: string): ManagementOperation {
  if (operation === null) throw rejected(`The console has no operation ${name}.`)
  return operation
}

function bodyBytesMaxOf({ body }: ManagementOperation): number {
  return body !== null && 'bytesMax' in body ? body.bytesMax : 0
}

function rejected(detail: string): Fault {
  return new Fault('CLIENT_USAGE', { detail })
}

function parsed(bytes: Uint8Array): PageCall {
  const json = jsonOf(bytes)
  if (!isJsonObject(json)) throw rejected('A call is a JSON object.')
  const { environmentId, params = {}, query = {}, body } = json
  const { fileName = '', contentType = OCTETS } = json
  if (typeof environmentId !== 'string') throw rejected('A call names its Environment.')
  const isText = (value: Json): boolean => typeof value === 'string'
  if (typeof fileName !== 'string' || typeof contentType !== 'string' || !isTypeText(contentType)) {
    throw rejected('The name and the media type of a file are texts.')
  }
  if (!isJsonObject(params) || !Object.values(params).every(isText)) {
    throw rejected('The parameters of a call are texts.')
  }
  const isPlain = (value: Json): boolean => isText(value) || typeof value === 'number'
  if (!isJsonObject(query) || !Object.values(query).every(isPlain)) {
    throw rejected('The query of a call has texts and numbers.')
  }
  return {
    environmentId,
    params: params as PageCall['params'],
    query: query as PageCall['query'],
    body,
    fileName,
    contentType,
  }
}

const OCTETS = 'application/octet-stream'

/** Keeps text that is not a media type out of a header; the server checks the rest. */
function isTypeText(text: string): boolean {
  return /^[\x20-\x7e]{1,255}$/.test(text)
}

function jsonOf(bytes: Uint8Array): Json {
  try {
    return parseStrictJson(bytes)
  } catch (error) {
    if (error instanceof ValidationError) throw rejected('The body of a call is not JSON.')
    throw error
  }
}
