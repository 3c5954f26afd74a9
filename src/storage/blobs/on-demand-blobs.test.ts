import { beforeEach, expect, test } from 'vitest'
import { Fault } from '../../errors/fault.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { Content } from './blobs.ts'
import { MemoryBlobs } from './memory-blobs.ts'
import { OnDemandBlobs } from './on-demand-blobs.ts'

const BYTES = Buffer.from('bytes of a stored file')
const CONTENT = { sha256: sha256Hex(BYTES), size: BYTES.length }
const UNKNOWN = { sha256: sha256Hex('other'), size: 5 }
const WHOLE = { start: 0, end: BYTES.length }

let local: MemoryBlobs
let blobs: OnDemandBlobs
let reads: number
let failure: Fault | null

beforeEach(() => {
  local = new MemoryBlobs()
  reads = 0
  failure = null
  blobs = new OnDemandBlobs(local, {
    has: ({ sha256 }: Content) => sha256 === CONTENT.sha256,
    async *read() {
      reads += 1
      yield BYTES.subarray(0, 5)
      if (failure !== null) throw failure
      yield BYTES.subarray(5)
    },
  })
})

const stored = async () => (await Array.fromAsync(local.list())).length

test('bytes are fetched with the first read, once for all readers, and then kept', async () => {
  const [one, two] = await Promise.all([blobs.read(CONTENT), blobs.read(CONTENT)])
  expect([Buffer.from(one), Buffer.from(two)]).toEqual([BYTES, BYTES])
  const body = new Response(await blobs.open(CONTENT, { start: 6, end: 8 }))
  expect(await body.text()).toBe('of')
  expect([reads, await stored()]).toEqual([1, 1])
})

test('bytes that could not be fetched whole are not kept, and are fetched again', async () => {
  failure = new Fault('UNAVAILABLE')
  await expect(blobs.open(CONTENT, WHOLE)).rejects.toBe(failure)
  expect(await stored()).toBe(0)
  failure = null
  expect(await new Response(await blobs.open(CONTENT, WHOLE)).text()).toBe(BYTES.toString())
  expect(reads).toBe(2)
})

test('bytes that are nowhere stay missing', async () => {
  await expect(blobs.read(UNKNOWN)).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
  expect(await blobs.check(UNKNOWN, { quick: true })).toBe('missing')
  expect(reads).toBe(0)
})

test('bytes that were not fetched yet count as whole, without a fetch', async () => {
  expect(await blobs.check(CONTENT, { quick: false })).toBe('whole')
  expect(reads).toBe(0)
})

test('bytes that are stored here are not fetched', async () => {
  const staged = await blobs.stage(BYTES.length)
  await staged.write(BYTES)
  await staged.finish()
  await staged.commit()
  expect(Buffer.from(await blobs.read(CONTENT))).toEqual(BYTES)
  expect(reads).toBe(0)
})
