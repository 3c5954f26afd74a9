import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { testEnvironment } from 'svc/test'
import { api } from '../_generated/api.js'

let backend
beforeEach(async () => {
  backend = await testEnvironment()
})
afterEach(() => backend.close())

test('an update changes the given fields only', async () => {
  const id = await backend.mutation(api.items.create, { sku: 'a-1', name: 'Anvil', quantity: 2n })
  await backend.mutation(api.items.update, { id, quantity: 1n })
  const item = await backend.query(api.items.get, { id })
  assert.equal(item.name, 'Anvil')
  assert.equal(item.quantity, 1n)
})

test('a list begins with the first SKU, or after the one that is given', async () => {
  for (const sku of ['b', 'a', 'c']) {
    await backend.mutation(api.items.create, { sku, name: 'Anvil', quantity: 1n })
  }
  const list = async (args) => (await backend.query(api.items.list, args)).map(({ sku }) => sku)
  assert.deepEqual(await list({}), ['a', 'b', 'c'])
  assert.deepEqual(await list({ after: 'a' }), ['b', 'c'])
})

test('two items cannot have one SKU', async () => {
  const item = { sku: 'a-1', name: 'Anvil', quantity: 2n }
  await backend.mutation(api.items.create, item)
  await assert.rejects(backend.mutation(api.items.create, item), { code: 'APP_SKU_EXISTS' })
})

test('a removed item is gone', async () => {
  const id = await backend.mutation(api.items.create, { sku: 'a-1', name: 'Anvil', quantity: 2n })
  await backend.mutation(api.items.remove, { id })
  assert.equal(await backend.query(api.items.get, { id }), null)
  await assert.rejects(backend.mutation(api.items.remove, { id }), { code: 'APP_ITEM_NOT_FOUND' })
})
