import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isLogWriterStale } from './embed-log-writer.ts'
import { isWriterStale } from './embed-writer.ts'

test('the embedded writer threads equal their sources', async () => {
  const root = join(import.meta.dirname, '..')
  expect([await isWriterStale(root), await isLogWriterStale(root)]).toEqual([false, false])
})
