/** Answers to the heads of requests that reach the listener of challenges. */

/** The path of a challenge, with its token (RFC 8555, 8.3). */
const CHALLENGE = /^\/\.well-known\/acme-challenge\/([A-Za-z0-9_-]{1,256})$/
const REQUEST_LINE = /^(GET|HEAD) (\/[\x21-\x7e]*) HTTP\/1\.[01]$/
const HOST = /^host:[ \t]*([A-Za-z0-9.-]{1,253})(?::[0-9]{1,5})?[ \t]*$/i

export interface HeadAnswer {
  /** The text of the whole response. */
  readonly response: string
  readonly kind: 'challenge' | 'redirect' | 'rejected'
}

export interface AnswerRules {
  /** Returns the key authorization of a token; undefined for an unknown one. */
  find(token: string): string | undefined
  /** Hosts whose requests are redirected to HTTPS. */
  readonly domains: readonly string[]
}

/** Answers the head of a request, without the empty line that ends it. */
export function answerHead(head: string, { find, domains }: AnswerRules): HeadAnswer {
  const [line = '', ...fields] = head.split('\r\n')
  const [, method, path] = REQUEST_LINE.exec(line) ?? []
  if (method === undefined || path === undefined) {
    const isKnownForm = /^[A-Z]{1,32} \/[\x21-\x7e]* HTTP\/1\.[01]$/.test(line)
    const status = isKnownForm ? '404 Not Found' : '400 Bad Request'
    return { response: respond(status), kind: 'rejected' }
  }
  const token = CHALLENGE.exec(path)?.[1]
  const content = token === undefined ? undefined : find(token)
  if (content !== undefined) {
    const headers = ['Content-Type: application/octet-stream', 'Cache-Control: no-store']
    return { response: respond('200 OK', headers, content, method), kind: 'challenge' }
  }
  const host = token === undefined ? hostOf(fields) : null
  if (host === null || !domains.includes(host)) {
    return { response: respond('404 Not Found'), kind: 'rejected' }
  }
  const location = `Location: https://${host}${path}`
  return { response: respond('308 Permanent Redirect', [location]), kind: 'redirect' }
}

/** Returns the host of the only Host field, in lower case and without its port. */
function hostOf(fields: readonly string[]): string | null {
  const hosts = fields.filter((field) => /^host[ \t]*:/i.test(field))
  const host = hosts.length === 1 ? HOST.exec(hosts[0]!)?.[1] : undefined
  return host?.toLowerCase() ?? null
}

function respond(
  status: string,
  headers: readonly string[] = [],
  body = '',
  method = 'GET',
): string {
  const all = [`Content-Length: ${body.length}`, ...headers, 'Connection: close']
  return `HTTP/1.1 ${status}\r\n${all.join('\r\n')}\r\n\r\n${method === 'HEAD' ? '' : body}`
}
