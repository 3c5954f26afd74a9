/**
 * Random pairs of schemas over both document stores. Goal: what the comparison allows holds for the
 * engine too, with its projections, physical indexes and transactions. Method: both Releases write
 * the same documents through an engine, and each must read all of them after every write.
 *
 * @module-tag slow
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { freshDatabase } from '../../../../testing/databases/postgres.ts'
import { DOCUMENT_TEMPLATE, openDocuments } from '../../../../testing/documents/stores.ts'
import { Evolution, type Side } from '../../../../testing/engine/evolutions.ts'
import { Random } from '../../../../testing/fuzzing/fuzz.ts'
import {
  randomObject,
  randomSchema,
  randomValue,
} from '../../../../testing/schemas/random-schemas.ts'
import { SEED } from '../../../../testing/seeds.ts'
import { openSqliteDocuments } from '../../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../../documents/store.ts'
import type { IndexManifest, TableManifest } from '../../../value/manifest.ts'
import { encodeStored } from '../../../value/stored.ts'
import type { FieldsJson } from '../../../value/validators.ts'
import { SchemaComparison } from './schema-comparison.ts'

const PAIRS = process.env.SVC_TEST_LONG === '1' ? 500 : 12
const WRITES = 10
/** Pairs of which at least one in this number must be allowed. */
const ALLOWED_ONE_IN = 40
const TIMEOUT_MILLIS = 1_800_000

type Opened = { readonly store: DocumentStore; readonly dispose: () => Promise<void> }

const STORES: Readonly<Record<string, () => Promise<Opened>>> = {
  async sqlite() {
    const directory = mkdtempSync(join(tmpdir(), 'svc-histories-'))
    const store = await openSqliteDocuments(join(directory, 'documents.db'))
    return { store, dispose: async () => rmSync(directory, { recursive: true }) }
  },
  async postgres() {
    const database = await freshDatabase(DOCUMENT_TEMPLATE)
    return { store: await openDocuments(database.url), dispose: () => database.drop() }
  },
}

describe.each(Object.keys(STORES))('Releases of random schemas over %s', (name) => {
  test(
    `Releases that may serve side by side read what the other writes: SVC_SEED=${SEED}`,
    async () => {
      const { store, dispose } = await STORES[name]!()
      const evolution = new Evolution(store)
      let written = 0
      try {
        for (let pair = 0; pair < PAIRS; pair++) {
          const random = new Random(SEED + pair)
          const pairOfTables = allowedPair(random)
          written += await writeInTurn(evolution, random, pairOfTables)
        }
      } finally {
        await evolution.engine.close()
        await dispose()
      }
      expect(written).toBeGreaterThan(PAIRS)
    },
    TIMEOUT_MILLIS,
  )
})

/** Returns two different schemas of one table that may serve side by side. */
function allowedPair(random: Random): readonly [TableManifest, TableManifest] {
  for (let tries = 0; tries < ALLOWED_ONE_IN; tries++) {
    const fields = randomSchema(random)
    const changed = randomSchema(random, fields)
    const one = tableOf(random, fields)
    const other = { ...one, fields: changed, indexes: indexesIn(one.indexes, changed) }
    if (JSON.stringify(fields) === JSON.stringify(changed)) continue
    if (!conflict(one, other) && !conflict(other, one)) return [one, other]
  }
  return expect.fail(`SVC_SEED=${SEED}: no pair is allowed`)
}

function conflict(reader: TableManifest, writer: TableManifest): boolean {
  const tables = (table: TableManifest) => new Map([[table.name, table]])
  const pair = { reader: tables(reader), writer: tables(writer), newer: 'reader' } as const
  return new SchemaComparison().conflicts(pair).length > 0
}

function tableOf(random: Random, fields: FieldsJson): TableManifest {
  const names = Object.keys(fields)
  if (names.length === 0) return { name: 'users', fields, indexes: [] }
  const index = { name: 'byKey', fields: [random.pick(names)], unique: random.chance(3) }
  return { name: 'users', fields, indexes: [index] }
}

function indexesIn(indexes: readonly IndexManifest[], fields: FieldsJson): IndexManifest[] {
  return indexes.filter((index) => index.fields.every((name) => name in fields))
}

/** Writes with both Releases, reads each document with both, and returns the number of writes. */
async function writeInTurn(
  evolution: Evolution,
  random: Random,
  tables: readonly [TableManifest, TableManifest],
): Promise<number> {
  const sides = tables.map(({ fields, indexes }) => ({
    fields,
    isUnique: indexes.some(({ unique }) => unique),
    side: evolution.release(fields, ...indexes),
  }))
  const ids: string[] = []
  let written = 0
  const context = () => `SVC_SEED=${SEED}: ${JSON.stringify(tables)}`
  for (let i = 0; i < WRITES; i++) {
    const { side, fields, isUnique } = random.pick(sides)
    const id = random.chance(3) || ids.length === 0 ? null : random.pick(ids)
    const before = id === null ? null : await evolution.stored(id)
    const changed = await write(side, { random, fields, id }).catch((error: Error) => {
      // Its own unique index may reject a write, and never that of the other Release alone.
      if (isUnique && /unique/i.test(error.message)) return null
      throw new Error(`${context()}: ${error.message}`, { cause: error })
    })
    if (changed === null) continue
    written += 1
    if (id === null) ids.push(changed)
    const after = await evolution.stored(changed)
    for (const [name, value] of Object.entries(before ?? {})) {
      if (name in fields) continue
      expect(after[name], `${context()}: the field ${name} is lost`).toEqual(value)
    }
    for (const reader of sides) {
      const read = await reader.side.get(changed).catch((error: Error) => error)
      expect(read, `${context()}: ${JSON.stringify(after)}`).not.toBeInstanceOf(Error)
    }
  }
  for (const { side } of sides) await removeAll(side, ids)
  return written
}

/** Inserts, patches or replaces a document; returns its ID, or null if no value was found. */
async function write(
  side: Side,
  { random, fields, id }: { random: Random; fields: FieldsJson; id: string | null },
): Promise<string | null> {
  const names = Object.keys(fields)
  if (id === null || names.length === 0 || random.chance(4)) {
    const object = randomObject(random, fields)
    if (object === undefined) return null
    const json = JSON.parse(encodeStored(object))
    if (id === null) return side.insert(json)
    await side.replace(id, json)
    return id
  }
  const name = random.pick(names)
  const field = fields[name]!
  if (field.type === 'optional' && random.chance(4)) {
    await side.patch(id, {}, [name])
    return id
  }
  const value = randomValue(random, field.type === 'optional' ? field.inner : field)
  if (value === undefined) return null
  await side.patch(id, { [name]: JSON.parse(encodeStored(value)) })
  return id
}

async function removeAll(side: Side, ids: string[]): Promise<void> {
  for (const id of ids.splice(0)) await side.mutate(['delete', id])
}
