/**
 * Goal: native code in a runner reaches no file, network or other process. Method: a program under
 * the same containment makes the calls itself and prints their results.
 */
import { accessSync, closeSync, constants, mkdtempSync, openSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { NativeReport } from '../../../testing/hostile/natives.ts'
import { runnerCommand } from '../command.ts'
import { runnerSpawner } from '../processes.ts'
import type { FromRunner } from '../protocol/messages.ts'
import { landlockVersion } from './landlock.ts'

const natives = new URL('../../../testing/hostile/natives.ts', import.meta.url).pathname
const ENOSYS = 38
const onLinux = process.platform === 'linux'
const folder = mkdtempSync(join(tmpdir(), 'svc-natives-'))
const record = openSync(join(folder, 'record'), 'w+')
afterAll(() => {
  closeSync(record)
  rmSync(folder, { recursive: true })
})

function run(...flags: string[]): NativeReport {
  return runAs([], ...flags)
}

function runAs(prefix: readonly string[], ...flags: string[]): NativeReport {
  const command = [...prefix, process.execPath, natives, ...flags]
  const { stdout, stderr, exitCode } = Bun.spawnSync(command, {
    // The environment of a test holds what must not be seen inside.
    env: { TZ: 'UTC' },
    cwd: '/',
    // A file in the place of the progress record: mapping it is tried too.
    stdio: ['ignore', 'pipe', 'pipe', record],
  })
  expect(stderr.toString()).toBe('')
  expect(exitCode).toBe(0)
  return JSON.parse(stdout.toString()) as NativeReport
}

function expectContained({ user, calls, probes }: NativeReport): void {
  expect(user).not.toBe(0)
  const through = Object.entries(calls).filter(([, error]) => error !== ENOSYS)
  expect(through).toEqual([])
  expect(Object.keys(calls).length).toBeGreaterThan(80)
  expect(probes.filter(([, stopped]) => !stopped)).toEqual([])
  expect(probes.length).toBeGreaterThan(18)
}

describe.runIf(onLinux && landlockVersion() >= 6)('native code', () => {
  test('fails at every call that would lead out', () => expectContained(run()))

  test('succeeds without a sandbox, so the attempts are real', () => {
    const { probes } = run('bare')
    const stopped = probes.filter(([, isStopped]) => isStopped).map(([name]) => name)
    const asRoot = process.getuid!() === 0 ? [] : ['landlock memory', 'filter memory', 'ptrace']
    expect(stopped.filter((name) => !asRoot.includes(name))).toEqual([])
    expect(probes.map(([name]) => name)).toContain('shared memory')
  })

  const setpriv = '/usr/bin/setpriv'
  const others = [setpriv, '--reuid=4243', '--regid=4243', '--clear-groups']
  test.runIf(process.getuid!() === 0 && isExecutable(setpriv) && isReadableByAll())(
    'fails as well if the server runs as a user other than root',
    () => expectContained(runAs(others)),
  )
})

test.runIf(onLinux)('every thread of a runner is contained, as the kernel shows it', async () => {
  const { promise, resolve: greeted } = Promise.withResolvers<FromRunner>()
  const runner = runnerSpawner(runnerCommand())(
    {
      onMessage: greeted,
      onMalformed: () => {},
      onErrorOutput: () => {},
      onExit: () => {},
    },
    [],
  )
  try {
    expect(await promise).toMatchObject({ containment: { seccomp: true, unprivileged: true } })
    expect(runner.isContained()).toBe(true)
  } finally {
    runner.kill()
  }
})

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Returns whether another user may read the sources and the runtime here. */
function isReadableByAll(): boolean {
  for (const start of [natives, process.execPath]) {
    for (let at = start; at !== '/'; at = resolve(at, '..')) {
      if ((statSync(at).mode & 0o005) !== 0o005 && (statSync(at).mode & 0o004) === 0) return false
    }
  }
  return true
}
