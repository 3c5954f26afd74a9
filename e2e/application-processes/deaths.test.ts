/**
 * Application processes and a main process that are killed under calls.
 *
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, int64 } from '../application.ts'
import { readDescendants } from '../hostile/machine.ts'
import { storedNumbers, writeEntries } from '../restarts/entries.ts'
import { Load } from '../restarts/load.ts'
import { connectToAll, isRunning, processesOf } from './processes.ts'

const CALLS_PER_SECOND = 100
const CALLS_BETWEEN = 150
const KILLS = 3
/** The number of the first call of the second test. */
const SECOND_LOAD = 1_000_000

let app: Application

beforeAll(async () => {
  app = await application(writeEntries, { SERVICE_APPLICATION_PROCESSES: '2' })
})
afterAll(() => app?.installation.dispose())

const endings = () =>
  app.server.lines.filter((line) => line.includes('server.application_process_ended'))

/**
 * Expects that no caller saw an error and that each Mutation took effect exactly once. `before` has
 * the numbers that were stored before.
 */
async function expectExact(load: Load, before: readonly number[]): Promise<void> {
  await load.untilAnswered(CALLS_BETWEEN)
  await load.stop()
  const { added, missed, errors, retries } = load.report
  console.info(`${added.length} Mutations; retried ${JSON.stringify(retries)}`)
  expect([errors, missed]).toEqual([[], []])
  const ascending = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)
  expect(ascending(await storedNumbers(app))).toEqual(ascending([...before, ...added]))
}

test('a killed application process is replaced while the others answer every call', async () => {
  const before = await storedNumbers(app)
  const load = new Load(app, CALLS_PER_SECOND)
  const { main } = processesOf(app)
  for (let kill = 1; kill <= KILLS; kill++) {
    await load.untilAnswered(CALLS_BETWEEN)
    const owned = await connectToAll(app, 1)
    const [victim, survivor] = kill % 2 === 0 ? [owned[0]!, owned[1]!] : [owned[1]!, owned[0]!]
    const runners = readDescendants(victim.pid).map(({ pid }) => pid)
    expect(runners).not.toEqual([])
    let isReplaced = false
    let answered = 0
    const calls = (async () => {
      const input = { number: int64(-1) }
      const call = { kind: 'query', function: 'entries.count', arguments: input } as const
      while (!isReplaced) {
        const { status } = await survivor.connection.call({ ...call, key: app.key })
        expect(status).toBe(200)
        answered += 1
      }
    })()
    process.kill(victim.pid, 'SIGKILL')
    await expect.poll(() => processesOf(app).applications.length).toBe(2)
    await expect.poll(() => processesOf(app).applications).not.toContain(victim.pid)
    // The new process accepts connections too.
    const next = await connectToAll(app, 1)
    isReplaced = true
    await calls
    expect(answered).toBeGreaterThan(0)
    await expect.poll(() => runners.filter(isRunning)).toEqual([])
    for (const { connection } of [...owned, ...next]) connection.close()
  }
  await expectExact(load, before)
  expect(endings()).toHaveLength(KILLS)
  expect(processesOf(app).main).toBe(main)
})

test('every process ends with the main process, and a restart has what was answered', async () => {
  const before = await storedNumbers(app)
  const load = new Load(app, CALLS_PER_SECOND, SECOND_LOAD)
  await load.untilAnswered(CALLS_BETWEEN)
  const { main, descendants } = processesOf(app)
  process.kill(main, 'SIGKILL')
  await expect.poll(() => [main, ...descendants].filter(isRunning)).toEqual([])
  await app.server.ended
  await app.start()
  await expectExact(load, before)
  // A process that starts is not asked to prepare what it does not have yet.
  const notWarm = app.server.lines.filter((line) => line.includes('application_process_not_warm'))
  expect(notWarm).toEqual([])
})
