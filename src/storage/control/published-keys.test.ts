import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ControlDatabase } from './database.ts'
import {
  findPublishedKeySet,
  type KeyPublisher,
  type PublishedKeySet,
  retainPublishedKeySets,
  writePublishedKeySet,
} from './published-keys.ts'

const USERS = { issuer: 'https://users.test', uri: 'https://users.test/jwks' }
const MOVED = { ...USERS, uri: 'https://users.test/moved' }
const OTHERS = { issuer: 'https://others.test', uri: USERS.uri }
let directory: string
let control: ControlDatabase

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'control-'))
  control = ControlDatabase.open(join(directory, 'control.db'), 5n)
})

afterEach(() => {
  control.close()
  rmSync(directory, { recursive: true, force: true })
})

const find = (publisher: KeyPublisher) =>
  control.read((reader) => findPublishedKeySet(reader, publisher))
const write = (publisher: KeyPublisher, document: Uint8Array, fetchedAtMicros = 7n) =>
  control.transaction((tx) => writePublishedKeySet(tx, publisher, { document, fetchedAtMicros }))
const set = (document: Uint8Array, fetchedAtMicros = 7n): PublishedKeySet => ({
  document: Uint8Array.from(document),
  fetchedAtMicros,
})

test('a key set is found only by its issuer and the URI that it came from', () => {
  write(USERS, Buffer.from('a'))
  write(OTHERS, Buffer.from('b'))
  expect(find(USERS)).toEqual(set(Buffer.from('a')))
  expect(find(OTHERS)).toEqual(set(Buffer.from('b')))
  expect(find(MOVED)).toBeNull()
})

test('the newest key set of an issuer replaces the one before, even of another URI', () => {
  write(USERS, Buffer.from('a'))
  write(USERS, Buffer.from('b'), 8n)
  expect(find(USERS)).toEqual(set(Buffer.from('b'), 8n))
  write(MOVED, Buffer.from('c'), 9n)
  expect([find(USERS), find(MOVED)]).toEqual([null, set(Buffer.from('c'), 9n)])
})

test('a key set has at most 256 KiB', () => {
  write(USERS, Buffer.alloc(256 * 1024))
  expect(() => write(USERS, Buffer.alloc(256 * 1024 + 1))).toThrow('CHECK')
  expect(() => write(USERS, Buffer.alloc(0))).toThrow('CHECK')
  expect(find(USERS)?.document).toHaveLength(256 * 1024)
})

test('only the key sets of the given publishers are retained', () => {
  write(USERS, Buffer.from('a'))
  write(OTHERS, Buffer.from('b'))
  control.transaction((tx) => retainPublishedKeySets(tx, [OTHERS, MOVED]))
  expect([find(USERS), find(OTHERS)]).toEqual([null, set(Buffer.from('b'))])
})
