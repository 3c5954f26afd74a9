/** The keys of a release: those that sign it, or the public ones of a release that is rebuilt. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../src/errors/assert.ts'
import {
  type MinisignKey,
  minisignPublicFile,
  readMinisignKey,
  readMinisignPublic,
  signMinisign,
} from './minisign.ts'

/** Names of the files with public keys beside SHA256SUMS. */
export const PEM_FILE = 'release.pub'
export const MINISIGN_FILE = 'minisign.pub'

export interface ReleaseKeys {
  /** The P-256 public key in PEM, without its final line feed; empty if there is none. */
  readonly pem: string
  /** The public key of minisign in base64; empty if there is none. */
  readonly minisign: string
  /** Null where the release is unsigned or rebuilt, and so is `minisigner`. */
  readonly signer: KeyObject | null
  readonly minisigner: MinisignKey | null
}

/** Reads the secret keys that the environment names. */
export function signingKeys(environment: NodeJS.ProcessEnv): ReleaseKeys {
  const pemFile = environment.SVC_RELEASE_KEY_FILE
  const minisignFile = environment.SVC_RELEASE_MINISIGN_KEY_FILE
  const signer = pemFile === undefined ? null : readSigner(pemFile)
  const minisigner = minisignFile === undefined ? null : readMinisignKey(minisignFile)
  return {
    pem: signer === null ? '' : publicPem(createPublicKey(signer)),
    minisign: minisigner?.publicKey ?? '',
    signer,
    minisigner,
  }
}

function readSigner(path: string): KeyObject {
  const key = createPrivateKey(readFileSync(path))
  const curve = key.asymmetricKeyDetails?.namedCurve
  assert(curve === 'prime256v1' || curve === 'P-256', `${path} is no P-256 private key`)
  return key
}

/** Reads the public keys of a release. Nothing that is built with them is signed. */
export function publicKeys(folder: string): ReleaseKeys {
  const [pem, minisign] = [join(folder, PEM_FILE), join(folder, MINISIGN_FILE)]
  return {
    pem: existsSync(pem) ? publicPem(createPublicKey(readFileSync(pem))) : '',
    minisign: existsSync(minisign) ? readMinisignPublic(minisign) : '',
    signer: null,
    minisigner: null,
  }
}

function publicPem(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }).toString().trim()
}

/**
 * Writes the signatures of a list of digests and the public keys beside it. The signature by P-256
 * is DER, which openssl and cosign read.
 */
export function writeSignatures(out: string, list: string, comment: string, keys: ReleaseKeys) {
  const content = Buffer.from(list)
  if (keys.signer !== null) {
    writeFileSync(join(out, 'SHA256SUMS.sig'), sign('sha256', content, keys.signer))
    writeFileSync(join(out, PEM_FILE), `${keys.pem}\n`)
  }
  if (keys.minisigner !== null) {
    const signature = signMinisign(content, comment, keys.minisigner)
    writeFileSync(join(out, 'SHA256SUMS.minisig'), signature)
    writeFileSync(join(out, MINISIGN_FILE), minisignPublicFile(keys.minisign))
  }
}
