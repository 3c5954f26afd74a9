/** Reads the body of an S3 request in each of the forms that signatures give it. */
import { FILE_BYTES_MAX } from '../../../../value/files/files.ts'
import { readBody, streamBody } from '../../../bodies.ts'
import { APPLICATION_CODES } from '../../../errors.ts'
import type { Gateway } from '../../gateway.ts'
import type { Incoming } from '../../incoming.ts'
import { S3Fault } from '../errors.ts'
import { type S3Caller, UNSIGNED_PAYLOAD } from '../signature/authentication.ts'
import { ChunkSignatures } from '../signature/signatures.ts'
import { BodyChecks } from './checks.ts'
import { decodeChunks } from './chunked-bodies.ts'

/** Bound on the bytes of an XML document. It admits 10,000 parts with their checksums. */
const XML_BYTES_MAX = 4 * 1024 ** 2
/** Bound on the encoded length: the framing of small chunks is longer than their content. */
const ENCODED_BYTES_MAX = 2 * FILE_BYTES_MAX
const WHOLE = /^[0-9a-f]{64}$/

/** Chunked forms: whether the chunks are signed, and whether trailers follow. */
const STREAMING: ReadonlyMap<string, readonly [isSigned: boolean, hasTrailers: boolean]> = new Map([
  ['STREAMING-AWS4-HMAC-SHA256-PAYLOAD', [true, false]],
  ['STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER', [true, true]],
  ['STREAMING-UNSIGNED-PAYLOAD-TRAILER', [false, true]],
])

export interface S3Body {
  readonly checks: BodyChecks
  /** The decoded bytes. They are verified by `checks.finish` at the end. */
  readonly chunks: AsyncIterable<Uint8Array>
}

/** Returns the body of an upload. Throws NotImplemented for an unknown form. */
export function streamS3Body(gateway: Gateway, { request }: Incoming, caller: S3Caller): S3Body {
  const { uploadPace, turns } = gateway.transfers
  const source = streamBody(request, ENCODED_BYTES_MAX, APPLICATION_CODES, uploadPace, turns)
  return decodeBody(source, request.headers, caller)
}

/** Reads and verifies a whole body by the lengths and digests in `headers`. */
export async function readS3Body(
  gateway: Gateway,
  incoming: Incoming,
  caller: S3Caller,
  headers: Headers = incoming.request.headers,
): Promise<Uint8Array> {
  const { request } = incoming
  const { transfers } = gateway
  const bytes = await readBody(request, XML_BYTES_MAX, APPLICATION_CODES, transfers, incoming)
  const { checks, chunks } = decodeBody(once(bytes), headers, caller)
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) {
    checks.update(chunk)
    parts.push(chunk)
  }
  checks.finish()
  const whole = new Uint8Array(Buffer.concat(parts))
  incoming.bodyMemory?.release()
  return whole
}

function decodeBody(
  source: AsyncIterable<Uint8Array>,
  headers: Headers,
  { payload, signingKey, authorization }: S3Caller,
): S3Body {
  const checks = new BodyChecks(headers, payload)
  const streaming = STREAMING.get(payload)
  if (streaming === undefined) {
    if (payload === UNSIGNED_PAYLOAD || WHOLE.test(payload)) return { checks, chunks: source }
    throw new S3Fault('NotImplemented', 'x-amz-content-sha256')
  }
  const [isSigned, hasTrailers] = streaming
  const signatures = isSigned ? new ChunkSignatures(signingKey, authorization) : null
  const onTrailer = (name: string, value: string) => checks.trailer(name, value)
  return { checks, chunks: decodeChunks(source, { signatures, hasTrailers, onTrailer }) }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes
}
