import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { testEnvironment } from 'svc/test'
import { api } from '../_generated/api.js'

let backend
beforeEach(async () => {
  backend = await testEnvironment()
})
afterEach(() => backend.close())

test('messages are listed with the newest first', async () => {
  const channel = await backend.mutation(api.channels.create, { name: 'general', author: 'Ada' })
  await backend.mutation(api.messages.send, { channel, author: 'Grace', body: 'Hello, Ada!' })
  const messages = await backend.query(api.messages.list, { channel })
  assert.deepEqual(
    messages.map(({ body }) => body),
    ['Hello, Ada!', 'Ada opened #general'],
  )
})

test('two channels cannot have one name', async () => {
  await backend.mutation(api.channels.create, { name: 'general', author: 'Ada' })
  await assert.rejects(
    backend.mutation(api.channels.create, { name: 'general', author: 'Grace' }),
    { code: 'APP_CHANNEL_EXISTS' },
  )
  assert.equal((await backend.documents('channels')).length, 1)
})
