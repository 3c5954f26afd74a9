/** Signatures by a key that gpg has. */
import { spawnSync } from 'node:child_process'
import { assert } from '../../src/errors/assert.ts'

function gpg(args: readonly string[], input: Uint8Array): Buffer {
  const options = ['--batch', '--no-tty', '--digest-algo', 'SHA256']
  const { status, stdout, stderr, error } = spawnSync('gpg', [...options, ...args], { input })
  assert(status === 0 && stdout.length > 0, `gpg failed: ${error?.message ?? stderr}`)
  return stdout
}

/** Returns the text with its signature around it. */
export function clearSign(key: string, text: Uint8Array): Buffer {
  return gpg(['--clearsign', '--local-user', key], text)
}

/** Returns a signature as text. */
export function armoredSignature(key: string, content: Uint8Array): Buffer {
  return gpg(['--armor', '--detach-sign', '--local-user', key], content)
}

/** Returns a signature as one OpenPGP packet. */
export function detachedSignature(key: string, content: Uint8Array): Buffer {
  return gpg(['--detach-sign', '--local-user', key], content)
}

/** Returns the public key as text. */
export function publicKey(key: string): Buffer {
  return gpg(['--armor', '--export', key], new Uint8Array())
}
