/**
 * A runner as the kernel shows it to the server: its descriptors, limits, user and environment.
 * Nothing of it is reported by the runner itself.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runnerCommand } from '../command.ts'
import { type RunnerProcess, runnerSpawner } from '../processes.ts'
import { FRAMES_DESCRIPTOR } from '../protocol/frames.ts'
import type { FromRunner } from '../protocol/messages.ts'

const onLinux = process.platform === 'linux'
const MEBIBYTE = 1024 * 1024

describe.runIf(onLinux)('the kernel shows of a runner', () => {
  let runner: RunnerProcess
  const read = (name: string) => readFileSync(`/proc/${runner.pid}/${name}`, 'utf8')
  /** Reads a file of each thread that has not ended. */
  const readThreads = (name: string) =>
    readdirSync(`/proc/${runner.pid}/task`).flatMap((thread) => {
      try {
        return [read(`task/${thread}/${name}`)]
      } catch {
        return []
      }
    })

  beforeAll(async () => {
    const { promise, resolve } = Promise.withResolvers<FromRunner>()
    const ignore = () => undefined
    runner = runnerSpawner(runnerCommand())(
      { onMessage: resolve, onMalformed: ignore, onErrorOutput: ignore, onExit: ignore },
      [],
    )
    await promise
  })
  afterAll(() => runner.kill())

  test('its log, its progress record and one socket open, and nothing that leads anywhere', () => {
    const folder = `/proc/${runner.pid}/fd`
    const open = readdirSync(folder).map((fd) => [Number(fd), readlinkSync(`${folder}/${fd}`)])
    const [own, other] = [
      open.filter(([fd]) => Number(fd) <= FRAMES_DESCRIPTOR),
      open.filter(([fd]) => Number(fd) > FRAMES_DESCRIPTOR),
    ]
    expect(own).toEqual([
      [0, '/dev/null'],
      [1, '/dev/null'],
      [2, expect.stringMatching(/^(?:pipe|socket):/)],
      [3, expect.stringMatching(/^\/memfd:svc-runner/)],
      [FRAMES_DESCRIPTOR, expect.stringMatching(/^socket:/)],
    ])
    // Descriptors of the runtime's own event loop.
    for (const [, target] of other) expect(target).toMatch(/^anon_inode:\[(?:event|timer)/)
  })

  test('bounds on files, processes and memory that it cannot raise', () => {
    const limits = new Map(
      read('limits')
        .split('\n')
        .slice(1)
        .map((line) => /^(\S.*?) {2,}(\S+) +(\S+)/.exec(line))
        .filter((match) => match !== null)
        .map(([, name, soft, hard]) => [name, [soft, hard]] as const),
    )
    expect(limits.get('Max core file size')).toEqual(['0', '0'])
    expect(limits.get('Max file size')).toEqual(['0', '0'])
    expect(limits.get('Max open files')).toEqual(['64', '64'])
    const [soft, hard] = limits.get('Max data size')!
    expect(soft).toBe(hard)
    // The engine reserves gigabytes that it never touches; what counts is what may be added.
    const held = Number(/^VmData:\s+(\d+) kB$/m.exec(read('status'))?.[1]) * 1024
    expect(Number(soft) - held).toBeLessThanOrEqual(544 * MEBIBYTE)
    if (process.getuid!() === 0) expect(limits.get('Max processes')).toEqual(['256', '256'])
  })

  test('no environment but settings of its allocator, its engine and its time zone', () => {
    const entries = read('environ')
      .split('\0')
      .filter((entry) => entry !== '')
    expect(entries.toSorted()).toEqual([
      '=UN_JSC_useTailCalls=0',
      'BUN_JSC_useTailCalls=0',
      'MIMALLOC_ARENA_RESERVE=65536',
      'TZ=UTC',
    ])
  })

  test('every thread without privilege, capability or root, behind a filter', () => {
    const statuses = readThreads('status')
    expect(statuses.length).toBeGreaterThan(1)
    for (const status of statuses) {
      const value = (name: string) => new RegExp(`^${name}:\\t(.*)$`, 'm').exec(status)?.[1]
      expect([value('NoNewPrivs'), value('Seccomp')]).toEqual(['1', '2'])
      for (const set of ['CapPrm', 'CapEff', 'CapAmb']) expect(value(set)).toMatch(/^0+$/)
      expect(value('Uid')).toMatch(/^([1-9]\d*)\t\1\t\1\t\1$/)
      expect(value('Groups')?.trim()).toBe(process.getuid!() === 0 ? '' : value('Groups')?.trim())
    }
  })

  test.runIf(process.getuid?.() === 0)('a user of its own, and no capability to regain', () => {
    const status = read('status')
    expect(status).toMatch(/^CapBnd:\t0+$/m)
    expect(Number(/^Uid:\t(\d+)/m.exec(status)?.[1])).toBeGreaterThan(2_000_000_000)
    expect(status).toMatch(/^Groups:\t\s*$/m)
  })

  test('every thread in a class and with a priority that leave the server its share', () => {
    const SCHED_BATCH = '3'
    const NICE = '5'
    const stats = readThreads('stat')
    expect(stats.length).toBeGreaterThan(1)
    for (const stat of stats) {
      // Fields 41 and 19 of proc(5); the name in field 2 may have spaces.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      expect([fields[38], fields[16]]).toEqual([SCHED_BATCH, NICE])
    }
  })

  test('the first place among those that the kernel ends when memory runs out', () => {
    expect(read('oom_score_adj').trim()).toBe('1000')
  })

  test('a directory that is not the server’s', () => {
    expect(readlinkSync(`/proc/${runner.pid}/cwd`)).toBe('/')
  })
})

/** A killed server leaves no runner behind, even one that loops. */
test.runIf(onLinux)('a runner ends with the process that started it', async () => {
  const [start, ...rest] = runnerCommand()
  const command = JSON.stringify([start === '/proc/self/exe' ? process.execPath : start, ...rest])
  const script = `
    const { openSync } = require('node:fs')
    const child = Bun.spawn(${command}, {
      env: {}, cwd: '/',
      stdio: ['ignore', 'ignore', 'pipe', openSync('/dev/null', 'r+'), 'socket-fd'],
    })
    const { promise, resolve } = Promise.withResolvers()
    await Bun.connect({ fd: child.stdio[4], socket: { data: (_, bytes) => resolve(bytes) } })
    console.log(child.pid, (await promise).length)
    for (;;);
  `
  const parent = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  const { value } = await parent.stdout.getReader().read()
  const pid = Number.parseInt(Buffer.from(value!).toString(), 10)
  expect(isAlive(pid)).toBe(true)
  parent.kill('SIGKILL')
  await parent.exited
  await expect.poll(() => isAlive(pid)).toBe(false)
})

function isAlive(pid: number): boolean {
  try {
    return !/^State:\t[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
