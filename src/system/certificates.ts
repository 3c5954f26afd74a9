/** Certificates and private keys of TLS, as PEM texts. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'

export interface CertificateFacts {
  /** Names and addresses that the certificate is for, such as `DNS:api.example.com`. */
  readonly names: string
  /** The DNS names among them. */
  readonly hosts: readonly string[]
  /** The PEM blocks of the certificates alone. */
  readonly chain: string
  /** Unix milliseconds. */
  readonly startsAtMillis: number
  readonly endsAtMillis: number
  /** Returns whether the key is that of the certificate; null if it is not one private key. */
  fits(key: string): boolean | null
}

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
const DNS_NAME = /(?:^|, )DNS:([^,"]+)/g

/** Returns the facts of the first certificate; null if it or one of its issuers is not PEM. */
export function readCertificates(text: string): CertificateFacts | null {
  try {
    const blocks: readonly string[] = text.match(BLOCK) ?? []
    const [own] = blocks.map((block) => new X509Certificate(block))
    if (own === undefined) return null
    const names = own.subjectAltName ?? own.subject
    return {
      names,
      hosts: [...names.matchAll(DNS_NAME)].map(([, host]) => host!),
      chain: `${blocks.join('\n')}\n`,
      startsAtMillis: Date.parse(own.validFrom),
      endsAtMillis: Date.parse(own.validTo),
      fits: (key) => isKeyOf(own, key),
    }
  } catch {
    return null
  }
}

function isKeyOf(certificate: X509Certificate, key: string): boolean | null {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key))
  } catch {
    return null
  }
}

/** Returns the path that symbolic links lead to; the path itself if nothing is there. */
export function linkedPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** Returns a text that differs once the path leads to another file or content. */
export function stateOfPath(path: string): string {
  try {
    const { ino, size, mtimeMs, ctimeMs } = statSync(path)
    return [realpathSync(path), ino, size, mtimeMs, ctimeMs].join(' ')
  } catch {
    return 'missing'
  }
}
