/**
 * Goal: native code in a runner takes no more memory, threads or CPU than a runner may, also where
 * no call is in flight and where the server is not root. Method: a contained runner whose native
 * code tries, under a real pool, in a process of the user that the server would run as.
 */
import { accessSync, constants } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AttackReport, AttackRequest } from '../../../testing/native-attacks.ts'
import { THREADS_MAX } from '../../runner/protocol/messages.ts'
import { landlockVersion } from '../../runner/sandbox/landlock.ts'

const program = new URL('../../../testing/native-attacks.ts', import.meta.url).pathname
const SETPRIV = '/usr/bin/setpriv'
const isRoot = process.getuid?.() === 0
const BYTES = 2 * 1024 ** 3
const THREADS = 3_000

const root = { user: 'root', prefix: [] }
const own = { user: 'the user of this test', prefix: [] }
const other = {
  user: 'another user than root',
  prefix: [SETPRIV, '--reuid=4243', '--regid=4243', '--clear-groups'],
}
const users = isRoot ? [root, ...(mayBeAnother() ? [other] : [])] : [own]

function mayBeAnother(): boolean {
  try {
    accessSync(SETPRIV, constants.X_OK)
    const command = [...other.prefix, process.execPath, program, '[]']
    return Bun.spawnSync(command).exitCode === 0
  } catch {
    return false
  }
}

function requests(user: string): AttackRequest[] {
  const idle = { amount: BYTES, idle: true }
  // The kernel counts threads by user, and a runner has one of its own where the server is root.
  const threads = user === 'root' ? 'held' : 'terminated'
  return [
    { ...idle, attack: 'sharedMemory', until: 'held' },
    { ...idle, attack: 'stackMemory', until: 'held' },
    { ...idle, attack: 'privateMemory', until: 'held' },
    { ...idle, attack: 'readOnlyMemory', until: 'terminated' },
    { ...idle, attack: 'reservedMemory', until: 'terminated' },
    { ...idle, attack: 'sleepingThreads', amount: THREADS, until: threads },
    { ...idle, attack: 'spinningThreads', amount: 8, until: 'terminated' },
    { ...idle, attack: 'loop', until: 'terminated' },
    { attack: 'reservedMemory', amount: BYTES, idle: false, until: 'terminated' },
    { attack: 'spinningThreads', amount: 8, idle: false, until: 'terminated' },
    { attack: 'loop', amount: 0, idle: false, until: 'terminated' },
  ]
}

const isContained = process.platform === 'linux' && landlockVersion() > 0

describe.runIf(isContained).each(users)('native code under a server of $user', (each) => {
  let reports: readonly AttackReport[] = []
  const reportOf = (attack: AttackRequest['attack'], isIdle: boolean) =>
    reports.find((report) => report.attack === attack && report.idle === isIdle)

  beforeAll(async () => {
    const attacks = JSON.stringify(requests(each.user))
    const command = [...each.prefix, process.execPath, program, attacks]
    const attacking = Bun.spawn(command, { env: { TZ: 'UTC' }, cwd: '/', stderr: 'inherit' })
    reports = JSON.parse(await new Response(attacking.stdout).text()) as AttackReport[]
  }, 600_000)

  test.each(['sharedMemory', 'stackMemory', 'privateMemory'] as const)(
    'gets none of the %s that the kernel refuses',
    (attack) => {
      expect(reportOf(attack, true)).toMatchObject({ held: 0, terminated: null })
    },
  )

  test.each(['readOnlyMemory', 'reservedMemory'] as const)(
    'native code without a call is terminated for %s, which no limit of the kernel counts',
    (attack) => {
      expect(reportOf(attack, true)).toMatchObject({ outcome: 'returned', terminated: 'memory' })
    },
  )

  test('starts no thousands of threads', () => {
    const report = reportOf('sleepingThreads', true)
    if (each.user === 'root') {
      expect(report!.held).toBeGreaterThan(0)
      expect(report!.held).toBeLessThan(THREADS_MAX)
    } else expect(report!.terminated).toMatch(/^the runner has \d+ threads$/)
  })

  test.each(['spinningThreads', 'loop'] as const)(
    'native code is terminated for the CPU of %s without a call in flight',
    (attack) => {
      expect(reportOf(attack, true)).toMatchObject({ outcome: 'returned', terminated: 'cpu' })
    },
  )

  test('fails the call in flight with the bound that it exceeds', () => {
    expect(reportOf('reservedMemory', false)).toMatchObject({ outcome: 'limit' })
    expect(reportOf('spinningThreads', false)).toMatchObject({ outcome: 'limit' })
    expect(reportOf('loop', false)).toMatchObject({ outcome: 'limit', terminated: 'cpu' })
  })
})
