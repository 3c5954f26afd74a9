/**
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../testing/databases/postgres.ts'
import { fc } from '../../../testing/properties.ts'
import { SEED } from '../../../testing/seeds.ts'
import { Database } from '../../database/database.ts'
import { Secret } from '../../value/secret.ts'
import { bigintArray, booleanArray, byteaArray, integerArray, textArray } from './binary-arrays.ts'

const INT32 = 2 ** 31

let fresh: TestDatabase
let database: Database

beforeAll(async () => {
  fresh = await freshDatabase()
  database = new Database({ url: new Secret(fresh.url), connectionsMax: 1 })
})

afterAll(async () => {
  await database.close()
  await fresh.drop()
})

const sent = fc.record({
  booleans: fc.array(fc.boolean()),
  integers: fc.array(fc.integer({ min: -INT32, max: INT32 - 1 })),
  bigints: fc.array(fc.option(fc.maxSafeInteger())),
  // Text in PostgreSQL can have every character except this one.
  texts: fc.array(
    fc.option(fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', ''))),
  ),
  bytes: fc.array(fc.uint8Array().map((bytes) => Buffer.from(bytes))),
})

test(`encoded arrays have the values that were sent (SVC_SEED=${SEED})`, async () => {
  const property = fc.asyncProperty(sent, async ({ booleans, integers, bigints, texts, bytes }) => {
    const rows = await database.rows(
      `select $1::boolean[] as booleans, $2::integer[] as integers, $3::bigint[] as bigints,
                $4::text[] as texts, $5::bytea[] as bytes`,
      [
        booleanArray(booleans),
        integerArray(integers),
        bigintArray(bigints),
        textArray(texts),
        byteaArray(bytes.map((each) => each.toString('latin1'))),
      ],
    )
    // The driver returns a bigint as text.
    const exact = bigints.map((value) => (value === null ? null : String(value)))
    expect(rows).toEqual([{ booleans, integers, bigints: exact, texts, bytes }])
  })
  await fc.assert(property, { seed: SEED, numRuns: 300 })
})
