/** Values of the wire as the plain JSON that people edit, and back. */
import { printableJson } from '../client/visible-text.ts'
import { plainWriter } from '../value/plain/writer.ts'
import { plainToArguments } from '../value/plain.ts'
import type { Json } from '../value/strict-json.ts'
import { decodeTagged, encodeTagged } from '../value/tagged.ts'
import { ValidationError } from '../value/validation-error.ts'
import type { FieldsJson, ValidatorJson } from '../value/validators.ts'
import { Failure } from './requests.ts'

/** Returns a tagged value as plain JSON, which parses to an equal value by the validator. */
export function plainOf(tagged: unknown, validator: ValidatorJson): Json {
  return plainWriter(validator)(decodeTagged(tagged as Json))
}

export function plainOfFields(tagged: unknown, fields: FieldsJson): Json {
  return plainOf(tagged, { type: 'object', fields })
}

/** Returns JSON to edit, in which invisible and bidirectional characters are escapes. */
export function editable(json: Json): string {
  return printableJson(json)
}

/** Parses edited JSON by the fields. Throws a Failure that names the place of a defect. */
export function taggedOf(text: string, fields: FieldsJson): Json {
  return taggedOfJson(parsedJson(text), fields)
}

export function taggedOfJson(json: Json, fields: FieldsJson): Json {
  try {
    return JSON.parse(encodeTagged(plainToArguments(json, fields))) as Json
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw invalid(error.message)
  }
}

export function parsedJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : 'It is not JSON.')
  }
}

export function invalid(detail: string): Failure {
  return new Failure({
    code: 'ARGUMENTS_INVALID',
    message: `The value does not fit its validator: ${detail}.`.replace(/\.\.$/, '.'),
    next: 'Correct the value, then send it again.',
    requestId: null,
    violations: [],
  })
}
