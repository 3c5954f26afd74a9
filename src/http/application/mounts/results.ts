/**
 * The result of a Function as a response of HTTP: what a Function with `returns: v.httpResponse()`
 * says, otherwise 200 with the result as plain JSON.
 */
import { responseOf } from '../../../engine/calls/http-responses.ts'
import {
  type Caching,
  type HttpAnswer,
  isHttpResponse,
} from '../../../value/http/response-rules.ts'
import type { FunctionManifest } from '../../../value/manifest.ts'
import type { IntegerForm } from '../../../value/plain-json/encoding.ts'
import type { PlainForms } from '../functions/forms.ts'

export const JSON_CONTENT = 'application/json; charset=utf-8'

/** Headers of every response below a mount: nothing of this origin is ever a page. */
export const MOUNT_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'",
} as const

interface Rendering {
  readonly plainForms: Pick<PlainForms, 'write'>
  readonly definition: FunctionManifest
  readonly caching: Caching
  readonly integers?: IntegerForm
}

/**
 * Returns the response of a result, which is the text of a tagged value. Its headers are those of
 * the Function, with `cache-control` and the content type. Throws FUNCTION_FAILED where the
 * Function says what no response may.
 */
export function renderResult(
  tagged: string,
  { plainForms, definition, caching, integers = 'number' }: Rendering,
): HttpAnswer {
  if (isHttpResponse(definition.returns)) return answerOf(tagged, caching)
  const headers = new Map([
    ['content-type', JSON_CONTENT],
    ['cache-control', 'no-store'],
  ])
  return { status: 200, headers, body: plainForms.write(definition, tagged, integers) }
}

function answerOf(tagged: string, caching: Caching): HttpAnswer {
  // A run was checked, but the result of a repeat may be that of a Release with other rules.
  const answer = responseOf(tagged, caching)
  const headers = new Map([['cache-control', 'no-store'], ...answer.headers])
  return { ...answer, headers }
}
