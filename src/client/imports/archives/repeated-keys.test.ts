/** Fingerprints of more keys than are in memory. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { KeyFingerprints, RepeatedKeys } from './repeated-keys.ts'

const KEYS = 5_000

let fingerprints: KeyFingerprints
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-repeated-keys-'))
  vi.stubEnv('TMPDIR', directory)
  fingerprints = new KeyFingerprints(100)
})
afterEach(() => {
  fingerprints.remove()
  vi.unstubAllEnvs()
  rmSync(directory, { recursive: true })
})

/** Adds many keys, and then some of them again. */
function addAll(again: readonly number[]): ReadonlySet<bigint> {
  for (let i = 0; i < KEYS; i++) fingerprints.add({ object: i % 7, key: String(i) })
  for (const i of again) fingerprints.add({ object: i % 7, key: String(i) })
  return fingerprints.repeated()
}

test('keys that are repeated after many others are found, and no others', () => {
  const again = [0, 1, 99, 100, 2_500, KEYS - 1]
  const repeated = addAll(again)
  expect(repeated.size).toBe(again.length)
  const keys = new RepeatedKeys(repeated)
  for (let i = 0; i < KEYS; i++) expect(keys.add({ object: i % 7, key: String(i) })).toBe(false)
  for (const i of again) expect(keys.add({ object: i % 7, key: String(i) })).toBe(true)
  expect(keys.add({ object: 3, key: '0' })).toBe(false)
})

test('keys without a repetition have none', () => {
  expect(addAll([]).size).toBe(0)
})

test('equal fingerprints of different keys are no repetition', () => {
  const all = new Set<bigint>()
  all.has = () => true
  const keys = new RepeatedKeys(all)
  expect(keys.add({ object: 0, key: 'a' })).toBe(false)
  expect(keys.add({ object: 0, key: 'b' })).toBe(false)
  expect(keys.add({ object: 0, key: 'a' })).toBe(true)
})

test('the files are removed', () => {
  addAll([])
  expect(readdirSync(directory)).toHaveLength(1)
  fingerprints.remove()
  expect(readdirSync(directory)).toEqual([])
})
