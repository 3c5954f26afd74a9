import { PassThrough } from 'node:stream'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { beforeEach, describe, expect, test } from 'vitest'
import { LineTransport, MESSAGE_BYTES_MAX } from './transport.ts'

let input: PassThrough
let received: JSONRPCMessage[]
let sent: string
let errors: Error[]
let tooLong: number
let transport: LineTransport
beforeEach(async () => {
  input = new PassThrough()
  const output = new PassThrough()
  received = []
  errors = []
  sent = ''
  tooLong = 0
  output.on('data', (chunk) => {
    sent += chunk
  })
  transport = new LineTransport(input, output)
  transport.onmessage = (message) => void received.push(message)
  transport.onerror = (error) => void errors.push(error)
  transport.onTooLong = () => {
    tooLong += 1
  }
  await transport.start()
})

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' } as const

/** Writes chunks, and waits until they were read. */
async function write(...chunks: readonly (string | Uint8Array)[]): Promise<void> {
  for (const chunk of chunks) input.write(chunk)
  await expect.poll(() => input.readableLength + input.writableLength).toBe(0)
}

describe('messages', () => {
  test('a message is read in whatever parts it comes', async () => {
    const text = `${JSON.stringify({ ...PING, method: 'pïng \u{1f600}' })}\r\n`
    await write(...[...new TextEncoder().encode(text + text)].map((byte) => Uint8Array.of(byte)))
    expect(received.map((message) => 'method' in message && message.method)).toEqual([
      'pïng \u{1f600}',
      'pïng \u{1f600}',
    ])
  })

  test('several messages of one part are read in their order', async () => {
    const [first, second, third] = [1, 2, 3].map((id) => JSON.stringify({ ...PING, id }))
    await write(`${first}\n${second}\n${third}`, '\n')
    expect(received.map((message) => 'id' in message && message.id)).toEqual([1, 2, 3])
  })

  test('a line that is no message is reported, and the next one is read', async () => {
    await write(`{"jsonrpc"\n{}\n${JSON.stringify(PING)}\n`)
    expect(errors).toHaveLength(2)
    expect(received).toEqual([PING])
  })
})

describe('a message that is too long', () => {
  const part = 'x'.repeat(1024 * 1024)
  const parts = Array.from({ length: MESSAGE_BYTES_MAX / part.length }, () => part)
  const head = '{"jsonrpc":"2.0","id":"call-7","method":"tools/call","params":{"name":"'
  const tail = '{"method":"tools/call","params":{"id":3,"name":"'

  test.each([
    ['before everything else', [head, ...parts, '"}}\n'], 'call-7'],
    ['behind everything else', [tail, ...parts, '"},"jsonrpc":"2.0","id":41}\n'], 41],
    ['before the version at the end', [tail, ...parts, '"},"id":41,"jsonrpc":"2.0"}\n'], 41],
  ])('the answer to it has its ID %s, and the next one is read', async (_, chunks, id) => {
    await write(...chunks, `${JSON.stringify(PING)}\n`)
    expect(received).toEqual([PING])
    expect(JSON.parse(sent)).toMatchObject({
      id,
      error: { code: -32_600, message: `The message has more than ${MESSAGE_BYTES_MAX} bytes.` },
    })
    expect([tooLong, errors]).toEqual([1, []])
  })

  test.each([
    ['of an inner object', [tail, ...parts, '"},"x":{"id":41}}\n']],
    ['in a text', [tail, ...parts, '\\",\\"id\\":41}"}}\n']],
  ])('the answer to it does not have the ID %s', async (_, chunks) => {
    await write(...chunks)
    expect(JSON.parse(sent)).not.toHaveProperty('id')
  })

  test('needs no more memory than a message that fits', { tags: ['slow'] }, async () => {
    const before = process.memoryUsage().arrayBuffers
    for (let i = 0; i < 16; i += 1) await write(...parts)
    Bun.gc(true)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * MESSAGE_BYTES_MAX)
    await write(`\n${JSON.stringify(PING)}\n`)
    expect(received).toEqual([PING])
  })

  test('a message of exactly the most bytes is read', async () => {
    const rest = JSON.stringify({ ...PING, method: '' }).length
    const method = 'm'.repeat(MESSAGE_BYTES_MAX - rest)
    await write(`${JSON.stringify({ ...PING, method })}\n`)
    expect(received).toEqual([{ ...PING, method }])
    await write(`${JSON.stringify({ ...PING, method: `${method}m` })}\n`)
    expect([received.length, tooLong]).toEqual([1, 1])
  })
})
