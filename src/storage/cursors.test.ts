import { expect, test } from 'vitest'
import { ENVIRONMENT_ID } from '../../testing/product-roots.ts'
import { TestSystem } from '../system/system.ts'
import type { EnvironmentId } from '../value/ids.ts'
import { Cursors } from './cursors.ts'
import { Keyring } from './keyring.ts'

const OTHER = new TestSystem({ seed: 5 }).ids.make('env')
const LIST = '["messages",["channel"],["general"]]'
const KEY = '\u0002general\u0000\u00ff\u0001'

/** Makes cursors of keys that are filled with one byte each; the first one is active. */
function cursors(
  fills: readonly number[] = [1],
  environment: EnvironmentId = ENVIRONMENT_ID,
): Cursors {
  const keys = fills.map((fill) => ({
    id: `k${fill}`,
    key: new Uint8Array(32).fill(fill),
    createdAtMicros: 1n,
  }))
  return new Cursors(new Keyring({ version: 1, keys, active: `k${fills[0]}` }, environment))
}

test('a cursor opens to its key in any process that has the keyring', () => {
  const longest = '\u00ff'.repeat(2_560)
  for (const key of ['', 'a', KEY, longest]) {
    expect(cursors().open(LIST, cursors().seal(LIST, key))).toBe(key)
  }
  expect(cursors().seal(LIST, longest).length).toBeLessThan(4_096)
})

test('equal keys of a list have equal cursors, and different ones share no nonce', () => {
  expect(cursors().seal(LIST, KEY)).toBe(cursors().seal(LIST, KEY))
  const sealed = [
    ...['a', 'b', 'ab'].map((key) => cursors().seal(LIST, key)),
    cursors().seal('["messages",["channel"],["random"]]', 'a'),
    cursors([2]).seal(LIST, 'a'),
    cursors([1], OTHER).seal(LIST, 'a'),
  ]
  expect(new Set(sealed.map((cursor) => cursor.slice(0, 21))).size).toBe(sealed.length)
})

test('a cursor contains no part of its key', () => {
  const value = 'a value of the document'
  const text = Buffer.from(cursors().seal(LIST, value), 'base64url').toString('latin1')
  for (let i = 0; i + 4 <= value.length; i++) expect(text).not.toContain(value.slice(i, i + 4))
})

test('a cursor of another list or Environment does not open', () => {
  const cursor = cursors().seal(LIST, KEY)
  expect(cursors().open('["messages",["channel"],["random"]]', cursor)).toBeNull()
  expect(cursors().open('["messages",["author"],["general"]]', cursor)).toBeNull()
  expect(cursors([1], OTHER).open(LIST, cursor)).toBeNull()
})

test('a cursor stays valid after a rotation, but not after the removal of its key', () => {
  const cursor = cursors([1]).seal(LIST, KEY)
  expect(cursors([2, 1]).open(LIST, cursor)).toBe(KEY)
  expect(cursors([3, 2, 1]).open(LIST, cursor)).toBe(KEY)
  expect(cursors([3, 2]).open(LIST, cursor)).toBeNull()
})

test('a cursor with any bit changed, or of any other length, does not open', () => {
  const cursor = cursors().seal(LIST, KEY)
  const bytes = Buffer.from(cursor, 'base64url')
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    expect(cursors().open(LIST, changed.toString('base64url'))).toBeNull()
  }
  for (let length = 0; length < cursor.length; length++) {
    expect(cursors().open(LIST, cursor.slice(0, length))).toBeNull()
  }
  for (const other of [`${cursor}A`, `${cursor}=`, 'é', 'A'.repeat(4_097), 'A'.repeat(65_536)]) {
    expect(cursors().open(LIST, other)).toBeNull()
  }
})
