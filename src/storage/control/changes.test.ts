import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeRoot } from '../../../testing/product-roots.ts'
import { realSystem } from '../../system/system.ts'
import { openProductRoot, type ProductRoot } from '../root.ts'
import type { ControlChanges } from './changes.ts'
import { prepareCopy, readCopy } from './copies.ts'
import type { ControlTx } from './database.ts'

let root: ProductRoot
let changes: ControlChanges

beforeEach(async () => {
  root = await openProductRoot(makeRoot(), realSystem())
  changes = root.control.trackChanges()
})
afterEach(() => {
  root.close()
  rmSync(root.path, { recursive: true })
})

const write = (body: (tx: ControlTx) => void) => root.control.transaction(body)

const setValue = (tx: ControlTx, name: string, value: string) =>
  tx.run(
    `insert or replace into configuration (name, kind, value, revision, created_at, updated_at)
     values (?1, 'variable', ?2, 1, 5, 6)`,
    name,
    value,
  )

test('rows that change are read as they are now, until they are confirmed', () => {
  expect(changes.isEmpty).toBe(true)
  write((tx) => setValue(tx, 'A', 'first'))
  write((tx) => setValue(tx, 'A', 'i:second'))
  expect(changes.isEmpty).toBe(false)
  const row = {
    name: 't:A',
    kind: 't:variable',
    value: 't:i:second',
    sealed: null,
    key_id: null,
    revision: 'i:1',
    created_at: 'i:5',
    updated_at: 'i:6',
  }
  const expected = [{ table: 'configuration', isWhole: false, rows: [row], deleted: [] }]
  expect(changes.read()).toEqual(expected)
  expect(changes.read()).toEqual(expected)
  write((tx) => setValue(tx, 'B', 'later'))
  changes.confirm()
  expect(changes.read()).toMatchObject([{ rows: [{ name: 't:B' }], deleted: [] }])
  changes.confirm()
  expect(changes.read()).toEqual([])
})

test('a row that changes between the read and the confirmation is read again', () => {
  write((tx) => setValue(tx, 'A', 'x'))
  changes.read()
  write((tx) => tx.run('delete from configuration'))
  write((tx) =>
    tx.run(
      `insert or ignore into configuration (name, kind, value, revision, created_at, updated_at)
       values ('A', 'variable', 'y', 1, 5, 6)`,
    ),
  )
  changes.confirm()
  expect(changes.read()).toMatchObject([{ rows: [{ name: 't:A', value: 't:y' }] }])
})

test('rows that are removed, by a reference as well, are named by their keys', () => {
  write((tx) => {
    tx.run(
      `insert into serving_policies (revision, mode, changed_at)
       values (${2n ** 60n}, 'weighted', 1)`,
    )
    tx.run(
      `insert into releases (release_id, workspace, state, package_digest, manifest_digest,
              manifest_bytes, artifact_digest, artifact_bytes, created_at)
       values ('rel_1', 'app', 'published', 'd', 'd', 1, 'd', 1, 1)`,
    )
    tx.run(
      `insert into serving_policy_releases (revision, release_id, weight)
       values (${2n ** 60n}, 'rel_1', 10000)`,
    )
  })
  changes.confirm()
  changes.read()
  changes.confirm()
  write((tx) => tx.run('delete from serving_policies'))
  const revision = `i:${2n ** 60n}`
  expect(changes.read()).toEqual([
    { table: 'serving_policies', isWhole: false, rows: [], deleted: [{ revision }] },
    {
      table: 'serving_policy_releases',
      isWhole: false,
      rows: [],
      deleted: [{ revision, release_id: 't:rel_1' }],
    },
  ])
})

test('an update of a key removes the earlier one', () => {
  write((tx) => setValue(tx, 'A', 'x'))
  changes.read()
  changes.confirm()
  write((tx) => tx.run("update configuration set name = 'Z'"))
  expect(changes.read()).toMatchObject([{ rows: [{ name: 't:Z' }], deleted: [{ name: 't:A' }] }])
})

test('a transaction that is rolled back changes nothing', () => {
  const failing = () =>
    write((tx) => {
      setValue(tx, 'A', 'x')
      throw new Error('rolled back')
    })
  expect(failing).toThrow('rolled back')
  expect(changes.isEmpty).toBe(true)
})

test('all rows of a table are read where many have changed or all are marked', {
  tags: ['slow'],
}, () => {
  write((tx) => {
    for (let i = 0; i < 10_001; i++) setValue(tx, `N${i}`, 'x')
  })
  const [table] = changes.read()
  expect(table).toMatchObject({ table: 'configuration', isWhole: true, deleted: [] })
  expect(table!.rows).toHaveLength(10_001)
  changes.confirm()
  changes.markAll()
  const copy = join(root.path, 'control.copy')
  prepareCopy(copy)
  root.control.copyInto(copy)
  const counts = new Map<string, number>()
  for (const { table } of readCopy(copy)) counts.set(table, (counts.get(table) ?? 0) + 1)
  const read = changes.read()
  for (const { table, isWhole, rows } of read) {
    expect([table, isWhole, rows.length]).toEqual([table, true, counts.get(table) ?? 0])
  }
  expect(read.length).toBeGreaterThanOrEqual(counts.size)
})

test('bytes are base64, and changes are not noted after the end', () => {
  write((tx) => {
    tx.run("insert into keyring_checks (key_id, check_digest) values ('key_x', zeroblob(32))")
  })
  const row = { key_id: 't:key_x', check_digest: `b:${Buffer.alloc(32).toString('base64')}` }
  expect(changes.read()).toMatchObject([{ table: 'keyring_checks', rows: [row] }])
  changes.close()
  write((tx) => setValue(tx, 'A', 'x'))
  changes = root.control.trackChanges()
  expect(changes.isEmpty).toBe(true)
})

test('every table has a primary key', () => {
  changes.markAll()
  for (const { table } of changes.read()) {
    const keys = root.control.read((reader) =>
      reader.all<{ pk: number }>('select pk from pragma_table_info(?1) where pk > 0', table),
    )
    expect(keys, table).not.toHaveLength(0)
  }
})
