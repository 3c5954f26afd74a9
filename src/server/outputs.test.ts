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

/**
 * Runs a script that has `write` to standard error, and `count`, the number of lost texts, which
 * `report` prints.
 */
function start(script: string, stderr: number | 'pipe') {
  const file = join(directory, 'child.ts')
  const head = `
    import { setTimeout as delay } from 'node:timers/promises'
    import { Output } from ${JSON.stringify(OUTPUTS)}
    const output = new Output(process.stderr)
    let count = 0
    const write = (text) => output.write(text, () => { count += 1 })
    const report = () => process.stdout.write(count + '\\n')
  `
  writeFileSync(file, head + script)
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', stderr] })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  let reported = ''
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    reported += text
  })
  return { child, ended, reported: () => reported.split('\n').filter((line) => line !== '') }
}

test('each text that a full disk rejects is counted, and none throws', async () => {
  const full = openSync('/dev/full', 'w')
  const script = `
    process.on('uncaughtException', () => process.exit(9))
    for (let i = 0; i < 3; i++) { write('x\\n'); while (count <= i) await delay(1) }
    report()`
  const { ended, reported } = start(script, full)
  closeSync(full)
  expect(await ended).toBe(0)
  expect(reported()).toEqual(['3'])
})

test('text is lost beyond a bound while the reader stalls, and written again later', async () => {
  const script = `
    const line = 'x'.repeat(64 * 1024 - 1) + '\\n'
    for (let i = 0; i < 100; i++) write(line)
    await delay(5)
    report()
    process.stdin.once('data', () => { write('the last\\n'); process.stdin.destroy() })`
  const { child, ended, reported } = start(script, 'pipe')
  await expect.poll(reported).toHaveLength(1)
  const lost = Number(reported()[0])
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

test('a flush waits until all text is written in order', async () => {
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
