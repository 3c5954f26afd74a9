import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-outputs-'))
})

afterEach(() => rmSync(directory, { recursive: true }))

const OUTPUTS = join(import.meta.dirname, 'outputs.ts')

/** Runs a script that has `write` to standard error and `count`, of what was lost. */
function start(script: string, stderr: number | 'pipe') {
  const file = join(directory, 'child.ts')
  const head = `
    import { setTimeout as delay } from 'node:timers/promises'
    import { Output } from ${JSON.stringify(OUTPUTS)}
    const output = new Output(process.stderr)
    let count = 0
    const write = (text) => output.write(text, () => { count += 1 })
    const tell = () => process.stdout.write(count + '\\n')
  `
  writeFileSync(file, head + script)
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', stderr] })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  let told = ''
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    told += text
  })
  return { child, ended, told: () => told.split('\n').filter((line) => line !== '') }
}

test('what a full disk refuses is counted, text by text, and is no mistake', async () => {
  const full = openSync('/dev/full', 'w')
  const script = `
    process.on('uncaughtException', () => process.exit(9))
    for (let i = 0; i < 3; i++) { write('x\\n'); while (count <= i) await delay(1) }
    tell()`
  const { ended, told } = start(script, full)
  closeSync(full)
  expect(await ended).toBe(0)
  expect(told()).toEqual(['3'])
})

test('what nobody reads is lost beyond a bound, and read again it goes on', async () => {
  const script = `
    const line = 'x'.repeat(64 * 1024 - 1) + '\\n'
    for (let i = 0; i < 100; i++) write(line)
    await delay(5)
    tell()
    process.stdin.once('data', () => { write('the last\\n'); process.stdin.destroy() })`
  const { child, ended, told } = start(script, 'pipe')
  await expect.poll(told).toHaveLength(1)
  const lost = Number(told()[0])
  expect(lost).toBeGreaterThan(70)
  let read = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    read += text
  })
  await expect.poll(() => read.length).toBe((100 - lost) * 64 * 1024)
  child.stdin!.write('go')
  expect(await ended).toBe(0)
  await expect.poll(() => read.endsWith('\nthe last\n')).toBe(true)
})

test('what was just written is there once it is flushed, in its order', async () => {
  const script = `
    write('a\\n'); write('b\\n')
    await output.flushed()
    write('c\\n')
    await output.flushed()
    process.exit(0)`
  const { child, ended } = start(script, 'pipe')
  let read = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    read += text
  })
  expect([await ended, read]).toEqual([0, 'a\nb\nc\n'])
})
