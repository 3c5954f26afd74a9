import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testEnvironment } from 'svc/test'

test('the Workspace is valid', async () => {
  const backend = await testEnvironment()
  assert.deepEqual(await backend.scheduled(), [])
  await backend.close()
})
