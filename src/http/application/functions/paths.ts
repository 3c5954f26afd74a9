/** The path of a Function. Only the characters that URLs need are percent-encoded. */
import { FUNCTION_NAME } from '../../../value/manifest.ts'

export const FUNCTIONS_PATH = '/v1/functions/'
/** The document of the Functions. No Query of this name can be called by GET. */
export const DOCUMENT_PATH = `${FUNCTIONS_PATH}openapi.json`

/** Longest name, as in the envelope of a call. */
const NAME_CHARACTERS_MAX = 512

/**
 * Returns the name of the Function at a path; null for any other path. A generated client encodes
 * `/` and `$`, a person does not. Any other encoding would be a second path for one Function, which
 * the rules of a proxy may not know.
 */
export function functionAt(path: string): string | null {
  if (!path.startsWith(FUNCTIONS_PATH)) return null
  const name = path.slice(FUNCTIONS_PATH.length).replaceAll('%2F', '/').replaceAll('%24', '$')
  return name.length <= NAME_CHARACTERS_MAX && FUNCTION_NAME.test(name) ? name : null
}
