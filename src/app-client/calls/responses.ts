/** Reads and checks the responses to calls (contract/application.md, Client retry policy). */
import { isId } from '../../value/ids.ts'
import { CallError, responseInvalid } from '../errors.ts'
import type { FunctionKind } from '../references.ts'
import { decodeResult, hasFields } from '../results.ts'

export interface Answer {
  readonly result: unknown
  readonly requestId: string
  readonly releaseId: string
  /** The sequence of a Mutation's commit; null if it wrote nothing, and for other kinds. */
  readonly commitSequence: bigint | null
}

const U64_MAX = 2n ** 64n - 1n

/** Parses a canonical unsigned decimal; null stays null. Throws CLIENT_RESPONSE_INVALID. */
export function parseSequence(value: unknown): bigint | null {
  if (value === null) return null
  if (typeof value === 'string' && /^(0|[1-9][0-9]{0,19})$/.test(value)) {
    const sequence = BigInt(value)
    if (sequence <= U64_MAX) return sequence
  }
  throw responseInvalid('a sequence that is not canonical')
}

/** Thrown when the stream of a body fails before its end. */
export class BrokenBody extends Error {}

/** Reads the bytes of a body. Throws CLIENT_RESPONSE_INVALID beyond the bound, and BrokenBody. */
export async function readBody(response: Response, bytesMax: number): Promise<Uint8Array> {
  const tooLong = () => responseInvalid(`more than ${bytesMax} bytes`)
  if (Number(response.headers.get('content-length')) > bytesMax) {
    await response.body?.cancel().catch(() => undefined)
    throw tooLong()
  }
  // React Native has no streams: only the declared length can be checked before the end.
  const reader = response.body?.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    if (reader === undefined) chunks.push(new Uint8Array(await response.arrayBuffer()))
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done || value === undefined) break
      chunks.push(value)
      length += value.length
      if (length <= bytesMax) continue
      void reader?.cancel().catch(() => undefined)
      throw tooLong()
    }
  } catch (error) {
    throw error instanceof CallError ? error : new BrokenBody('', { cause: error })
  }
  return joined(chunks)
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  if (chunks.length === 1) return chunks[0]!
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

/** Parses the body; undefined if it is not JSON. */
export async function readJson(response: Response, bytesMax: number): Promise<unknown> {
  const bytes = await readBody(response, bytesMax)
  const type = response.headers.get('content-type') ?? ''
  if (!/^application\/json *(;|$)/i.test(type)) return undefined
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/** Reads the error of an error envelope; null for any other body. */
export function readError(json: unknown, { headers, status }: Response): CallError | null {
  if (status < 400 || !hasFields(json, 'version', 'status', 'requestId', 'error')) return null
  const { version, requestId, error } = json
  const isEnvelope = version === 1 && json.status === 'error' && isId('req', requestId)
  if (!isEnvelope || headers.get('x-service-request-id') !== requestId) return null
  return readErrorFields(error, requestId)
}

/** Reads the fields of an error. Realtime messages have the same ones. */
export function readErrorFields(error: unknown, requestId: string | null): CallError | null {
  if (!hasFields(error, 'code', 'message', 'retryable')) return null
  const { code, message, retryable } = error
  if (typeof code !== 'string' || typeof message !== 'string') return null
  if (typeof retryable !== 'boolean') return null
  return new CallError(code, message, { requestId, retryable })
}

/** Checks and decodes a successful response. Throws CLIENT_RESPONSE_INVALID. */
export function readAnswer(
  json: unknown,
  { headers }: Response,
  { kind, target }: { readonly kind: FunctionKind; readonly target: string },
): Answer {
  const fields = ['version', 'status', 'requestId', 'releaseId', 'result', 'metadata']
  if (!hasFields(json, ...fields)) throw responseInvalid('an unknown response')
  const { requestId, releaseId, metadata } = json
  const isAnswer = json.version === 1 && json.status === 'ok'
  if (!isAnswer || !isId('req', requestId) || !isId('rel', releaseId)) {
    throw responseInvalid('an unknown response')
  }
  const isCorrelated =
    headers.get('x-service-request-id') === requestId &&
    headers.get('x-service-release-id') === releaseId &&
    (!target.startsWith('release:') || target === `release:${releaseId}`)
  if (!isCorrelated) throw responseInvalid('the response to another request', requestId)
  const commitSequence = readMetadata(metadata, kind)
  if (commitSequence === undefined) {
    throw responseInvalid(`metadata that is not that of a ${kind}`, requestId)
  }
  return { requestId, releaseId, commitSequence, result: decodeResult(json.result) }
}

/** Reads the commit sequence; undefined for metadata of another kind or form. */
function readMetadata(metadata: unknown, kind: FunctionKind): bigint | null | undefined {
  if (kind === 'query') {
    if (!hasFields(metadata, 'kind', 'snapshotSequence')) return undefined
    parseSequence(metadata.snapshotSequence)
    return metadata.kind === kind ? null : undefined
  }
  if (kind === 'action') {
    if (!hasFields(metadata, 'kind', 'schedulesCreated')) return undefined
    const isCount = parseSequence(metadata.schedulesCreated) !== null
    return metadata.kind === kind && isCount ? null : undefined
  }
  if (!hasFields(metadata, 'kind', 'commitSequence', 'replayed', 'attempts')) return undefined
  const { replayed, attempts } = metadata
  const isCounted = Number.isSafeInteger(attempts) && (attempts as number) >= 1
  if (metadata.kind !== kind || typeof replayed !== 'boolean' || !isCounted) return undefined
  return parseSequence(metadata.commitSequence)
}
