import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Fault } from '../../errors/fault.ts'
import { TestSystem } from '../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { HistoryId } from '../../value/ids.ts'
import { Rehearsals, type RehearsalsOptions, type RehearsedBackup } from './rehearsals.ts'

const HISTORY = 'hst_00000000000000000000000001' as HistoryId
const REHEARSED = { sequence: 7, documents: 3, merkle: 'a'.repeat(64) }
const HOUR = 3_600_000
const DAY = 24 * HOUR

let directory: string
let path: string
let system: TestSystem
let log: MemoryLog
let metrics: Metrics
let rehearsals: Rehearsals
let runs: number
let outcome: () => Promise<RehearsedBackup>

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rehearsals-'))
  path = join(directory, 'rehearsal.json')
  system = new TestSystem()
  log = memoryLog()
  metrics = new Metrics(system)
  runs = 0
  outcome = async () => REHEARSED
  rehearsals = opened()
})
afterEach(async () => {
  await rehearsals.stop()
  rmSync(directory, { recursive: true })
})

function opened(options: Partial<RehearsalsOptions> = {}): Rehearsals {
  return new Rehearsals({
    system,
    log: log.log,
    metrics,
    path,
    backedUpHistory: () => HISTORY,
    rehearse: () => {
      runs += 1
      return outcome()
    },
    // Only the test looks at what is due.
    checkMillis: 2 ** 30,
    ...options,
  })
}

async function runsAfter(millis: number): Promise<number> {
  system.advance(millis)
  const before = runs
  await rehearsals.check()
  return runs - before
}

test('a restore is rehearsed once a week, also over restarts', async () => {
  expect(await runsAfter(0)).toBe(1)
  expect(await runsAfter(7 * DAY - 1_000)).toBe(0)
  await rehearsals.stop()
  rehearsals = opened()
  expect(rehearsals.last).toMatchObject({ failureCode: null, ...REHEARSED })
  expect(await runsAfter(0)).toBe(0)
  expect(await runsAfter(1_000)).toBe(1)
  expect(metrics.counters.backupRehearsals.value).toBe(2)
  expect(log.records().map(({ event }) => event)).toEqual(['backup.rehearsed', 'backup.rehearsed'])
})

test('a rehearsal waits for the first whole backup', async () => {
  await rehearsals.stop()
  rehearsals = opened({ backedUpHistory: () => null })
  expect(await runsAfter(30 * DAY)).toBe(0)
  expect(rehearsals.last).toBeNull()
})

test.each([
  ['a rejected backup', 'BACKUP_CORRUPT', DAY],
  ['a target that does not answer', 'UNAVAILABLE', HOUR],
] as const)('%s is logged, and is tried again sooner than in a week', async (_, code, pause) => {
  expect(await runsAfter(0)).toBe(1)
  const passedAtMicros = String(system.nowMicros())
  outcome = async () => {
    throw new Fault(code, { detail: 'segment 7' })
  }
  expect(await runsAfter(7 * DAY)).toBe(1)
  expect(rehearsals.last).toMatchObject({ failureCode: code, sequence: null, passedAtMicros })
  const failure = { event: 'backup.rehearsal_failed', errorCode: code, detail: 'segment 7' }
  expect(log.records().at(-1)).toMatchObject(failure)
  expect(metrics.counters.backupRehearsalFailures.value).toBe(1)
  expect(await runsAfter(pause - 1_000)).toBe(0)
  const age = metrics.collect().gauges.backupRehearsalAgeMicros
  expect(age).toBe((7 * DAY + pause - 1_000) * 1_000)
  outcome = async () => REHEARSED
  expect(await runsAfter(1_000)).toBe(1)
  expect(rehearsals.last).toMatchObject({ failureCode: null })
})

test('a server that stops ends its rehearsal, which is no failure', async () => {
  const begun = Promise.withResolvers<void>()
  await rehearsals.stop()
  rehearsals = opened({
    rehearse: (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
        begun.resolve()
      }),
  })
  const ended = rehearsals.check()
  await begun.promise
  await rehearsals.stop()
  await ended
  expect(log.records()).toEqual([])
  expect(existsSync(path)).toBe(false)
})

test('a file that is not valid counts as no rehearsal', async () => {
  await rehearsals.stop()
  for (const text of ['', '{"version":2}', 'x'.repeat(5_000)]) {
    writeFileSync(path, text)
    rehearsals = opened()
    expect(rehearsals.last).toBeNull()
    await rehearsals.stop()
  }
})
