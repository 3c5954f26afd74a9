/**
 * Request envelopes of Function calls, from bytes to checked values. Pages that show the same thing
 * ask for it in the same bytes, so the short Query envelopes that came twice are kept as they were
 * read; nothing in them depends on who asks or on what is served.
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

const KEPT_BYTES_MAX = 2_048
/** Envelopes of one generation; the last two generations are kept. */
const KEPT_MAX = 2_048
/** Places for envelopes that came once. */
const SEEN_PLACES = 16_384

export class QueryEnvelopes {
  #kept = new Map<string, QueryEnvelope>()
  #keptBefore = new Map<string, QueryEnvelope>()
  readonly #seen = new SeenFilter(SEEN_PLACES)

  /** Throws REQUEST_INVALID, and Malformed for what is no strict JSON. */
  read(bytes: Uint8Array): QueryEnvelope {
    if (bytes.length > KEPT_BYTES_MAX) return readQuery(bytes)
    // One character a byte: the texts of two bodies are equal exactly where their bytes are.
    const text = binaryString(bytes)
    const known = this.#kept.get(text)
    if (known !== undefined) return known
    const before = this.#keptBefore.get(text)
    const envelope = before ?? readQuery(bytes)
    if (before === undefined && !this.#seen.hasSeen(bytes)) return envelope
    if (this.#kept.size >= KEPT_MAX) {
      this.#keptBefore = this.#kept
      this.#kept = new Map()
    }
    this.#kept.set(text, envelope)
    return envelope
  }
}

function readQuery(bytes: Uint8Array): QueryEnvelope {
  const envelope = read(CallRequest, parseStrictJson(bytes), 'REQUEST_INVALID')
  return { ...envelope, arguments: readArguments(envelope.arguments as Json) }
}

/** Throws REQUEST_INVALID, and Malformed for what is no strict JSON. */
export function readMutation(bytes: Uint8Array): MutationEnvelope {
  const envelope = read(MutationRequest, parseStrictJson(bytes), 'REQUEST_INVALID')
  return { ...envelope, arguments: readArguments(envelope.arguments as Json) }
}

/** Throws REQUEST_INVALID, and Malformed for what is no strict JSON. */
export function readAction(bytes: Uint8Array): QueryEnvelope {
  const envelope = read(CallRequest, parseStrictJson(bytes), 'REQUEST_INVALID')
  return { ...envelope, arguments: readArguments(envelope.arguments as Json) }
}

function readArguments(json: Json): ValueObject {
  const value = decodeTagged(json, 'arguments')
  if (!(value instanceof Map)) throw new ValidationError('an object value', 'arguments')
  return value as ValueObject
}
