/** Description of each HTTP status in the document: its name in RFC 9110. */
import { assert } from '../../errors/assert.ts'

const NAMES: Readonly<Record<number, string>> = {
  101: 'Switching protocols',
  200: 'OK',
  201: 'Created',
  204: 'No content',
  206: 'Partial content',
  304: 'Not modified',
  400: 'Bad request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not found',
  405: 'Method not allowed',
  406: 'Not acceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'Content too large',
  415: 'Unsupported media type',
  416: 'Range not satisfiable',
  426: 'Upgrade required',
  429: 'Too many requests',
  500: 'Internal server error',
  503: 'Service unavailable',
  504: 'Gateway timeout',
}

export function statusName(status: number): string {
  const name = NAMES[status]
  assert(name !== undefined, `the status ${status} has a name`)
  return name
}
