/** The certificate that the server orders by ACME (RFC 8555), and the authority it orders from. */
import { linkedPath, readCertificates } from '../system/certificates.ts'
import { absolutePath, pathBelow } from '../system/files.ts'
import { ACME_DIRECTORY } from '../value/product-root.ts'
import { type Listener, parseListener, parseUrl } from './addresses.ts'
import { invalid, type ProcessEnvironment, readFile, readPlain } from './sources.ts'
import type { PlainName } from './variables.ts'

export interface AcmeSettings {
  /** Lower-case DNS names; the certificate is for all of them. */
  readonly domains: readonly string[]
  readonly email: string | null
  readonly directoryUrl: string
  /** PEM of the certificates that the directory is trusted by; null for the public ones. */
  readonly authority: string | null
  /** The address that the authority reaches at port 80 of each domain. */
  readonly httpListen: Listener
  /** The directory of the account, the certificate and the record of orders. */
  readonly directory: string
}

/** PEM with the certificate, those of its issuers, and the private key. */
export const ACME_CERTIFICATE_FILE = 'certificate.pem'

const DOMAIN = 'SERVICE_TLS_ACME_DOMAIN'
const EMAIL = 'SERVICE_TLS_ACME_EMAIL'
const DIRECTORY = 'SERVICE_TLS_ACME_DIRECTORY_URL'
const AUTHORITY = 'SERVICE_TLS_ACME_CA_FILE'
const LISTEN = 'SERVICE_TLS_ACME_HTTP_LISTEN'
/** The settings without a default, which have no effect alone. */
const OTHERS: readonly PlainName[] = [EMAIL, AUTHORITY]

/** @limit TLS: names of the certificate that the server orders */
export const DOMAINS_MAX = 16
/** Names of two labels or more; a number as the last one would be that of an address. */
const HOST =
  /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** One address, whose characters need no quoting in a `mailto:` URL. */
const ADDRESS = /^[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,253}$/

/** Returns null if the server orders no certificate. Throws SERVER_CONFIGURATION_INVALID. */
export function readAcme(environment: ProcessEnvironment): AcmeSettings | null {
  const value = readPlain(environment, DOMAIN)
  if (value === null) {
    const other = OTHERS.find((name) => environment[name] !== undefined)
    if (other !== undefined) throw invalid(other, `only together with ${DOMAIN}`)
    return null
  }
  const domains = domainsOf(value)
  const root = readPlain(environment, 'SERVICE_PRODUCT_ROOT')
  if (root === null) throw invalid(DOMAIN, 'only together with SERVICE_PRODUCT_ROOT')
  return {
    domains,
    email: email(environment),
    directoryUrl: directoryUrl(environment),
    authority: authority(environment),
    httpListen: httpListen(environment),
    directory: pathBelow(root, ACME_DIRECTORY),
  }
}

function domainsOf(value: string): readonly string[] {
  const domains = value.split(',')
  if (domains.length > DOMAINS_MAX) throw invalid(DOMAIN, `at most ${DOMAINS_MAX} names`)
  if (!domains.every((each) => HOST.test(each))) {
    const rule =
      'DNS names in lower case, separated by commas alone, such as api.example.com: no address, ' +
      'port or wildcard, and an international name in its xn-- form'
    throw invalid(DOMAIN, rule)
  }
  if (new Set(domains).size !== domains.length) throw invalid(DOMAIN, 'each name once')
  return domains
}

function email(environment: ProcessEnvironment): string | null {
  const value = readPlain(environment, EMAIL)
  if (value === null || ADDRESS.test(value)) return value
  throw invalid(EMAIL, 'one address such as admin@example.com')
}

function directoryUrl(environment: ProcessEnvironment): string {
  const value = readPlain(environment, DIRECTORY)!
  const url = parseUrl(value)
  const isPlain = url?.username === '' && url.password === '' && !url.href.includes('#')
  if (url?.protocol === 'https:' && isPlain && url.port !== '0') return value
  throw invalid(DIRECTORY, 'an HTTPS URL without a user, such as https://ca.example.com/directory')
}

function authority(environment: ProcessEnvironment): string | null {
  const path = readPlain(environment, AUTHORITY)
  if (path === null) return null
  if (absolutePath(path) === null) throw invalid(AUTHORITY, 'an absolute path')
  const bytes = readFile(linkedPath(path), AUTHORITY, 'SERVER_CONFIGURATION_INVALID')
  const found = readCertificates(new TextDecoder().decode(bytes))
  if (found === null) throw invalid(AUTHORITY, 'a PEM file with certificates')
  return found.chain
}

function httpListen(environment: ProcessEnvironment): Listener {
  const listen = parseListener(readPlain(environment, LISTEN)!)
  if (listen === null) throw invalid(LISTEN, 'address:port such as 0.0.0.0:80 or [::]:80')
  return listen
}
