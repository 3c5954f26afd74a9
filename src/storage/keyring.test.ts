import { expect, test } from 'vitest'
import { ENVIRONMENT_ID } from '../../testing/product-roots.ts'
import { TestSystem } from '../system/system.ts'
import type { EnvironmentId } from '../value/ids.ts'
import { Keyring, type KeyUse } from './keyring.ts'

const OTHER = new TestSystem({ seed: 5 }).ids.make('env')

function keyring(fills: readonly number[] = [1, 2], environment: EnvironmentId = ENVIRONMENT_ID) {
  const keys = fills.map((fill, i) => ({
    id: `k${i + 1}`,
    key: new Uint8Array(32).fill(fill),
    createdAtMicros: 1n,
  }))
  return new Keyring({ version: 1, keys, active: 'k1' }, environment)
}

test('each key, use and Environment derives its own key deterministically', () => {
  const uses: KeyUse[] = ['application-public-key', 'application-key-digest', 'keyring-check']
  const derived = [ENVIRONMENT_ID, OTHER].flatMap((environment) =>
    ['k1', 'k2'].flatMap((keyId) =>
      uses.map((use) => Buffer.from(keyring([1, 2], environment).derive(keyId, use))),
    ),
  )
  expect(derived.every((key) => key.length === 32)).toBe(true)
  expect(new Set(derived.map((key) => key.toString('hex'))).size).toBe(12)
  expect(derived.map(String)).not.toContain(String(Buffer.alloc(32, 1)))
  expect(keyring().derive('k2', 'keyring-check')).toEqual(keyring().derive('k2', 'keyring-check'))
})

test('a check matches only the key that it was derived from', () => {
  const check = keyring().derive('k1', 'keyring-check')
  expect(keyring().fits('k1', check)).toBe(true)
  expect(keyring([3, 2]).fits('k1', check)).toBe(false)
  expect(keyring([1], OTHER).fits('k1', check)).toBe(false)
  expect(keyring().fits('k2', check)).toBe(false)
  expect(keyring().fits('k9', check)).toBe(false)
  expect(keyring().fits('k1', check.subarray(1))).toBe(false)
})

test('an inspected keyring shows no key', () => {
  const ring = keyring()
  ring.derive('k1', 'keyring-check')
  expect(Bun.inspect(ring) + JSON.stringify(ring)).not.toMatch(/1, 1, 1|Uint8Array/)
})
