/** The codes of S3, and the conversion of errors to them. */
import type { Code, TableCode } from '../../../errors/codes.ts'
import { Fault } from '../../../errors/fault.ts'
import { APPLICATION_CODES, toFault } from '../../errors.ts'

interface Row {
  readonly status: number
  /** The code that the log and the metrics use. */
  readonly code: TableCode
  readonly message: string
}

const row = (status: number, code: TableCode, message: string): Row => ({ status, code, message })

/** The codes that this server sends, with their statuses as S3 has them. */
const S3_CODES = {
  AccessControlListNotSupported: row(400, 'REQUEST_INVALID', 'Buckets have no access lists.'),
  AccessDenied: row(403, 'TARGET_DENIED', 'Access Denied.'),
  AuthorizationHeaderMalformed: row(400, 'REQUEST_INVALID', 'The authorization is malformed.'),
  AuthorizationQueryParametersError: row(400, 'REQUEST_INVALID', 'The signed URL is malformed.'),
  BadDigest: row(400, 'REQUEST_INVALID', 'The digest does not match the received body.'),
  BucketAlreadyOwnedByYou: row(409, 'REQUEST_INVALID', 'The bucket exists.'),
  EntityTooLarge: row(400, 'LIMIT_EXCEEDED', 'The upload exceeds a limit of the bucket.'),
  EntityTooSmall: row(400, 'REQUEST_INVALID', 'A part but the last has less than 5 MiB.'),
  IncompleteBody: row(400, 'REQUEST_INVALID', 'The body is shorter or longer than announced.'),
  InternalError: row(500, 'INTERNAL', 'The request failed. Try again.'),
  InvalidAccessKeyId: row(403, 'GRANT_INVALID', 'The access key ID is unknown or revoked.'),
  InvalidArgument: row(400, 'REQUEST_INVALID', 'An argument is not valid.'),
  InvalidBucketState: row(409, 'REQUEST_INVALID', 'The bucket is archived.'),
  InvalidDigest: row(400, 'REQUEST_INVALID', 'A digest or checksum is malformed.'),
  InvalidPart: row(400, 'REQUEST_INVALID', 'A part is missing or has another entity tag.'),
  InvalidPartNumber: row(416, 'RANGE_INVALID', 'The object has no part with this number.'),
  InvalidPartOrder: row(400, 'REQUEST_INVALID', 'The parts are not in ascending order.'),
  InvalidRange: row(416, 'RANGE_INVALID', 'The range cannot be satisfied.'),
  InvalidRequest: row(400, 'REQUEST_INVALID', 'The request is not valid.'),
  InvalidStorageClass: row(400, 'REQUEST_INVALID', 'The only storage class is STANDARD.'),
  InvalidToken: row(400, 'REQUEST_INVALID', 'Session tokens are not issued here.'),
  InvalidURI: row(400, 'REQUEST_INVALID', 'The URL cannot be parsed.'),
  KeyTooLongError: row(400, 'REQUEST_INVALID', 'A key has at most 1,024 bytes.'),
  MalformedXML: row(400, 'REQUEST_INVALID', 'The XML of the body is not valid.'),
  MetadataTooLarge: row(400, 'REQUEST_INVALID', 'The metadata exceeds 2 KiB.'),
  MethodNotAllowed: row(405, 'METHOD_NOT_ALLOWED', 'The method is not allowed here.'),
  NoSuchBucket: row(404, 'TARGET_NOT_FOUND', 'The bucket does not exist.'),
  NoSuchBucketPolicy: row(404, 'FILE_NOT_FOUND', 'The bucket has no policy.'),
  NoSuchCORSConfiguration: row(404, 'FILE_NOT_FOUND', 'The bucket has no CORS configuration.'),
  NoSuchKey: row(404, 'FILE_NOT_FOUND', 'The key does not exist.'),
  NoSuchLifecycleConfiguration: row(404, 'FILE_NOT_FOUND', 'The bucket has no lifecycle.'),
  NoSuchTagSet: row(404, 'FILE_NOT_FOUND', 'The bucket has no tags.'),
  NoSuchUpload: row(404, 'FILE_NOT_FOUND', 'The multipart upload does not exist.'),
  NoSuchWebsiteConfiguration: row(404, 'FILE_NOT_FOUND', 'The bucket is no website.'),
  NotImplemented: row(501, 'REQUEST_INVALID', 'This server does not implement the request.'),
  OperationAborted: row(409, 'WRITE_CONFLICT', 'Another request changed the object. Try again.'),
  PreconditionFailed: row(412, 'REQUEST_INVALID', 'A condition of the request does not hold.'),
  RequestTimeTooSkewed: row(403, 'GRANT_INVALID', 'The times differ by more than 15 minutes.'),
  ServiceUnavailable: row(503, 'UNAVAILABLE', 'The service is unavailable. Try again.'),
  SignatureDoesNotMatch: row(403, 'GRANT_INVALID', 'The signature does not match the request.'),
  SlowDown: row(503, 'RATE_LIMITED', 'Reduce the rate of requests.'),
  XAmzContentSHA256Mismatch: row(400, 'REQUEST_INVALID', 'The body has another SHA-256.'),
} as const satisfies Record<string, Row>

export type S3Code = keyof typeof S3_CODES

/**
 * A failure with a code of S3. Only the log shows the broken rule; clients see the message, by
 * default that of the code.
 */
export class S3Fault extends Fault {
  readonly s3Code: S3Code
  readonly s3Message: string

  constructor(s3Code: S3Code, rule?: string, s3Message: string = S3_CODES[s3Code].message) {
    super(S3_CODES[s3Code].code, { detail: rule === undefined ? s3Code : `${s3Code}, ${rule}` })
    this.s3Code = s3Code
    this.s3Message = s3Message
  }
}

/** Codes of S3 for failures of the rules that operations call. */
const BY_CODE: Partial<Record<Code, S3Code>> = {
  REQUEST_INVALID: 'InvalidRequest',
  ORIGIN_DENIED: 'AccessDenied',
  FILE_NOT_FOUND: 'NoSuchKey',
  LIMIT_EXCEEDED: 'EntityTooLarge',
  RATE_LIMITED: 'SlowDown',
  BUSY: 'SlowDown',
  WRITE_CONFLICT: 'OperationAborted',
  UNAVAILABLE: 'ServiceUnavailable',
  DEADLINE_EXCEEDED: 'ServiceUnavailable',
}

/** A failure in the form of the log and in that of the client. */
export interface S3Failure {
  readonly fault: Fault
  readonly s3Code: S3Code
  readonly s3Message: string
}

/** Converts an error to the code and message that the client sees, and the fault for the log. */
export function toS3Failure(error: unknown): S3Failure {
  const fault = toFault(error, APPLICATION_CODES)
  if (fault instanceof S3Fault) return { fault, s3Code: fault.s3Code, s3Message: fault.s3Message }
  const s3Code = BY_CODE[fault.code] ?? 'InternalError'
  return { fault, s3Code, s3Message: s3MessageOf(s3Code) }
}

export function s3StatusOf(s3Code: S3Code): number {
  return S3_CODES[s3Code].status
}

export function s3MessageOf(s3Code: S3Code): string {
  return S3_CODES[s3Code].message
}
