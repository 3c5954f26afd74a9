import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isWriterStale } from './embed-writer.ts'

test('the embedded writer thread equals its sources', async () => {
  expect(await isWriterStale(join(import.meta.dirname, '..'))).toBe(false)
})
