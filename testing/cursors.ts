/** The keyring of a test Environment, which is known, and its cursors. */
import { Cursors } from '../src/storage/cursors.ts'
import { Keyring } from '../src/storage/keyring.ts'
import { ENVIRONMENT_ID } from './product-roots.ts'

export function testKeyring(): Keyring {
  const key = { id: 'k1', key: new Uint8Array(32).fill(1), createdAtMicros: 1n }
  return new Keyring({ version: 1, keys: [key], active: 'k1' }, ENVIRONMENT_ID)
}

export function testCursors(): Cursors {
  return new Cursors(testKeyring())
}
