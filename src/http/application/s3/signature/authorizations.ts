/** Parses the signature of a request, in the header Authorization or in the query. */
import { S3Fault } from '../errors.ts'
import type { S3Url } from '../requests.ts'

export interface Authorization {
  readonly accessKeyId: string
  /** `<date>/<region>/s3/aws4_request`. */
  readonly scope: string
  readonly date: string
  readonly region: string
  /** `YYYYMMDDTHHMMSSZ`. */
  readonly timestamp: string
  /** Unix milliseconds of the timestamp. */
  readonly atMillis: number
  /** Names of signed headers, in lower case and sorted. */
  readonly signedHeaders: readonly string[]
  /** 64 lowercase hex characters. */
  readonly signature: string
  /** Seconds for which a signed URL is valid; null for a signature in the header. */
  readonly expiresSeconds: number | null
}

export const ALGORITHM = 'AWS4-HMAC-SHA256'
const VERSION_MESSAGE =
  'The request has a signature of version 2. Configure the client for version 4 (AWS4-HMAC-SHA256).'
const FORM_MESSAGE =
  'This server does not implement forms of browsers (presigned POST). Use a presigned PUT.'
const HEADER_CHARACTERS_MAX = 4_096
/** Lifetime of a signed URL, as in S3. */
const EXPIRES_SECONDS_MAX = 7 * 24 * 3_600
const CREDENTIAL = /^([^/]{1,128})\/((\d{8})\/([A-Za-z0-9-]{0,64})\/s3\/aws4_request)$/
const TIMESTAMP = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/
const HEADER_NAMES = /^[a-z0-9!#$%&'*+.^_`|~-]+(?:;[a-z0-9!#$%&'*+.^_`|~-]+){0,63}$/
const SIGNATURE = /^[0-9a-f]{64}$/

type MalformedCode = 'AuthorizationHeaderMalformed' | 'AuthorizationQueryParametersError'

/** Parses the signature. Throws AccessDenied if there is none, and codes of malformed ones. */
export function parseAuthorization(headers: Headers, { query }: S3Url): Authorization {
  const header = headers.get('authorization')
  const isPresigned = query.has('X-Amz-Algorithm') || query.has('X-Amz-Signature')
  if (headers.has('x-amz-security-token') || query.has('X-Amz-Security-Token')) {
    throw new S3Fault('InvalidToken')
  }
  if (header?.startsWith('AWS ') || query.has('AWSAccessKeyId')) {
    throw new S3Fault('InvalidRequest', 'a signature of version 2', VERSION_MESSAGE)
  }
  if (header !== null && isPresigned) {
    throw new S3Fault('InvalidArgument', 'one signature: in the header or in the query')
  }
  if (header !== null) return fromHeader(header, headers.get('x-amz-date'))
  if (isPresigned) return fromQuery(query)
  if (headers.get('content-type')?.startsWith('multipart/form-data') === true) {
    throw new S3Fault('NotImplemented', 'a form of a browser', FORM_MESSAGE)
  }
  throw new S3Fault('AccessDenied', 'a request without a signature')
}

function fromHeader(header: string, timestamp: string | null): Authorization {
  const code = 'AuthorizationHeaderMalformed'
  const start = `${ALGORITHM} `
  if (header.length > HEADER_CHARACTERS_MAX || !header.startsWith(start)) {
    throw new S3Fault(code, `the algorithm ${ALGORITHM}`)
  }
  const fields = new Map<string, string>()
  for (const part of header.slice(start.length).split(',')) {
    const [, name, value] = /^ *([A-Za-z]{1,32})=([^ ]*) *$/.exec(part) ?? []
    if (name === undefined || fields.has(name)) throw new S3Fault(code, 'its fields')
    fields.set(name, value!)
  }
  if (timestamp === null) throw new S3Fault('AccessDenied', 'the header x-amz-date is missing')
  const field = (name: string) => fields.get(name) ?? ''
  const given = { credential: field('Credential'), names: field('SignedHeaders') }
  const rest = { timestamp, signature: field('Signature'), expiresSeconds: null }
  if (fields.size !== 3) throw new S3Fault(code, 'Credential, SignedHeaders and Signature')
  return authorizationOf(code, { ...given, ...rest })
}

function fromQuery(query: ReadonlyMap<string, string>): Authorization {
  const code = 'AuthorizationQueryParametersError'
  const field = (name: string) => query.get(`X-Amz-${name}`) ?? ''
  if (field('Algorithm') !== ALGORITHM) throw new S3Fault(code, `the algorithm ${ALGORITHM}`)
  const expires = /^\d{1,6}$/.test(field('Expires')) ? Number(field('Expires')) : 0
  if (expires < 1 || expires > EXPIRES_SECONDS_MAX) {
    throw new S3Fault(code, `X-Amz-Expires: 1 to ${EXPIRES_SECONDS_MAX}`)
  }
  const given = { credential: field('Credential'), names: field('SignedHeaders') }
  const rest = { timestamp: field('Date'), signature: field('Signature'), expiresSeconds: expires }
  return authorizationOf(code, { ...given, ...rest })
}

interface Given {
  readonly credential: string
  readonly names: string
  readonly timestamp: string
  readonly signature: string
  readonly expiresSeconds: number | null
}

function authorizationOf(code: MalformedCode, given: Given): Authorization {
  const { credential, names, timestamp, signature, expiresSeconds } = given
  const [, accessKeyId, scope, date, region] = CREDENTIAL.exec(credential) ?? []
  if (accessKeyId === undefined) throw new S3Fault(code, 'Credential: key/date/region/s3')
  const atMillis = parseMillis(timestamp)
  if (Number.isNaN(atMillis)) throw new S3Fault(code, 'the time of the signature')
  if (!timestamp.startsWith(`${date!}T`)) throw new S3Fault(code, 'the date of the scope')
  const signedHeaders = HEADER_NAMES.test(names) ? names.split(';') : []
  const isSorted = signedHeaders.every((name, i) => i === 0 || signedHeaders[i - 1]! < name)
  if (!isSorted || !signedHeaders.includes('host')) throw new S3Fault(code, 'SignedHeaders')
  if (!SIGNATURE.test(signature)) throw new S3Fault(code, 'Signature')
  const when = { date: date!, region: region!, timestamp, atMillis }
  return { accessKeyId, scope: scope!, ...when, signedHeaders, signature, expiresSeconds }
}

/** Parses a time to Unix milliseconds; NaN if it is malformed or does not exist. */
function parseMillis(timestamp: string): number {
  const parts = TIMESTAMP.exec(timestamp)
  if (parts === null) return Number.NaN
  const [year, month, day, hour, minute, second] = parts.slice(1)
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`
  const millis = Date.parse(iso)
  return Number.isNaN(millis) || new Date(millis).toISOString() !== iso ? Number.NaN : millis
}
