/**
 * Writes signatures in the format of minisign, prehashed with BLAKE2b-512, from a secret key that
 * `minisign -G -W` made. src/client/upgrade/minisign.ts has the format, and verifies them.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  KEY_ALGORITHM,
  KEY_BYTES,
  KEY_ID_BYTES,
  PREHASHED,
  parsePublicKey,
  signedComment,
  signedDigest,
  TRUSTED,
  UNTRUSTED,
} from '../../src/client/upgrade/minisign.ts'
import { assert } from '../../src/errors/assert.ts'

const ALGORITHM = Buffer.from(KEY_ALGORITHM)
/** Algorithm, derivation, checksum, salt, two limits, then the key ID, the key and a checksum. */
const SECRET_BYTES = 158
const KEY_ID_AT = 54
const SEED_AT = 62
const PUBLIC_AT = 94
/** The DER of an Ed25519 private key up to its seed. */
const SEED_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

export interface MinisignKey {
  readonly key: KeyObject
  /** Names the key in signatures. */
  readonly id: Buffer
  /** The public key as `minisign -P` takes it: base64 of algorithm, key ID and key. */
  readonly publicKey: string
}

/** Reads an unencrypted secret key. Throws for one with a password, and for a damaged one. */
export function readMinisignKey(path: string): MinisignKey {
  const bytes = Buffer.from(secondLine(readFileSync(path, 'utf8')), 'base64')
  const isSecret = bytes.length === SECRET_BYTES && bytes.subarray(0, 2).equals(ALGORITHM)
  assert(isSecret, `${path} is no secret key of minisign: make one with minisign -G -W`)
  assert(
    bytes.readUInt16LE(2) === 0,
    `the key in ${path} is encrypted, and a build can ask for no password: ` +
      'remove the password with minisign -C -W, or make a key with minisign -G -W',
  )
  const id = bytes.subarray(KEY_ID_AT, KEY_ID_AT + KEY_ID_BYTES)
  const seed = bytes.subarray(SEED_AT, SEED_AT + KEY_BYTES)
  const stored = bytes.subarray(PUBLIC_AT, PUBLIC_AT + KEY_BYTES)
  const der = Buffer.concat([SEED_PREFIX, seed])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const point = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-KEY_BYTES)
  assert(point.equals(stored), `the key in ${path} is damaged: its halves do not belong together`)
  return { key, id, publicKey: encodePublic(id, point) }
}

/** Returns a new key, for tests: releases are signed by a key that minisign made. */
export function generateMinisignKey(): MinisignKey {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const id = randomBytes(KEY_ID_BYTES)
  const point = publicKey.export({ format: 'der', type: 'spki' }).subarray(-KEY_BYTES)
  return { key: privateKey, id, publicKey: encodePublic(id, point) }
}

function encodePublic(id: Uint8Array, point: Uint8Array): string {
  return Buffer.concat([ALGORITHM, id, point]).toString('base64')
}

/** Returns the file minisign.pub of a public key. */
export function minisignPublicFile(publicKey: string): string {
  const parsed = parsePublicKey(publicKey)
  assert(parsed !== null, 'this is no public key of minisign')
  return `${UNTRUSTED}minisign public key ${parsed.id}\n${publicKey}\n`
}

/** Returns the public key in a file minisign.pub. */
export function readMinisignPublic(path: string): string {
  const text = readFileSync(path, 'utf8')
  assert(parsePublicKey(text) !== null, `${path} is no public key of minisign`)
  return text.trimEnd().split(/\r?\n/).at(-1)!
}

/** Returns the file with the signature of a content. It covers the comment too. */
export function signMinisign(content: Uint8Array, comment: string, signer: MinisignKey): string {
  assert(!/[\r\n]/.test(comment), 'a trusted comment is one line')
  const signature = sign(null, signedDigest(content), signer.key)
  const whole = sign(null, signedComment(signature, comment), signer.key)
  return [
    `${UNTRUSTED}verify with minisign -V -p minisign.pub`,
    Buffer.concat([Buffer.from(PREHASHED), signer.id, signature]).toString('base64'),
    `${TRUSTED}${comment}`,
    whole.toString('base64'),
    '',
  ].join('\n')
}

function secondLine(text: string): string {
  return text.split(/\r?\n/)[1]?.trim() ?? ''
}
