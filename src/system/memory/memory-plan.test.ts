import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  BACKUP_BYTES_MAX,
  defaultPeerMib,
  defaultTargetMib,
  divideMemory,
  engineProcesses,
  leastTargetMib,
  type MemoryPlan,
} from './memory-plan.ts'

const MIB = 1024 * 1024
/** The memory of a process with an engine, without documents and runners. */
const BASE_BYTES = 48 * MIB

/** Bytes that one process and its runners may take, by the figures of the record. */
function bytesOf(plan: MemoryPlan): number {
  const caches =
    2 * plan.documentCharacters +
    2 * plan.resultCharacters +
    2 * plan.plainCharacters +
    2 * plan.parsedCharacters +
    2 * plan.describedCharacters +
    2 * plan.encodedCharacters +
    2 * plan.projectedCharacters +
    2 * plan.writeLogCharacters +
    2 * plan.backupBytes +
    plan.releaseBytes +
    (plan.pageCacheMib + plan.writerCacheMib) * MIB
  return BASE_BYTES + caches + plan.runners * (7 * plan.runnerCharacters + 16 * MIB)
}

describe('a memory plan', () => {
  test('the processes keep to the target with their caches and runners', () => {
    for (const applicationProcesses of [1, 2, 4, 8, 64]) {
      const processes = engineProcesses(applicationProcesses)
      const least = leastTargetMib(processes)
      for (const targetMib of [least, 2 * least, 16 * least]) {
        const plan = divideMemory({ targetMib, cpus: 8, processes })
        expect(processes * bytesOf(plan)).toBeLessThanOrEqual(targetMib * MIB)
      }
    }
  })

  test('the main process and each application process get an equal part', () => {
    const one = divideMemory({ targetMib: 1_024, cpus: 2, processes: engineProcesses(1) })
    const four = divideMemory({ targetMib: 1_024, cpus: 2, processes: engineProcesses(3) })
    const divided = Object.entries(one).filter(([name]) => !/runnersOfAll|unnersOfAll/.test(name))
    for (const [name, value] of divided) {
      const part = name === 'runners' ? value : value / 4
      expect({ [name]: four[name as keyof MemoryPlan] }).toEqual({ [name]: part })
    }
    expect([one.runnersOfAll, four.runnersOfAll]).toEqual([12, 4])
    expect([one.actionRunnersOfAll, four.actionRunnersOfAll]).toEqual([6, 4])
  })

  test('a large target does not let more commits wait for the target of backups', () => {
    const plan = divideMemory({ targetMib: 16_384, cpus: 8 })
    expect(plan.backupBytes).toBe(BACKUP_BYTES_MAX)
  })

  test('each process has a runner of each Release, and room for another Release', () => {
    const processes = engineProcesses(64)
    const plan = divideMemory({ targetMib: leastTargetMib(processes), cpus: 64, processes })
    expect(plan).toMatchObject({ runners: 1, runnersOfAll: 2, actionRunnersOfAll: 2 })
  })

  test('the default target is half of the memory, with a least and a most value', () => {
    const gib = 1_024 * MIB
    expect([gib / 4, gib, 2 * gib, 64 * gib].map((bytes) => defaultTargetMib(bytes))).toEqual([
      256, 512, 1_024, 1_024,
    ])
    expect([gib, 64 * gib].map((bytes) => defaultTargetMib(bytes, 9))).toEqual([1_152, 1_152])
  })

  test('the table of the guide shows the plan of the default target and of the least one', () => {
    const guide = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
    const targets = [1_024, 256]
    const plans = targets.map((targetMib) => divideMemory({ targetMib, cpus: 2 }))
    const inMib = (field: keyof MemoryPlan) => plans.map((plan) => `${plan[field] / MIB} MiB`)
    const rows = [
      ['text of the newest documents', inMib('documentCharacters')],
      ['results of Queries', inMib('resultCharacters')],
      ['the same in plain JSON', inMib('plainCharacters')],
      ['parsed Queries', inMib('parsedCharacters')],
      ['OpenAPI documents of Functions', inMib('describedCharacters')],
      ['documents as callers receive them, each Release', inMib('encodedCharacters')],
      ['documents as a Release sees them, where that differs', inMib('projectedCharacters')],
      ['documents that a runner process keeps', inMib('runnerCharacters')],
      ['keys of recent commits', inMib('writeLogCharacters')],
      ['commits that no backup has yet', inMib('backupBytes')],
      ['code of Releases', inMib('releaseBytes')],
      ['pages of a document file that is read', plans.map((plan) => `${plan.pageCacheMib} MiB`)],
      ['pages of a document file to write', plans.map((plan) => `${plan.writerCacheMib} MiB`)],
      ['runner processes of all Releases, at most', plans.map((plan) => plan.runnersOfAll)],
      [
        'unfinished requests, unsent responses, subscriptions: each by default',
        targets.map((target) => `${defaultPeerMib(target)} MiB`),
      ],
    ] as const
    for (const [text, cells] of rows) expect(guide).toContain(`| ${text} | ${cells.join(' | ')} |`)
  })
})
