/**
 * Makes the request of an operation from its parameters, query, headers, Operation ID and body. The
 * compiler checks their names and types; the texts of parameters, query and headers may be those of
 * a command line, which the server checks.
 */
import type { OperationId } from '../../value/ids.ts'
import { OPERATION_ID_HEADER } from '../../wire/idempotency-records.ts'
import type {
  Body,
  EnvironmentAccess,
  EnvironmentPath,
  Headers,
  JsonBody,
  None,
  Operation,
  OperationIdUse,
  OptionalHeader,
  RawBody,
  Replies,
} from '../../wire/operations/operation.ts'
import type { Params } from '../../wire/operations/parameters.ts'
import type { Schema } from '../../wire/schema.ts'
import type { Explanation } from '../explanations.ts'
import type { BytesReply, Call } from './requests.ts'

/** A message as a client sends it. Optional fields may be undefined, and are then left out. */
type Sent<T> = T extends string
  ? T
  : T extends readonly (infer E)[]
    ? readonly Sent<E>[]
    : T extends object
      ? { readonly [N in keyof T]: Sent<T[N]> | UndefinedIn<T, N> }
      : T
/** Undefined for a field that is optional. */
type UndefinedIn<T, N extends keyof T> = None extends Pick<T, N> ? undefined : never

/** A field `N` that may be left out where all of its own fields may. */
type Part<N extends string, T> = None extends T
  ? { readonly [M in N]?: T }
  : { readonly [M in N]: T }

type HeaderTexts<H extends Headers> = {
  readonly [N in keyof H as H[N] extends OptionalHeader ? never : N]: string
} & { readonly [N in keyof H as H[N] extends OptionalHeader ? N : never]?: string | undefined }

type BodyPart<B extends Body> = [B] extends [null]
  ? unknown
  : B extends RawBody
    ? {
        readonly body: Uint8Array
        /** Default: the media type of the operation. */
        readonly contentType?: string
      }
    : B extends JsonBody<infer T>
      ? {
          /** The value, or its JSON as the client wrote it. */
          readonly body: Sent<T> | Uint8Array
        }
      : never

type OperationIdPart<K extends OperationIdUse> = {
  none: unknown
  optional: { readonly operationId?: OperationId }
  required: { readonly operationId: OperationId }
}[K]

interface Options {
  /** Identifiers and names in the request that messages about a failure repeat. */
  readonly subjects?: Explanation['subjects'] | undefined
  /** Media type of the response; by default the first one of the operation. */
  readonly accept?: string
  /** Default: the one of the operation. */
  readonly responseBytesMax?: number
}

type InputOf<O, Given extends string = never> =
  O extends Operation<infer _, infer P, infer B, infer K, infer Q, infer H>
    ? Part<'params', { readonly [N in Exclude<keyof Params<P>, Given>]: string }> &
        Part<'query', { readonly [N in keyof Q]: string | number | UndefinedIn<Q, N> }> &
        Part<'headers', HeaderTexts<H>> &
        BodyPart<B> &
        OperationIdPart<K> &
        Options
    : never

/** The arguments of a call after its operation: none where nothing is required. */
type Arguments<I> = None extends I ? [input?: I] : [input: I]
export type CallArguments<O> = Arguments<InputOf<O>>

export type EnvironmentOperation = Operation<EnvironmentAccess, EnvironmentPath<string>>
/** The Environment of the call is known. */
export type EnvironmentCallArguments<O> = Arguments<InputOf<O, keyof Params<EnvironmentPath<''>>>>

/** Type of the response of an operation. */
export type ReplyOf<O extends Operation> =
  FormOf<O['replies']> extends infer Form
    ? 'bytes' extends Form
      ? BytesReply
      : [BodyOf<Form>] extends [never]
        ? undefined
        : BodyOf<Form>
    : never
type FormOf<R extends Replies> = R[keyof R]
type BodyOf<Form> = Form extends Schema<infer T> ? T : never

export type OperationRequest<T> = Omit<Call<T>, 'origin' | 'bearer' | 'onHeaders'> &
  Pick<Options, 'subjects'>

/** A call with erased types, after the compiler checked it. */
export interface AnyInput extends Options {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly operationId?: OperationId
  readonly body?: unknown
  readonly contentType?: string
}

/** Returns the request of an operation, for `send`. */
export function requestOf<O extends Operation>(
  operation: O,
  ...[input]: CallArguments<O>
): OperationRequest<ReplyOf<O>> {
  return anyRequestOf(operation, input as AnyInput | undefined) as OperationRequest<ReplyOf<O>>
}

/** Does the work of `requestOf` for callers that have checked the types. */
export function anyRequestOf(
  operation: Operation,
  input: AnyInput = {},
): OperationRequest<unknown> {
  const { method, body, mediaTypes, replies, replay, deadlineMs } = operation
  const { operationId, subjects } = input
  return {
    method,
    path: pathOf(operation, input),
    headers: given({
      accept: input.accept ?? mediaTypes[0],
      ...input.headers,
      [OPERATION_ID_HEADER]: operationId,
    }),
    body: input.body as Call<unknown>['body'],
    contentType:
      input.contentType ?? (body !== null && 'mediaType' in body ? body.mediaType : undefined),
    reply: Object.values(replies)[0] ?? null,
    replay,
    deadlineMs,
    responseBytesMax: input.responseBytesMax ?? operation.responseBytesMax,
    subjects,
  }
}

/** Escapes each parameter whole, slashes included: a URL would resolve the segments of `a/../b`. */
function pathOf(
  { path }: Operation,
  { params = {}, query }: Pick<AnyInput, 'params' | 'query'>,
): string {
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name]!))
  const search = new URLSearchParams(given(query))
  return search.size === 0 ? filled : `${filled}?${search}`
}

function given(
  fields: Readonly<Record<string, string | number | undefined>> = {},
): Record<string, string> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]))
}
