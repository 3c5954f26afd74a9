/** Releases that a test makes and signs, with a script in place of the executable. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tarGzip } from '../../build/archives.ts'

export const TARGET = 'linux-x64'

/** A key of minisign, which signs as `minisign -S` does. */
export class MinisignKey {
  readonly #id = randomBytes(8)
  readonly #private: KeyObject
  readonly #raw: Buffer

  constructor() {
    const pair = generateKeyPairSync('ed25519')
    this.#private = pair.privateKey
    this.#raw = pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  }

  /** The public key as one line of base64. */
  get text(): string {
    return Buffer.concat([Buffer.from('Ed'), this.#id, this.#raw]).toString('base64')
  }

  /** The file of the public key. */
  get file(): string {
    return `untrusted comment: minisign public key\n${this.text}\n`
  }

  sign(content: Uint8Array | string, comment: string): string {
    const digest = createHash('blake2b512').update(content).digest()
    const own = sign(null, digest, this.#private)
    const global = sign(null, Buffer.concat([own, Buffer.from(comment)]), this.#private)
    const signed = Buffer.concat([Buffer.from('ED'), this.#id, own])
    return [
      'untrusted comment: signature of a test',
      signed.toString('base64'),
      `trusted comment: ${comment}`,
      global.toString('base64'),
      '',
    ].join('\n')
  }
}

export interface ReleaseParts {
  readonly version: string
  /** The script in place of the executable. */
  readonly executable: string
  /** Other members by their paths. */
  readonly members?: Readonly<Record<string, string>>
  readonly key: MinisignKey
  /** The archive in place of one of the members. */
  readonly archive?: Buffer
}

export function archiveName(version: string): string {
  return `svc-${version}-${TARGET}.tar.gz`
}

/** Writes the files of a release into a directory, which is created. */
export function writeRelease(directory: string, parts: ReleaseParts): void {
  const { version, executable, members = {}, key } = parts
  const entries = [['svc-server', executable] as const, ...Object.entries(members)]
  const archive =
    parts.archive ??
    tarGzip(
      entries.map(([path, text]) => ({
        path,
        bytes: Buffer.from(text),
        executable: path === 'svc-server',
      })),
    )
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, archiveName(version)), archive)
  const digest = createHash('sha256').update(archive).digest('hex')
  signSums(directory, `${digest}  ${archiveName(version)}\n`, { version, key })
}

/** Writes the list of a release with its signature. */
export function signSums(
  directory: string,
  sums: string,
  { version, key }: Pick<ReleaseParts, 'version' | 'key'>,
): void {
  writeFileSync(join(directory, 'SHA256SUMS'), sums)
  const signature = key.sign(sums, `svc ${version} 2026-11-27T05:00:00Z`)
  writeFileSync(join(directory, 'SHA256SUMS.minisig'), signature)
}
