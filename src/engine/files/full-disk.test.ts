/** `ctx.storage` where the disk of files is full. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'

const USES = `{ uses: { storage: 'write' } }`
const FUNCTIONS = `
  upload: action((ctx) => ctx.storage.createUpload({ contentType: 'a/b', maximumBytes: 1 }),
    ${USES}),
  put: action((ctx) => ctx.storage.put(new Uint8Array(1), { contentType: 'a/b' }), ${USES}),
  caught: action(async (ctx) => {
    try { await ctx.storage.createUpload({ contentType: 'a/b', maximumBytes: 1 }) }
    catch ({ name, code }) { return [name, code] }
  }, ${USES}),
  other: action(async (ctx) => {
    try { await ctx.storage.createUpload({ contentType: 'a/b', maximumBytes: 1 }) }
    catch (error) { throw new Error('no upload', { cause: error }) }
  }, ${USES}),
  forged: action(() => {
    const error = new Error('ctx.storage: The service is unavailable.')
    error.name = 'ServiceError'
    error.code = 'UNAVAILABLE'
    throw error
  }, ${USES}),`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { freeFloorBytes: 2 ** 60 })
})
afterAll(() => bench.close())

test.each(['upload', 'put'])('an Action whose %s fails is UNAVAILABLE', async (name) => {
  await expect(bench.call(name)).rejects.toMatchObject({ code: 'UNAVAILABLE', retryable: false })
})

test('an Action may catch the failure', async () => {
  expect(await bench.call('caught')).toEqual(['ServiceError', 'UNAVAILABLE'])
})

test.each(['other', 'forged'])(
  'an error of the author is none of the storage: %s',
  async (name) => {
    await expect(bench.call(name)).rejects.toMatchObject({ code: 'FUNCTION_FAILED' })
  },
)
