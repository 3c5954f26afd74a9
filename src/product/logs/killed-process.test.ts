/** Records that a killed process had not written are counted by the next one. */
import { cpSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openTestLogs, type TestLogs } from '../../../testing/logs.ts'
import { LOG_RECORDS_PER_SECOND_MAX } from '../../storage/logs/log-store.ts'
import { createLogWorker } from '../../storage/logs/log-thread.ts'

const opened: TestLogs[] = []
afterEach(async () => {
  for (const each of opened.splice(0)) await each.dispose()
})

async function openHeld(): Promise<{ logs: TestLogs; worker: () => Worker }> {
  let newest: Worker
  const createWorker = () => {
    newest = createLogWorker()
    return newest
  }
  const logs = await openTestLogs({ createWorker })
  opened.push(logs)
  return { logs, worker: () => newest }
}

function print({ log }: TestLogs, count: number): void {
  for (let i = 0; i < count; i++) log.info('test.event', { message: `m${i}` })
}

function sum(reports: readonly (Readonly<Record<string, unknown>> | undefined)[]): number {
  return reports.reduce((total, fields) => total + Number(fields!.dropped), 0)
}

/**
 * Opens a copy of the log as a kill at this moment would leave it, and returns the reported counts.
 */
async function afterKill({ directory, system }: TestLogs) {
  const copy = mkdtempSync(join(tmpdir(), 'svc-killed-'))
  cpSync(directory, copy, { recursive: true })
  const logs = await openTestLogs({ directory: copy, system })
  opened.push(logs)
  await logs.store.flushed()
  const { items } = await logs.logs.page({}, 1_000)
  const reports = (await logs.logs.page({ level: 'warn' }, 1_000)).items
  return {
    records: items.filter(({ event }) => event === 'test.event').length,
    reports: reports.map(({ fields }) => fields),
  }
}

test('records that wait for the writer thread are counted as not written', async () => {
  const { logs, worker } = await openHeld()
  print(logs, 3)
  await logs.store.flushed()
  const running = worker()
  // The first records are in a batch that never arrives.
  running.postMessage = () => {}
  print(logs, 5)
  void logs.store.flushed()
  print(logs, 2)
  await Promise.resolve()
  expect(await afterKill(logs)).toEqual({
    records: 3,
    reports: [{ dropped: 7, beyondRate: 0, beyondQueue: 0, notWritten: 7 }],
  })
  running.terminate()
})

test('records that were written, but not acknowledged, are not counted', async () => {
  const { logs, worker } = await openHeld()
  const running = worker()
  const replied = Promise.withResolvers<unknown>()
  running.onmessage = replied.resolve
  print(logs, 5)
  await replied.promise
  expect(await afterKill(logs)).toEqual({ records: 5, reports: [] })
  running.terminate()
})

test('dropped records that no record reported are counted, once', { tags: ['slow'] }, async () => {
  const { logs } = await openHeld()
  const { store, system } = logs
  print(logs, LOG_RECORDS_PER_SECOND_MAX + 1)
  await store.flushed()
  // The first report is written at once, and the next one is due after a second.
  print(logs, 25)
  await store.flushed()
  const found = await afterKill(logs)
  expect(sum(found.reports)).toBe(26)
  system.advance(1_000)
  await store.flushed()
  const later = await afterKill(logs)
  expect(sum(later.reports)).toBe(26)
})

test('a report that is lost with its batch is made again', { tags: ['slow'] }, async () => {
  const { logs, worker } = await openHeld()
  const { store, system } = logs
  print(logs, LOG_RECORDS_PER_SECOND_MAX + 1)
  await store.flushed()
  print(logs, 25)
  system.advance(1_000)
  const running = worker()
  running.postMessage = () => {}
  void store.flushed()
  await Promise.resolve()
  const found = await afterKill(logs)
  expect(sum(found.reports)).toBe(26)
  running.terminate()
})

test('no record counts as lost after a regular stop or a damaged count', async () => {
  const { logs } = await openHeld()
  print(logs, 3)
  await logs.close()
  expect(await afterKill(logs)).toEqual({ records: 3, reports: [] })
  writeFileSync(join(logs.directory, 'logs.unwritten'), new Uint8Array(72).fill(0xff))
  expect(await afterKill(logs)).toEqual({ records: 3, reports: [] })
  writeFileSync(join(logs.directory, 'logs.unwritten'), 'short')
  expect(await afterKill(logs)).toEqual({ records: 3, reports: [] })
})
