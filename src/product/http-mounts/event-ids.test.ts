/** Operation IDs of events: keyed, stable over rotations, and in the past. */
import { expect, test } from 'vitest'
import { Keyring } from '../../storage/keyring.ts'
import { realSystem } from '../../system/system.ts'
import { type EnvironmentId, idMillis, isId } from '../../value/ids.ts'
import { eventIds } from './event-ids.ts'

const ENVIRONMENT = `env_${'0'.repeat(25)}1` as EnvironmentId

function keyring(active: string, ids: readonly string[]) {
  const keys = ids.map((id) => ({ id, key: Buffer.alloc(32, id), createdAtMicros: 0n }))
  return new Keyring({ version: 1, keys, active }, ENVIRONMENT)
}

const NAME = { mount: 'main', route: 'stripe', event: 'evt_1' }

test('an event has one ID, and every other event has another', () => {
  const ring = keyring('a', ['a'])
  const { operationId, earlierIds } = eventIds(ring, NAME)
  expect(isId('opn', operationId)).toBe(true)
  expect(earlierIds).toEqual([])
  expect(eventIds(keyring('a', ['a']), NAME).operationId).toBe(operationId)
  const others = [
    { ...NAME, mount: 'other' },
    { ...NAME, route: 'other' },
    { ...NAME, event: 'evt_2' },
    { mount: 'main', route: 'stripeevt', event: '_1' },
  ].map((name) => eventIds(ring, name).operationId)
  expect(new Set([operationId, ...others]).size).toBe(5)
  expect(eventIds(keyring('b', ['b']), NAME).operationId).not.toBe(operationId)
})

test('after a rotation the ID under the earlier key is still known', () => {
  const { operationId } = eventIds(keyring('a', ['a']), NAME)
  const rotated = eventIds(keyring('b', ['a', 'b']), NAME)
  expect(rotated.operationId).not.toBe(operationId)
  expect(rotated.earlierIds).toEqual([operationId])
})

test('the ID is before every ID that an application makes, so that those need no look-up', () => {
  const now = realSystem().ids.make('opn')
  const ring = keyring('a', ['a'])
  for (let i = 0; i < 1_000; i++) {
    const { operationId } = eventIds(ring, { ...NAME, event: `evt_${i}` })
    expect(operationId < now).toBe(true)
    expect(idMillis(operationId)).toBeLessThan(Date.UTC(2005))
  }
})
