/** The OpenAPI operation of one route, of either origin. */
import type { TableCode } from '../../errors/codes.ts'
import type { Schema } from '../../wire/schema.ts'
import type { HeaderName } from './headers.ts'

export type Origin = 'management' | 'application'

export interface Header {
  /** In lower case. */
  readonly name: string
  readonly schema: Schema<unknown>
  readonly required: boolean
}

export interface RequestBody {
  readonly mediaType: string
  /** null for bytes that are no JSON. */
  readonly schema: Schema<unknown> | null
  readonly bytesMax: number
}

export interface Reply {
  readonly status: number
  /** null for an answer without a body. */
  readonly schema: Schema<unknown> | null
  readonly mediaTypes: readonly string[]
}

export interface Operation {
  readonly origin: Origin
  readonly method: string
  /** With `:name` for a parameter. */
  readonly path: string
  readonly name: string
  readonly summary: string
  readonly capability: string | null
  /** Names of security schemes, each of the alternatives whole; empty where nothing is shown. */
  readonly authorities: readonly (readonly string[])[]
  readonly query: Schema<unknown> | null
  readonly headers: readonly Header[]
  readonly body: RequestBody | null
  readonly replies: readonly Reply[]
  /** Headers of the responses in `replies`. */
  readonly replyHeaders: readonly HeaderName[]
  readonly cache: string
  readonly errors: readonly TableCode[]
  /** Whether a failure may be of a code that a Function declares. */
  readonly declaredErrors: boolean
}
