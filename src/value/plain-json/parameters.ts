/** Parameters of URLs, whose texts stand for plain JSON. */
import { type Json, parseStrictJson, ROUNDED } from '../strict-json.ts'
import { ValidationError } from '../validation-error.ts'
import type { ValidatorJson } from '../validators.ts'
import { compilePlainDecoder } from './decoding.ts'

/**
 * Returns a reader of the JSON that a text stands for: the text itself where the validator takes
 * it, otherwise the JSON that is written in it. A string, an int64, an ID or a timestamp is so
 * written as it is, `true`, `1.5`, `null` or a list as JSON.
 */
export function compilePlainParameter(validator: ValidatorJson): (text: string) => Json {
  const decode = compilePlainDecoder(validator)
  return (text) => {
    try {
      decode(text, '')
      return text
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
    }
    try {
      return parseStrictJson(text, ROUNDED)
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      return text
    }
  }
}
