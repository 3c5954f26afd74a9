/**
 * The files of ACME in a Product root: the key of the account, the certificate with its key, and
 * the record of orders. Each is written atomically, so that a crash leaves the old or the new one.
 * Only the process that has the lock of the root writes them.
 */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ACME_CERTIFICATE_FILE } from '../../../settings/acme.ts'
import {
  ensurePrivateDirectory,
  FileFailure,
  readSecretFile,
  writeFileAtomic,
} from '../../../system/files.ts'
import { Secret } from '../../../value/secret.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import {
  type CertificateOrdersFile,
  formatCertificateOrders,
  parseCertificateOrders,
} from '../../../wire/files/certificate-orders.ts'
import { AcmeFailure } from './acme-failure.ts'

const ACCOUNT_FILE = 'account.key'
const ORDERS_FILE = 'orders.json'
const BYTES_MAX = 64 * 1024

export class AcmeFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Creates the directory, and removes what a killed process left of a write. */
  prepare(): void {
    ensurePrivateDirectory(this.#directory)
    for (const name of readdirSync(this.#directory)) {
      if (name.startsWith('.') && name.endsWith('.tmp')) {
        rmSync(join(this.#directory, name), { force: true })
      }
    }
  }

  /**
   * Returns the key of the account, PEM. It is made, and durable, before its first use. Throws
   * FileFailure, and AcmeFailure for a damaged file: another key would be another account, so the
   * operator decides about it.
   */
  accountKey(): Secret {
    const path = join(this.#directory, ACCOUNT_FILE)
    if (existsSync(path)) {
      const bytes = readSecretFile(path, { bytesMax: BYTES_MAX })
      return accountKeyOf(new TextDecoder().decode(bytes), path)
    }
    const key = newKey()
    writeFileAtomic(path, key.reveal())
    return key
  }

  /** Returns the record of the orders from this directory; an empty one if there is none. */
  orders(directoryUrl: string): CertificateOrdersFile {
    const kept = readOrders(this.#directory)
    if (kept?.directoryUrl === directoryUrl) return kept
    return { version: 1, directoryUrl, orders: [], retryAtMillis: 0, failure: null }
  }

  writeOrders(orders: CertificateOrdersFile): void {
    writeFileAtomic(join(this.#directory, ORDERS_FILE), formatCertificateOrders(orders))
  }

  /** Replaces the certificate and its key, in one file, at once. */
  writeCertificate(content: Secret): void {
    writeFileAtomic(join(this.#directory, ACME_CERTIFICATE_FILE), content.reveal())
  }

  /** Returns whether there is a file of the certificate, which may be damaged. */
  hasCertificate(): boolean {
    return existsSync(join(this.#directory, ACME_CERTIFICATE_FILE))
  }
}

function accountKeyOf(text: string, path: string): Secret {
  try {
    const { asymmetricKeyType } = createPrivateKey(text)
    if (asymmetricKeyType === 'ec' || asymmetricKeyType === 'rsa') return new Secret(text)
  } catch {
    // The cause may quote the key.
  }
  throw new AcmeFailure(
    `${path} has no private key: restore it, or remove it to register another account`,
  )
}

/** Returns a new private key for signatures (P-256), PEM. */
export function newKey(): Secret {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return new Secret(String(privateKey.export({ type: 'pkcs8', format: 'pem' })))
}

/** Returns null without a record, and for one that is not valid: nothing is known then. */
export function readOrders(directory: string): CertificateOrdersFile | null {
  try {
    return parseCertificateOrders(
      readSecretFile(join(directory, ORDERS_FILE), { bytesMax: BYTES_MAX }),
    )
  } catch (error) {
    if (error instanceof FileFailure || error instanceof ValidationError) return null
    if (error instanceof SyntaxError) return null
    throw error
  }
}
