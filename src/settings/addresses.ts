/**
 * Forms of addresses: listeners, canonical origins and database URLs. They answer null instead of
 * throwing, so that each caller names its own variable and code.
 */
import type { Secret } from '../value/secret.ts'

export interface Listener {
  /** An IPv4 or IPv6 address, the latter without brackets. */
  readonly host: string
  /** 0 lets the operating system choose. */
  readonly port: number
  readonly loopback: boolean
}

/** The address of a PostgreSQL database; only `url` holds the password. */
export interface DatabaseAddress {
  readonly url: Secret
  readonly host: string
  readonly port: number
  readonly name: string
}

const LISTENER = /^(?:([0-9.]+)|\[([0-9a-fA-F:.]+)\]):(0|[1-9][0-9]{0,4})$/
const IPV4 = /^(?:(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])(?:\.(?!$)|$)){4}$/

/** `host:port` with a literal address: a name could resolve to another interface tomorrow. */
export function parseListener(text: string): Listener | null {
  const [, ipv4, ipv6, digits] = LISTENER.exec(text) ?? []
  const port = Number(digits)
  if (digits === undefined || port > 65_535) return null
  if (ipv4 !== undefined) {
    return IPV4.test(ipv4) ? { host: ipv4, port, loopback: ipv4.startsWith('127.') } : null
  }
  const host = parseUrl(`http://[${ipv6}]`)?.hostname.slice(1, -1)
  return host === undefined ? null : { host, port, loopback: host === '::1' }
}

/** Returns whether only one of both can be opened: an unspecified address includes all others. */
export function overlaps(one: Listener, other: Listener): boolean {
  if (one.port !== other.port || one.port === 0) return false
  const hosts = [one.host, other.host]
  if (hosts.includes('::')) return true
  if (hosts.includes('0.0.0.0')) return hosts.every((host) => IPV4.test(host))
  return one.host === other.host
}

export function formatListener({ host, port }: Pick<Listener, 'host' | 'port'>): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Which schemes an origin may have; `loopback-http` is http with 127.0.0.0/8 or [::1] only. */
export type OriginScheme = 'https' | 'loopback-http' | 'http'

/** Names that DNS can hold, and IPv6 addresses: the URL parser also takes `*` and others. */
const ORIGIN_HOST = /^(?:\[[0-9a-f:.]+\]|(?=.{1,254}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?)$/

/** Returns whether the text is exactly the origin that a browser or a client would send. */
export function isOrigin(text: string, schemes: readonly OriginScheme[]): boolean {
  const url = parseUrl(text)
  return (
    url !== null &&
    url.origin === text &&
    hasScheme(url, schemes) &&
    ORIGIN_HOST.test(url.hostname) &&
    url.port !== '0'
  )
}

const APP_ORIGIN = /^([a-z][a-z0-9+.-]*):\/\/[a-z0-9._-]+(?::[1-9][0-9]{0,4})?$/
/** Schemes of the web have rules of their own; pages of the other ones send `null`. */
const NO_APP_SCHEMES = [
  'http',
  'https',
  'ws',
  'wss',
  'ftp',
  'about',
  'blob',
  'data',
  'file',
  'filesystem',
  'javascript',
]

/** Returns whether the text is the origin of a web view or extension, as capacitor://localhost. */
export function isAppOrigin(text: string): boolean {
  const scheme = APP_ORIGIN.exec(text)?.[1]
  return scheme !== undefined && !NO_APP_SCHEMES.includes(scheme) && URL.canParse(text)
}

export function hasScheme(url: URL, schemes: readonly OriginScheme[]): boolean {
  if (url.protocol === 'https:') return schemes.includes('https')
  if (url.protocol !== 'http:') return false
  return schemes.includes('http') || (schemes.includes('loopback-http') && isLoopback(url.hostname))
}

/** `localhost` is not accepted: a resolver decides what it means. */
function isLoopback(hostname: string): boolean {
  return hostname === '[::1]' || (IPV4.test(hostname) && hostname.startsWith('127.'))
}

export function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}

const DATABASE_SCHEMES = ['postgres:', 'postgresql:']
/** Parameters by which a driver would connect elsewhere than the URL's own parts say. */
const TARGET_PARAMETERS = ['host', 'hostaddr', 'port', 'user', 'password', 'dbname', 'database']

export function parseDatabaseUrl(secret: Secret): DatabaseAddress | null {
  const text = secret.reveal()
  const url = parseUrl(text)
  if (url === null || !DATABASE_SCHEMES.includes(url.protocol) || /[\s#]/.test(text)) return null
  const parts = [url.username, url.password, url.hostname, url.pathname.slice(1)].map(decode)
  const [user, password, host, name] = parts
  if (!host || !name || user === null || password === null) return null
  // One host, not a list; and both are printed by `check`.
  if (/[\u0000-\u001f\u007f,]/.test(host) || /[\u0000-\u001f\u007f]/.test(name)) return null
  if (url.pathname.slice(1).includes('/') || url.port === '0') return null
  if (TARGET_PARAMETERS.some((key) => url.searchParams.has(key))) return null
  return { url: secret, host, port: Number(url.port || 5432), name }
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}
