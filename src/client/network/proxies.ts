/**
 * Chooses the proxy of a connection. Only this file reads proxy variables: HTTPS_PROXY and
 * NO_PROXY, in upper or lower case. HTTP_PROXY and ALL_PROXY are ignored: unencrypted requests only
 * go to a loopback address, and a proxy would read their tokens.
 */
import { isWithin, parseNetwork } from '../../system/address-ranges.ts'
import { literalAddress } from '../../system/guarded-fetch.ts'
import { Secret } from '../../value/secret.ts'
import { usage } from '../usage.ts'

/** An HTTP proxy that opens tunnels (CONNECT). */
export interface HttpProxy {
  readonly host: string
  readonly port: number
  /** True if the connection to the proxy itself uses TLS. */
  readonly secure: boolean
  /** Value of Proxy-Authorization. */
  readonly authorization: Secret | null
}

type Variable = (name: string) => string | undefined

/** Returns null for a direct connection. Throws CLIENT_USAGE if the proxy is not an HTTP URL. */
export function proxyFor(url: URL, variable: Variable): HttpProxy | null {
  if (url.protocol !== 'https:' && url.protocol !== 'wss:') return null
  if (isLoopback(url.hostname)) return null
  const name = ['https_proxy', 'HTTPS_PROXY'].find((each) => (variable(each) ?? '') !== '')
  if (name === undefined) return null
  const exceptions = variable('no_proxy') || variable('NO_PROXY') || ''
  if (exceptions.split(/[\s,]+/).some((entry) => isExcepted(url, entry.toLowerCase()))) return null
  return parseProxy(name, variable(name)!)
}

function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost')) return true
  const address = literalAddress(hostname)
  return address !== null && (address === '::1' || address.startsWith('127.'))
}

/** Matches an entry of NO_PROXY: `*`, a network, or a name or address with an optional port. */
function isExcepted(url: URL, entry: string): boolean {
  if (entry === '*') return true
  const address = literalAddress(url.hostname)
  const network = parseNetwork(entry)
  if (network !== null) return address !== null && isWithin(address, [network])
  const [, host = '', port] = /^(\[.*\]|[^:]*|.*:.*:.*?)(?::([0-9]+))?$/.exec(entry) ?? []
  if (host === '' || (port !== undefined && port !== (url.port || '443'))) return false
  if (address !== null) return host === address || host === url.hostname
  const name = host.replace(/^\*?\./, '')
  return url.hostname === name || url.hostname.endsWith(`.${name}`)
}

/** Parses the URL of a proxy. The message never repeats it, since it may contain a password. */
function parseProxy(name: string, text: string): HttpProxy {
  const absolute = text.includes('://') ? text : `http://${text}`
  const url = URL.canParse(absolute) ? new URL(absolute) : null
  const secure = url?.protocol === 'https:'
  if (url === null || (!secure && url.protocol !== 'http:')) {
    throw usage(`The variable ${name} is not the URL of an HTTP proxy, such as http://proxy:3128.`)
  }
  return {
    host: literalAddress(url.hostname) ?? url.hostname,
    port: Number(url.port || (secure ? 443 : 80)),
    secure,
    authorization: authorizationOf(url),
  }
}

function authorizationOf({ username, password }: URL): Secret | null {
  if (username === '' && password === '') return null
  const credentials = [username, password].map(decode).join(':')
  return new Secret(`Basic ${Buffer.from(credentials).toString('base64')}`)
}

/** Decodes percent-encoding; malformed encoding is kept as it is. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
