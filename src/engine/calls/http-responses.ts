/** The response of HTTP that a Function with `returns: v.httpResponse()` decides. */
import { Fault } from '../../errors/fault.ts'
import { type Caching, type HttpAnswer, readResponseText } from '../../value/http/response-rules.ts'
import { ValidationError } from '../../value/validation-error.ts'

/**
 * Returns the response of a result, which is the text of a tagged value. Throws FUNCTION_FAILED
 * where the Function says what no response may.
 */
export function responseOf(resultText: string, caching: Caching): HttpAnswer {
  try {
    return readResponseText(resultText, caching)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('FUNCTION_FAILED', { detail: `the response${error.path}: ${error.rule}` })
  }
}
