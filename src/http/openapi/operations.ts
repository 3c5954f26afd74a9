/** The OpenAPI operation of one route, of either origin. */
import type { TableCode } from '../../errors/codes.ts'
import type { Schema } from '../../wire/schema.ts'
import type { HeaderName, HeaderValues } from './headers.ts'

export type Origin = 'management' | 'application'

export interface Header {
  /** The name in lower case. */
  readonly name: string
  readonly schema: Schema<unknown>
  readonly required: boolean
}

export interface RequestBody {
  readonly mediaType: string
  /** The schema of a JSON body; null for any other body. */
  readonly schema: Schema<unknown> | null
  readonly bytesMax: number
}

export interface Reply {
  readonly status: number
  /** The schema of the body; null for a response without a body. */
  readonly schema: Schema<unknown> | null
  readonly mediaTypes: readonly string[]
}

export interface Operation {
  readonly origin: Origin
  readonly method: string
  /** Path with `:name` for each parameter. */
  readonly path: string
  readonly name: string
  readonly summary: string
  readonly capability: string | null
  /** Alternative sets of security schemes. Empty for an operation without authentication. */
  readonly authorities: readonly (readonly string[])[]
  readonly query: Schema<unknown> | null
  readonly headers: readonly Header[]
  readonly body: RequestBody | null
  readonly replies: readonly Reply[]
  /** Headers of the responses in `replies`. */
  readonly replyHeaders: readonly HeaderName[]
  readonly cache: string
  /** Values of `replyHeaders` that differ from those of the component; default: none. */
  readonly headerValues?: HeaderValues
  readonly errors: readonly TableCode[]
  /** True if a failure may have a code that a Function declares. */
  readonly declaredErrors: boolean
}
