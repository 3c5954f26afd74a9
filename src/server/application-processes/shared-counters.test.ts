import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SharedCounters } from './shared-counters.ts'

let directory: string
let path: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'counters-'))
  path = join(directory, 'counters')
})
afterEach(() => rmSync(directory, { recursive: true }))

test('another process that maps the file reads what is published at once', async () => {
  const counters = SharedCounters.create(path)
  const module = join(import.meta.dirname, 'shared-counters.ts')
  const program = `
    const { SharedCounters } = await import(${JSON.stringify(module)})
    const { stdin, stdout } = process
    const counters = SharedCounters.open(${JSON.stringify(path)})
    for await (const _ of stdin) {
      stdout.write([counters.durable, counters.control].join(' ') + '\\n')
    }
  `
  const reader = Bun.spawn([process.execPath, '-e', program], { stdin: 'pipe', stdout: 'pipe' })
  const answers = reader.stdout.getReader()
  const read = async () => {
    reader.stdin.write('?')
    reader.stdin.flush()
    return new TextDecoder().decode((await answers.read()).value)
  }
  try {
    expect(await read()).toBe('0 0\n')
    // Beyond 32 bits.
    counters.publishDurable(2 ** 40 + 1)
    expect(await read()).toBe(`${2 ** 40 + 1} 0\n`)
    counters.publishControl(3)
    expect(await read()).toBe(`${2 ** 40 + 1} 3\n`)
  } finally {
    reader.kill()
    await reader.exited
  }
})

test('only the user of the server may read the file, and an existing one is never used', () => {
  SharedCounters.create(path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(() => SharedCounters.create(path)).toThrow('EEXIST')
})
