import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { AssertionFailure } from '../../errors/assert.ts'
import { ControlDatabase, type ControlTx } from './database.ts'

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

function insert(tx: ControlTx, id: string, size = 1): void {
  tx.run('insert into audit_outbox (audit_id, record) values (?, ?)', id, 'x'.repeat(size))
}
function ids(): string[] {
  return control.read((reader) =>
    reader
      .all<{ audit_id: string }>('select audit_id from audit_outbox')
      .map((row) => row.audit_id),
  )
}

test('a transaction keeps its writes, and a failed one leaves none', () => {
  expect(
    control.transaction((tx) => {
      insert(tx, 'a')
      return 7
    }),
  ).toBe(7)
  expect(() =>
    control.transaction((tx) => {
      insert(tx, 'b')
      throw new RangeError('rule')
    }),
  ).toThrow(RangeError)
  expect(ids()).toEqual(['a'])
})

test('an asynchronous transaction fails an assertion and leaves no writes', () => {
  expect(() => control.transaction(async (tx) => insert(tx, 'a'))).toThrow(AssertionFailure)
  expect(ids()).toEqual([])
  control.transaction((tx) => insert(tx, 'b'))
  expect(ids()).toEqual(['b'])
})

test('a full disk makes a transaction unavailable until there is space again', () => {
  const limit = control.transaction((tx) => {
    const pages = tx.get<{ page_count: number }>('pragma page_count')!.page_count
    tx.get(`pragma max_page_count = ${pages + 2}`)
    return pages
  })
  expect(() => control.transaction((tx) => insert(tx, 'big', 1_000_000))).toThrow(
    expect.objectContaining({ code: 'PRODUCT_UNAVAILABLE' }),
  )
  expect(ids()).toEqual([])
  control.transaction((tx) => tx.get(`pragma max_page_count = ${limit + 1_000}`))
  control.transaction((tx) => insert(tx, 'big', 1_000_000))
  expect(ids()).toEqual(['big'])
})

test('a violated constraint throws an error that is no Fault', () => {
  control.transaction((tx) => insert(tx, 'a'))
  expect(() => control.transaction((tx) => insert(tx, 'a'))).toThrow('UNIQUE')
  expect(() => control.transaction((tx) => insert(tx, 'a'))).not.toThrow(
    expect.objectContaining({ name: 'Fault' }),
  )
})

test('commits are synchronous and written ahead to the log', () => {
  const pragma = (name: string) =>
    control.read((reader) => Object.values(reader.get<object>(`pragma ${name}`)!)[0] as unknown)
  expect(pragma('journal_mode')).toBe('wal')
  // 2 is FULL: a commit that returned survives a power failure.
  expect(pragma('synchronous')).toBe(2)
  expect(pragma('foreign_keys')).toBe(1)
})
