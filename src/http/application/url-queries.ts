/** The query of the few URLs that have one: a single parameter with a declared name. */
import { Fault } from '../../errors/fault.ts'

/**
 * Returns the decoded value of the parameter; null for a URL without a query. Every other query is
 * REQUEST_INVALID: another name, a second parameter, or an encoding that is not UTF-8.
 */
export function readParameter(url: string, name: string): string | null {
  const start = url.indexOf('?')
  if (start < 0) return null
  const query = url.slice(start + 1)
  const [given, value, more] = query.split('=')
  if (given !== name || value === undefined || more !== undefined || /[&#?]/.test(query)) {
    throw new Fault('REQUEST_INVALID', { detail: `the query parameter ${name}, once` })
  }
  try {
    return decodeURIComponent(value.replaceAll('+', ' '))
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw new Fault('REQUEST_INVALID', { detail: `${name}: percent-encoded UTF-8` })
  }
}
