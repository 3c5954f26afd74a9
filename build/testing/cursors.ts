/** Creates cursors of an Environment whose keyring is known. */
import { Cursors } from '../../src/storage/cursors.ts'
import { Keyring } from '../../src/storage/keyring.ts'
import { ENVIRONMENT_ID } from './product-roots.ts'

export function testCursors(): Cursors {
  const key = { id: 'k1', key: new Uint8Array(32).fill(1), createdAtMicros: 1n }
  return new Cursors(new Keyring({ version: 1, keys: [key], active: 'k1' }, ENVIRONMENT_ID))
}
