/** Tests of compactions, for each store. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Operation } from '../../src/runner/protocol/operations.ts'
import { nextTurn } from '../../src/system/event-loop.ts'
import type { FieldsJson, OptionalJson, ValidatorJson } from '../../src/value/validators.ts'
import { Evolution, withoutSystem } from './evolutions.ts'
import type { EvolutionHarness } from './schema-evolution-suite.ts'

const string: ValidatorJson = { type: 'string' }
const optional = (inner: ValidatorJson): OptionalJson => ({ type: 'optional', inner })
const PART: ValidatorJson = { type: 'object', fields: { city: string } }
const WIDE_PART: ValidatorJson = {
  type: 'object',
  fields: { city: string, zip: optional(string) },
}
const NARROW: FieldsJson = { name: string, address: PART }
const WIDE: FieldsJson = { name: string, address: WIDE_PART, nick: optional(string) }
const FULL = { name: 'Ann', nick: 'a', address: { city: 'Bern', zip: '3000' } }
const BARE = { name: 'Ann', address: { city: 'Bern' } }

export function compactionSuite(name: string, make: () => Promise<EvolutionHarness>): void {
  describe(`compactions: ${name}`, () => {
    let harness: EvolutionHarness
    let evolution: Evolution
    beforeEach(async () => {
      harness = await make()
      evolution = new Evolution(await harness.open())
    })
    afterEach(async () => {
      await evolution.engine.close()
      await harness.dispose()
    })

    /** A Release whose wider predecessor stored documents and was retired. */
    async function afterRetirement(count = 2) {
      const [wide, narrow] = [evolution.release(WIDE), evolution.release(NARROW)]
      const operations = Array.from({ length: count }, (): Operation => ['insert', 'users', FULL])
      const last: string = await wide.mutate(...operations)
      const table = await narrow.table()
      await evolution.retire(narrow)
      return { narrow, last, table }
    }

    test('a compaction removes undeclared fields, and ends the projection', {
      tags: ['slow'],
    }, async () => {
      const { narrow, last, table } = await afterRetirement()
      expect(table.projection).not.toBeNull()
      expect(await narrow.compact({ dryRun: true })).toEqual({
        read: 2,
        changed: 2,
        removedFields: 4,
      })
      expect(await evolution.stored(last)).toEqual(FULL)
      expect(await narrow.compact()).toEqual({ read: 2, changed: 2, removedFields: 4 })
      expect(await evolution.stored(last)).toEqual(BARE)
      expect(table.projection).toBeNull()
      expect(await narrow.list()).toEqual([BARE, BARE])
      const shape = { name: null, address: { city: null } }
      expect(evolution.store.fieldShapes().get('users')).toEqual(shape)
      expect(await narrow.compact()).toEqual({ read: 2, changed: 0, removedFields: 0 })
    })

    test('a call that reads earlier versions does not see the removed fields', {
      tags: ['slow'],
    }, async () => {
      const { narrow, last, table } = await afterRetirement()
      const range = { table: 'users', index: null, equal: [], order: 'asc', limit: 9, next: 'none' }
      const listing = narrow.query(['get', last], 'pause', ['range', range as never])
      await evolution.paused.promise
      const ending = vi.spyOn(evolution.store, 'setFieldShapes')
      const compacting = narrow.compact()
      while ((await evolution.stored(last)).nick !== undefined) await nextTurn()
      // Turns in which a compaction that does not wait for the call would end.
      for (let i = 0; i < 50; i++) await nextTurn()
      expect(ending).not.toHaveBeenCalled()
      evolution.resume()
      const { documents } = await listing
      expect(documents.map(withoutSystem)).toEqual([BARE, BARE])
      await compacting
      expect(table.projection).toBeNull()
    })

    test('a Release that is prepared while a compaction ends keeps its fields', {
      tags: ['slow'],
    }, async () => {
      const { narrow, last, table } = await afterRetirement()
      const reading = narrow.query(['get', last], 'pause')
      await evolution.paused.promise
      const compacting = narrow.compact()
      while ((await evolution.stored(last)).nick !== undefined) await nextTurn()
      const id = await evolution.release(WIDE).insert(FULL)
      evolution.resume()
      await Promise.all([reading, compacting])
      expect(table.projection).not.toBeNull()
      expect(await narrow.get(id)).toEqual(BARE)
    })

    test('fields that another Release in use declares stay', { tags: ['slow'] }, async () => {
      const { narrow, last, table } = await afterRetirement()
      const nick = evolution.release({ ...NARROW, nick: optional(string) })
      const declared = [narrow.release, nick.release]
      expect(await narrow.compact({ declared })).toMatchObject({ changed: 2, removedFields: 2 })
      expect(await evolution.stored(last)).toEqual({ ...BARE, nick: 'a' })
      expect(table.projection).not.toBeNull()
      expect(await nick.get(last)).toEqual({ ...BARE, nick: 'a' })
    })

    test('an upgraded store has the declared fields after a compaction', {
      tags: ['slow'],
    }, async () => {
      const { narrow } = await afterRetirement()
      await evolution.store.setFieldShapes(new Map([['users', 'any']]))
      await evolution.engine.close()
      evolution = new Evolution(await harness.open())
      const again = evolution.release(NARROW)
      const table = await again.table()
      expect(table.projection).not.toBeNull()
      await again.compact({ declared: [narrow.release] })
      expect(table.projection).toBeNull()
    })

    test('a table of many documents is compacted in batches', { tags: ['slow'] }, async () => {
      const { narrow, last } = await afterRetirement(1_200)
      const first = await narrow.compactBatch({}, undefined)
      expect(first).toMatchObject({ read: 500, changed: 500, next: expect.any(String) })
      expect(await evolution.stored(last)).toEqual(FULL)
      const operationId = `opn_${'0'.repeat(26)}`
      const second = await narrow.compactBatch({}, first.next!, operationId)
      expect(second).toMatchObject({ read: 500, changed: 500, replayed: false })
      const repeated = await narrow.compactBatch({}, first.next!, operationId)
      expect(repeated).toEqual({ ...second, replayed: true })
      const third = await narrow.compactBatch({}, second.next!)
      expect(third).toMatchObject({ read: 200, changed: 200, next: null })
      expect(await evolution.stored(last)).toEqual(BARE)
    })

    test('a Release that is prepared meanwhile keeps its fields', { tags: ['slow'] }, async () => {
      const { narrow, table } = await afterRetirement(600)
      const first = await narrow.compactBatch({}, undefined)
      const wide = evolution.release(WIDE)
      const [document] = await wide.list({ limit: 1 })
      expect(document).toEqual(BARE)
      const id = await wide.insert(FULL)
      expect(await narrow.compactBatch({}, first.next!)).toMatchObject({ next: null })
      expect(table.projection).not.toBeNull()
      expect(await evolution.stored(id)).toEqual(FULL)
      expect(await narrow.get(id)).toEqual(BARE)
    })

    test('a compaction continues from the start after a restart', { tags: ['slow'] }, async () => {
      const { narrow } = await afterRetirement(600)
      const first = await narrow.compactBatch({}, undefined)
      await evolution.engine.close()
      evolution = new Evolution(await harness.open())
      const again = evolution.release(NARROW)
      const table = await again.table()
      const second = await again.compactBatch({}, first.next!)
      expect(second).toMatchObject({ read: 500, changed: 0 })
      const third = await again.compactBatch({}, second.next!)
      expect(third).toMatchObject({ read: 100, changed: 100, next: null })
      expect(table.projection).toBeNull()
    })

    test('a second compaction of a table ends the first one', { tags: ['slow'] }, async () => {
      const { narrow } = await afterRetirement(600)
      const first = await narrow.compactBatch({}, undefined)
      const second = await narrow.compactBatch({}, undefined)
      await expect(narrow.compactBatch({}, first.next!)).rejects.toMatchObject({
        code: 'PRODUCT_STATE_CONFLICT',
      })
      expect(await narrow.compactBatch({}, second.next!)).toMatchObject({ next: null })
    })

    test.each(['x', ''])('the cursor %j is rejected', { tags: ['slow'] }, async (after) => {
      const { narrow } = await afterRetirement()
      await expect(narrow.compactBatch({}, after)).rejects.toMatchObject({
        code: 'PRODUCT_INVALID',
        violations: [{ path: 'after', rule: 'a cursor of the request before' }],
      })
    })

    test('unknown members of open unions stay as they are', { tags: ['slow'] }, async () => {
      const member = (text: string): ValidatorJson => ({
        type: 'object',
        fields: { kind: { type: 'literal', value: { string: text } }, [text]: string },
      })
      const open = (...texts: string[]): FieldsJson => ({
        shape: { type: 'open', inner: { type: 'union', members: texts.map(member) } },
      })
      const [wide, narrow] = [evolution.release(open('a', 'b')), evolution.release(open('a'))]
      const document = { shape: { kind: 'b', b: 'x' } }
      const id = await wide.insert(document)
      await narrow.table()
      await evolution.retire(narrow)
      expect(await narrow.compact()).toMatchObject({ read: 1, changed: 0 })
      expect(await evolution.stored(id)).toEqual(document)
      const asObject = evolution.release({ shape: { type: 'object', fields: { kind: string } } })
      expect(await asObject.get(id)).toEqual({ shape: { kind: 'b' } })
    })
  })
}
