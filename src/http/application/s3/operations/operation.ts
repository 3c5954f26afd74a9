/** A request to the S3-compatible API whose signature is valid. */
import type { Gateway } from '../../gateway.ts'
import type { Incoming } from '../../incoming.ts'
import type { S3Url } from '../requests.ts'
import type { S3Caller } from '../signature/authentication.ts'

export interface S3Call {
  readonly gateway: Gateway
  readonly incoming: Incoming
  readonly request: Request
  readonly caller: S3Caller
  readonly url: S3Url
  readonly query: ReadonlyMap<string, string>
}

/** A call to a bucket that the caller may use. */
export interface BucketCall extends S3Call {
  readonly bucket: string
}

/** A call to an object of such a bucket. */
export interface ObjectCall extends BucketCall {
  readonly key: string
}

export type Handler<C extends S3Call> = (call: C) => Promise<Response> | Response
