import { expect, test } from 'vitest'
import { decodeChunks } from './chunked-bodies.ts'

const OPTIONS = { signatures: null, hasTrailers: false, onTrailer: () => undefined }

function sourceOf(text: string) {
  const state = { isClosed: false }
  async function* chunks() {
    try {
      yield Buffer.from(text)
      // The rest of a body that a client sends slowly.
      yield Buffer.from('')
      yield Buffer.from('3\r\nabc\r\n')
    } finally {
      state.isClosed = true
    }
  }
  return { state, chunks: decodeChunks(chunks(), OPTIONS) }
}

test('a body whose reader stops early is not received any more', async () => {
  const { state, chunks } = sourceOf('3\r\nabc\r\n')
  for await (const chunk of chunks) {
    expect(Buffer.from(chunk).toString()).toBe('abc')
    break
  }
  expect(state.isClosed).toBe(true)
})

test('a malformed body is not received any more', async () => {
  const { state, chunks } = sourceOf('no chunk\r\n')
  await expect(chunks.next()).rejects.toThrow()
  expect(state.isClosed).toBe(true)
})
