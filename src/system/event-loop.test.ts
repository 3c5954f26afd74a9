/** Tests that long work shares the event loop. */
import { expect, test } from 'vitest'
import { inSlices } from './event-loop.ts'

test('all bytes are passed once, in their order', async () => {
  for (const length of [0, 1, 131_071, 131_072, 131_073, 600_000]) {
    const bytes = new Uint8Array(length).map((_, i) => i * 31)
    const slices: Uint8Array[] = []
    await inSlices(bytes, (slice) => void slices.push(slice.slice()))
    expect(Buffer.concat(slices).equals(bytes), `${length} bytes`).toBe(true)
    expect(Math.max(0, ...slices.map((slice) => slice.length))).toBeLessThanOrEqual(131_072)
  }
})

test('other events run between the slices', async () => {
  const order: string[] = []
  setImmediate(() => order.push('other'))
  const work = inSlices(new Uint8Array(300_000), () => void order.push('slice'))
  // A body of one slice waits for nothing.
  expect(order).toEqual(['slice'])
  await work
  expect(order).toEqual(['slice', 'other', 'slice', 'slice'])
})
