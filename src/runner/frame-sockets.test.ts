import { afterEach, expect, test } from 'vitest'
import { FrameSocket } from './frame-sockets.ts'
import { FRAMES_DESCRIPTOR } from './protocol/frames.ts'

/** Returns all bytes that it receives. */
const ECHO = `
  const { readSync, writeSync } = require('node:fs')
  const chunk = Buffer.alloc(65_536)
  for (;;) {
    const length = readSync(${FRAMES_DESCRIPTOR}, chunk, 0, chunk.length, null)
    if (length === 0) process.exit(0)
    for (let at = 0; at < length; ) at += writeSync(${FRAMES_DESCRIPTOR}, chunk, at, length - at)
  }`

let child: Bun.Subprocess | null = null
afterEach(() => {
  child?.kill('SIGKILL')
  child = null
})

function connected(script: string, onFrame: (text: string) => void = () => {}) {
  child = Bun.spawn([process.execPath, '-e', script], {
    stdio: ['ignore', 'ignore', 'inherit', null, 'socket-fd'],
  })
  const malformed: string[] = []
  const fd = child.stdio[FRAMES_DESCRIPTOR] as number
  const socket = new FrameSocket(fd, { onFrame, onMalformed: (reason) => malformed.push(reason) })
  return { socket, malformed }
}

test('frames arrive whole and in order, also those that the system accepts in parts', async () => {
  const received: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const frames = Array.from({ length: 40 }, (_, i) => `${i} ${'ä'.repeat(i * 4_096)}`)
  const { socket } = connected(ECHO, (text) => {
    received.push(text)
    if (received.length === frames.length) resolve()
  })
  for (const frame of frames) {
    socket.append(frame)
    socket.flush()
  }
  // The buffers of the system hold a part of them.
  expect(socket.backlogBytes).toBeGreaterThan(1_000_000)
  await promise
  expect(received).toEqual(frames)
  expect(socket.backlogBytes).toBe(0)
  expect(socket.sentFrames).toBe(frames.length)
  expect(socket.sentBytes).toBe(
    frames.reduce((sum, frame) => sum + 4 + Buffer.byteLength(frame), 0),
  )
})

test('what a process wrote before its end is read before the socket counts as closed', async () => {
  const received: string[] = []
  const { socket } = connected(
    `const frame = Buffer.concat([Buffer.from([3, 0, 0, 0]), Buffer.from('end')])
     require('node:fs').writeSync(${FRAMES_DESCRIPTOR}, frame)
     process.exit(0)`,
    (text) => received.push(text),
  )
  // It is never read, so the end of the process resets the connection.
  socket.append('unread')
  socket.flush()
  await socket.closed
  expect(received).toEqual(['end'])
  socket.append('late')
  socket.flush()
  expect(socket.backlogBytes).toBeGreaterThan(0)
})

test('nothing is read behind a frame that is too long', async () => {
  const received: string[] = []
  const { socket, malformed } = connected(
    `const { writeSync } = require('node:fs')
     writeSync(${FRAMES_DESCRIPTOR}, Buffer.from([255, 255, 255, 255]))
     writeSync(${FRAMES_DESCRIPTOR}, Buffer.from([1, 0, 0, 0, 97]))`,
    (text) => received.push(text),
  )
  await socket.closed
  expect(malformed).toHaveLength(1)
  expect(received).toEqual([])
})
