import { afterEach, beforeEach, expect, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../../testing/identity.ts'
import { Secret } from '../../value/secret.ts'
import { Database } from '../database.ts'
import { readIdentityRows } from './all-rows.ts'
import { IdentityChanges, isAtLeast } from './changed-rows.ts'

const NOW = 1_800_000_000_000_000n

let bench: TestIdentity
let database: Database
let changes: IdentityChanges

beforeEach(async () => {
  bench = await testIdentity()
  database = new Database({ url: new Secret(bench.url) })
  changes = new IdentityChanges(database, 0n)
})
afterEach(async () => {
  await database.close()
  await bench.dispose()
})

async function read(): Promise<string[]> {
  const found = []
  for await (const { table, row } of changes.read(NOW)) {
    found.push(`${table.replace(/^service_(?:operator|platform)_?/, '')} ${keyOf(row)}`)
  }
  return found
}

const keyOf = (row: Readonly<Record<string, string | null>> | null) =>
  row === null ? '*' : Object.values(row)[0]

const addOperator = (id: string) =>
  bench.sql(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ('${id}', 'x', 1)`,
  )

const addGrant = (id: string) =>
  bench.sql(
    `insert into service_operator_grants
            (operator_id, scope_kind, capabilities, created_at_micros, source)
     values ('${id}', 'installation', '{}', 1, 'invitation')`,
  )

const addAudit = (id: string, atMicros: bigint) =>
  bench.sql(
    `insert into service_platform_audit (audit_id, operation, outcome, at_micros)
     values ('${id}', 'x', 'succeeded', ${atMicros})`,
  )

/**
 * Reads and confirms everything that is there. Rows of the first read are found once more while a
 * transaction of another test runs.
 */
async function catchUp(): Promise<void> {
  for (let found = await read(); ; found = await read()) {
    changes.confirm()
    if (found.length === 0) return
  }
}

test('the first read has every row', async () => {
  const all = []
  for await (const { table } of readIdentityRows(database)) all.push(table)
  const found = []
  for await (const { table, row } of changes.read(NOW)) if (row !== null) found.push(table)
  expect(all.length).toBeGreaterThan(0)
  expect(found).toEqual(all)
})

test('a read has the rows that were added or changed since the confirmed one', {
  tags: ['slow'],
}, async () => {
  // Other tests write into other databases of the cluster.
  do await catchUp()
  while (await changes.hasChanges())
  expect(await read()).toEqual([])
  await addOperator('opr_1')
  await addOperator('opr_2')
  expect(await changes.hasChanges()).toBe(true)
  expect(await read()).toEqual(['s opr_1', 's opr_2'])
  expect(await read()).toEqual(['s opr_1', 's opr_2'])
  changes.confirm()
  expect(await read()).toEqual([])
  await bench.sql("update service_operators set operator_name = 'y' where operator_id = 'opr_2'")
  expect(await read()).toEqual(['s opr_2'])
})

test('all grants are read when one is added, changed or removed', { tags: ['slow'] }, async () => {
  await addOperator('opr_1')
  await addOperator('opr_2')
  await addGrant('opr_1')
  await addGrant('opr_2')
  await catchUp()
  const statements = [
    "update service_operator_grants set created_at_micros = 2 where operator_id = 'opr_1'",
    "delete from service_operator_grants where operator_id = 'opr_1'",
    'delete from service_operator_grants',
  ]
  const counts = []
  for (const statement of statements) {
    await bench.sql(statement)
    const found = await read()
    changes.confirm()
    expect(found[0]).toBe('grants *')
    counts.push(found.length - 1)
    expect(await read()).toEqual([])
  }
  expect(counts).toEqual([2, 1, 0])
})

test('a transaction that ends after others is read once', { tags: ['slow'] }, async () => {
  const slow = await database.connect()
  await catchUp()
  await slow.query('begin')
  await slow.query('savepoint a')
  await slow.query(
    `insert into service_operators (operator_id, operator_name, created_at_micros)
     values ('opr_slow', 'x', 1)`,
  )
  await addOperator('opr_1')
  expect(await read()).toEqual(['s opr_1'])
  changes.confirm()
  await addOperator('opr_2')
  expect(await read()).toEqual(['s opr_2'])
  changes.confirm()
  await slow.query('release savepoint a')
  await slow.query('commit')
  slow.release()
  expect(await changes.hasChanges()).toBe(true)
  expect(await read()).toEqual(['s opr_slow'])
  changes.confirm()
  expect(await read()).toEqual([])
})

test('the audit is read from the time of the read before it', { tags: ['slow'] }, async () => {
  changes = new IdentityChanges(database, NOW)
  await addAudit('aud_old', NOW - 601_000_000n)
  await addAudit('aud_new', NOW - 599_000_000n)
  const first = await read()
  expect(first).toContain('audit aud_new')
  expect(first).not.toContain('audit aud_old')
  await catchUp()
  await addAudit('aud_next', NOW)
  expect(await read()).toEqual(['audit aud_next'])
})

test('transactions are compared although their numbers wrap around', async () => {
  const bound = `${(1n << 33n) + 5n}::bigint`
  const cases = ['5', '4', '2147483652', '2147483653', '4294967295'].map((transaction) =>
    isAtLeast(`${transaction}::bigint`, bound),
  )
  const [row] = await bench.sql<{ found: boolean[] }>(`select array[${cases}] as found`)
  expect(row?.found).toEqual([true, false, true, false, false])
})
