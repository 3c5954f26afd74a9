import { expect, test } from 'vitest'
import { decodeChunks } from './chunked-bodies.ts'

const OPTIONS = { signatures: null, hasTrailers: false, onTrailer: () => undefined }

const chunk = (size: number) => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`

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

test('the source of a body is closed when its reader stops early', async () => {
  const { state, chunks } = sourceOf(chunk(64 * 1024))
  for await (const { length } of chunks) {
    expect(length).toBe(64 * 1024)
    break
  }
  expect(state.isClosed).toBe(true)
})

test('the source of a malformed body is closed', async () => {
  const { state, chunks } = sourceOf('no chunk\r\n')
  await expect(chunks.next()).rejects.toThrow()
  expect(state.isClosed).toBe(true)
})

/** Returns the sizes of the pieces that a body is decoded to. */
async function piecesOf(body: string): Promise<number[]> {
  async function* source() {
    yield Buffer.from(body)
  }
  const sizes: number[] = []
  for await (const piece of decodeChunks(source(), OPTIONS)) sizes.push(piece.length)
  return sizes
}

const END = '0\r\n\r\n'

test.each([
  ['CR LF', 'x-a:1\r\nx-amz-trailer-signature:s\r\n\r\n'],
  ['LF and an empty line', 'x-a:1\n\r\nx-amz-trailer-signature:s\r\n\r\n'],
])('signed trailers may end with %s', async (_, trailers) => {
  const seen: string[] = []
  const isTrailer = (signature: string, text: string) => signature === 's' && text === 'x-a:1\n'
  const options = {
    signatures: { isNextChunk: () => true, isTrailer },
    hasTrailers: true,
    onTrailer: (name: string, value: string) => void seen.push(`${name}=${value}`),
  }
  const decoded = async (end: string) => {
    async function* source() {
      yield Buffer.from(`0;chunk-signature=${'0'.repeat(64)}\r\n${end}`)
    }
    for await (const _ of decodeChunks(source(), options)) throw new Error('a chunk')
  }
  await decoded(trailers)
  expect(seen).toEqual(['x-a=1'])
  const unsigned = { s3Code: 'SignatureDoesNotMatch' }
  for (const end of ['x-a:1\r\n\r\n', 'x-a:1\n\r\n', 'x-a:1\n\r\n\r\n']) {
    await expect(decoded(end)).rejects.toThrow(expect.objectContaining(unsigned))
  }
})

test('small chunks are joined, and large ones are passed on unchanged', async () => {
  expect(await piecesOf(chunk(64).repeat(2_000) + END)).toEqual([65_472, 64, 62_464])
  expect(await piecesOf(chunk(3) + chunk(100_000) + chunk(4) + END)).toEqual([3, 100_000, 4])
  expect(await piecesOf(END)).toEqual([])
})

test('chunks have 64 bytes on average, except for some small ones', async () => {
  expect(await piecesOf(chunk(1).repeat(63) + END)).toEqual([63])
  await expect(piecesOf(chunk(1).repeat(70) + END)).rejects.toThrow(
    expect.objectContaining({ s3Code: 'InvalidRequest' }),
  )
  await expect(piecesOf(chunk(6_400) + chunk(1).repeat(200) + END)).rejects.toThrow()
  expect(await piecesOf(chunk(6_400) + chunk(1).repeat(100) + END)).toEqual([6_500])
})
