/**
 * Parses and checks the request envelopes of Function calls. Many clients send equal bytes for
 * equal Queries, so a short Query envelope that arrived twice is cached in parsed form. It depends
 * neither on the caller nor on the Release.
 */
import { binaryString } from '../../system/binary-strings.ts'
import { SeenFilter } from '../../system/seen-filter.ts'
import type { OperationId } from '../../value/ids.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { decodeTagged } from '../../value/tagged.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import { CallRequest, MutationRequest } from '../../wire/invocations.ts'
import { read } from '../../wire/reading/read.ts'

export interface QueryEnvelope {
  readonly target: string
  readonly function: string
  readonly arguments: ValueObject
}

export interface MutationEnvelope extends QueryEnvelope {
  readonly operationId: OperationId
}

/** Bytes of a cached envelope, so that the texts of both generations take at most 8 MiB. */
const CACHED_BYTES_MAX = 2_048
/** Envelopes of one generation; the cache holds two generations. */
const GENERATION_ENTRIES_MAX = 2_048
/** Slots of the filter for envelopes that arrived once. */
const SEEN_SLOTS = 16_384

/** Parser of Query envelopes with a cache of two generations. */
export class QueryEnvelopes {
  #current = new Map<string, QueryEnvelope>()
  #previous = new Map<string, QueryEnvelope>()
  readonly #seen = new SeenFilter(SEEN_SLOTS)

  /** Throws REQUEST_INVALID, and ValidationError for invalid JSON or values. */
  read(bytes: Uint8Array): QueryEnvelope {
    if (bytes.length > CACHED_BYTES_MAX) return readQuery(bytes)
    // The text has one character for each byte, so equal texts mean equal bytes.
    const text = binaryString(bytes)
    const known = this.#current.get(text)
    if (known !== undefined) return known
    const before = this.#previous.get(text)
    const envelope = before ?? readQuery(bytes)
    if (before === undefined && !this.#seen.hasSeen(bytes)) return envelope
    if (this.#current.size >= GENERATION_ENTRIES_MAX) {
      this.#previous = this.#current
      this.#current = new Map()
    }
    this.#current.set(text, envelope)
    return envelope
  }
}

function readQuery(bytes: Uint8Array): QueryEnvelope {
  const envelope = read(CallRequest, parseStrictJson(bytes), 'REQUEST_INVALID')
  return { ...envelope, arguments: readArguments(envelope.arguments as Json) }
}

/** Throws REQUEST_INVALID, and ValidationError for invalid JSON or values. */
export function readMutation(bytes: Uint8Array): MutationEnvelope {
  const envelope = read(MutationRequest, parseStrictJson(bytes), 'REQUEST_INVALID')
  return { ...envelope, arguments: readArguments(envelope.arguments as Json) }
}

/** Throws REQUEST_INVALID, and ValidationError for invalid JSON or values. */
export function readAction(bytes: Uint8Array): QueryEnvelope {
  const envelope = read(CallRequest, parseStrictJson(bytes), 'REQUEST_INVALID')
  return { ...envelope, arguments: readArguments(envelope.arguments as Json) }
}

function readArguments(json: Json): ValueObject {
  const value = decodeTagged(json, 'arguments')
  if (!(value instanceof Map)) throw new ValidationError('an object value', 'arguments')
  return value as ValueObject
}
