import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isWriterStale } from './embed-writer.ts'

test('the embedded writing thread is that of the sources', async () => {
  expect(await isWriterStale(join(import.meta.dirname, '..'))).toBe(false)
})
