/** Product roots for tests, as `svc init` creates them. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestSystem } from '../src/system/system.ts'
import { IdFactory } from '../src/value/ids.ts'
import {
  DESCRIPTOR_FILE,
  formatKeyring,
  formatRootDescriptor,
  KEYRING_FILE,
  type RootDescriptor,
} from '../src/value/product-root.ts'

/** A script that opens a root and keeps it open until it is killed. */
export const ROOT_HOLDER = join(import.meta.dirname, '..', 'testing/root-holder.ts')
const ids = new IdFactory(new TestSystem({ seed: 7 }))
export const PROJECT_ID = ids.make('prj')
export const ENVIRONMENT_ID = ids.make('env')

/** Creates a root and returns its directory. Every byte of its only key is `key`. */
export function makeRoot(options: { descriptor?: Partial<RootDescriptor>; key?: number } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'product-root-'))
  const descriptor: RootDescriptor = {
    version: 1,
    projectId: PROJECT_ID,
    environmentId: ENVIRONMENT_ID,
    name: 'My app',
    slug: 'my-app',
    createdAtMicros: 1_800_000_000_000_000n,
    workspace: null,
    listen: null,
    ...options.descriptor,
  }
  const key = { id: 'k1', key: new Uint8Array(32).fill(options.key ?? 1), createdAtMicros: 1n }
  const keyring = formatKeyring({ version: 1, keys: [key], active: 'k1' })
  writeFileSync(join(directory, DESCRIPTOR_FILE), formatRootDescriptor(descriptor), { mode: 0o644 })
  writeFileSync(join(directory, KEYRING_FILE), keyring, { mode: 0o600 })
  return directory
}
