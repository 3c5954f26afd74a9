import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { removeAbandoned } from './abandoned-directories.ts'

let parent: string
const listeners: Bun.Subprocess[] = []

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'abandoned-'))
})
afterEach(async () => {
  for (const listener of listeners.splice(0)) {
    listener.kill('SIGKILL')
    await listener.exited
  }
  rmSync(parent, { recursive: true })
})

const now = 1_800_000_000_000

function directory(name: string, ageMillis = 0): string {
  const path = join(parent, name)
  mkdirSync(path)
  writeFileSync(join(path, 'counters'), 'x')
  const at = new Date(now - ageMillis)
  utimesSync(path, at, at)
  return path
}

/** Starts a process that listens on the socket of the directory. */
async function listenIn(path: string): Promise<Bun.Subprocess> {
  const socket = JSON.stringify(join(path, 'origin'))
  const program = `Bun.listen({ unix: ${socket}, socket: { data() {} } }); console.log('on')`
  const listener = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe' })
  listeners.push(listener)
  await listener.stdout.getReader().read()
  return listener
}

test('the directory of a killed server is removed, and that of another one stays', async () => {
  const killed = directory('svc-server-killed')
  const running = directory('svc-server-running')
  const stopped = directory('svc-server-stopped')
  const dead = await listenIn(killed)
  await listenIn(running)
  const hung = await listenIn(stopped)
  dead.kill('SIGKILL')
  await dead.exited
  hung.kill('SIGSTOP')
  expect(readdirSync(killed)).toContain('origin')
  await removeAbandoned(parent, now)
  expect([killed, running, stopped].map(existsSync)).toEqual([false, true, true])
})

test('a directory without a socket stays for a day: its server may be starting', async () => {
  const starting = directory('svc-server-starting', 23 * 3_600_000)
  const old = directory('svc-server-old', 25 * 3_600_000)
  await removeAbandoned(parent, now)
  expect([starting, old].map(existsSync)).toEqual([true, false])
})

test('what has another name or is no directory stays', async () => {
  const other = directory('svc-e2e-1', 25 * 3_600_000)
  const file = join(parent, 'svc-server-file')
  writeFileSync(file, 'x')
  await removeAbandoned(parent, now)
  expect([other, file].map(existsSync)).toEqual([true, true])
  await removeAbandoned(join(parent, 'missing'), now)
})
