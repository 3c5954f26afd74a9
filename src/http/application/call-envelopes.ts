/** Parses and checks the request envelopes of Function calls. */
import type { OperationId } from '../../value/ids.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { decodeTagged } from '../../value/tagged.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import { CallRequest, MutationRequest } from '../../wire/invocations.ts'
import { read } from '../../wire/reading/read.ts'
import { keptText, type ParsedQueries, type QueryEnvelope } from './parsed-queries.ts'

export interface MutationEnvelope extends QueryEnvelope {
  readonly operationId: OperationId
}

/** Returns the envelope of a Query. Throws REQUEST_INVALID, and ValidationError as the others. */
export function readQuery(parsed: ParsedQueries, bytes: Uint8Array): QueryEnvelope {
  const text = keptText(bytes)
  if (text === null) return readQueryBytes(bytes)
  const known = parsed.find('tagged', text)
  if (known !== undefined) return known
  const envelope = readQueryBytes(bytes)
  parsed.keep('tagged', text, envelope)
  return envelope
}

function readQueryBytes(bytes: Uint8Array): QueryEnvelope {
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
