/**
 * The certificate of listeners that end TLS themselves, and its private key. Both files are read at
 * the start and whenever they change. The operator names them, or the server orders them by ACME.
 */
import { isFault } from '../errors/fault.ts'
import { linkedPath, readCertificates } from '../system/certificates.ts'
import { absolutePath, pathBelow } from '../system/files.ts'
import { Secret } from '../value/secret.ts'
import { ACME_CERTIFICATE_FILE, type AcmeSettings, readAcme } from './acme.ts'
import { invalid, type ProcessEnvironment, readFile, readPlain } from './sources.ts'

/** A certificate with its chain, and the private key of the certificate. */
export interface CertificatePair {
  /** PEM: the certificate of the server, then those of its issuers. */
  readonly certificate: string
  /** PEM. */
  readonly key: Secret
  /** Names and addresses that the certificate is for, such as `DNS:api.example.com`. */
  readonly names: string
  /** The DNS names among them. */
  readonly hosts: readonly string[]
  /** Unix milliseconds. */
  readonly startsAtMillis: number
  readonly endsAtMillis: number
}

/** Absolute paths of both files, which may be symbolic links. */
export interface CertificatePaths {
  readonly certificate: string
  readonly key: string
}

export interface TlsSettings {
  readonly paths: CertificatePaths
  /** The content of the files at the start; null if the server has yet to order them. */
  readonly pair: CertificatePair | null
  /** Null if the operator names the files. */
  readonly acme: AcmeSettings | null
}

const CERTIFICATE = 'SERVICE_TLS_CERTIFICATE_FILE'
const KEY = 'SERVICE_TLS_KEY_FILE'
const CERTIFICATE_RULE =
  'a PEM file with the certificate of this server first, and then those of its issuers'
const KEY_RULE = 'a PEM file with one private key that no passphrase protects'

/** Returns null if no listener ends TLS. Throws SERVER_CONFIGURATION_INVALID. */
export function readTls(environment: ProcessEnvironment): TlsSettings | null {
  const certificate = pathOf(environment, CERTIFICATE)
  const key = pathOf(environment, KEY)
  const acme = readAcme(environment)
  if (acme !== null) {
    if (certificate !== null)
      throw invalid(CERTIFICATE, 'not together with SERVICE_TLS_ACME_DOMAIN')
    if (key !== null) throw invalid(KEY, 'not together with SERVICE_TLS_ACME_DOMAIN')
    const paths = orderedPaths(acme)
    return { paths, pair: readOrderedPair(paths), acme }
  }
  if (certificate === null && key === null) return null
  if (certificate === null) throw invalid(KEY, `only together with ${CERTIFICATE}`)
  if (key === null) throw invalid(CERTIFICATE, `only together with ${KEY}`)
  const paths = { certificate, key }
  return { paths, pair: readCertificatePair(paths), acme: null }
}

/** One file has the certificate and its key, so that a crash cannot part them. */
export function orderedPaths({ directory }: AcmeSettings): CertificatePaths {
  const path = pathBelow(directory, ACME_CERTIFICATE_FILE)
  return { certificate: path, key: path }
}

/** Returns null for a missing file, and for one that the server has to replace. */
export function readOrderedPair(paths: CertificatePaths): CertificatePair | null {
  try {
    return readCertificatePair(paths)
  } catch (error) {
    if (!isFault(error)) throw error
    return null
  }
}

/** Returns the pair of a text that has the certificate and its key; null for another text. */
export function orderedPairOf(text: string): CertificatePair | null {
  try {
    return pairOf(text, text)
  } catch (error) {
    if (!isFault(error)) throw error
    return null
  }
}

function pathOf(
  environment: ProcessEnvironment,
  name: typeof CERTIFICATE | typeof KEY,
): string | null {
  const value = readPlain(environment, name)
  if (value === null) return null
  const path = absolutePath(value)
  if (path === null) throw invalid(name, 'an absolute path')
  return path
}

/** Throws SERVER_CONFIGURATION_INVALID for files that are not a certificate and its key. */
export function readCertificatePair(paths: CertificatePaths): CertificatePair {
  return pairOf(readText(paths.certificate, CERTIFICATE), readText(paths.key, KEY))
}

function pairOf(certificate: string, key: string): CertificatePair {
  const own = readCertificates(certificate)
  if (own === null) throw invalid(CERTIFICATE, CERTIFICATE_RULE)
  const fits = own.fits(key)
  if (fits === null) throw invalid(KEY, KEY_RULE)
  if (!fits) throw invalid(KEY, `the private key of the certificate in ${CERTIFICATE}`)
  const { names, hosts, chain, startsAtMillis, endsAtMillis } = own
  return { certificate: chain, key: new Secret(key), names, hosts, startsAtMillis, endsAtMillis }
}

/** Programs that renew certificates name the current one by a symbolic link. */
function readText(path: string, name: string): string {
  return new TextDecoder().decode(readFile(linkedPath(path), name, 'SERVER_CONFIGURATION_INVALID'))
}
