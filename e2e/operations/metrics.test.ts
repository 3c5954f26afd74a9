/**
 * The metrics and the health that the compiled server reports.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, mutation, query, string } from '../application.ts'
import { argv } from '../argv.ts'
import { findLocations } from '../canaries.ts'
import { MISSING, PROMTOOL, startExporter } from './collectors.ts'

const CANARY = 'canary-5d1f0c77e2b94a06'

let app: Application
let channel: unknown

beforeAll(async () => {
  app = await application()
  const made = await mutation(app, {
    function: 'channels.create',
    arguments: { name: string(CANARY), author: string('ana') },
  })
  expect(made.status).toBe(200)
  channel = made.body.result
})

afterAll(() => app?.installation.dispose())

const events = (name: string) =>
  app.server.lines.map((line) => JSON.parse(line)).filter(({ event }) => event === name)
const remote = () => argv`--remote --root ${app.installation.productRoot}`
const metrics = () => app.svc(argv`metrics ${remote()}`)

test('calls, cache hits and commits are counted', async () => {
  const before = await metrics()
  for (let i = 0; i < 6; i++) {
    const list = await query(app, { function: 'messages.list', arguments: { channel } as never })
    expect([list.status, list.body.result.value.length]).toEqual([200, 1])
  }
  const args = { channel, author: string('ana'), body: string(CANARY) } as never
  expect((await mutation(app, { function: 'messages.send', arguments: args })).status).toBe(200)
  expect((await query(app, { function: 'messages.list', key: 'rk_sec_v1_x' })).status).toBe(401)
  const after = await metrics()
  const grown = (name: string) => Number(after.counters[name]) - Number(before.counters[name])
  expect(grown('queriesSucceeded')).toBe(6)
  expect([grown('queryCacheHits'), grown('queryCacheMisses')]).toEqual([4, 2])
  expect([grown('mutationsSucceeded'), grown('commits')]).toEqual([1, 1])
  expect(grown('functionRuns')).toBe(3)
  expect(grown('functionCpuMicros')).toBeGreaterThan(0)
  expect(grown('applicationRequestsSucceeded')).toBe(7)
  expect(grown('applicationAuthenticationFailures')).toBe(1)
  // The request of the first report is counted in the second.
  expect(grown('managementRequestsSucceeded')).toBeGreaterThan(0)
  expect(Number(after.gauges.processResidentBytes)).toBeGreaterThan(1e7)
  expect(Number(after.gauges.runnerResidentBytes)).toBeGreaterThan(1e6)
  expect(Number(after.histograms.eventLoopDelayMicros.count)).toBeGreaterThan(0)
  const locations = new Map([['metrics', Buffer.from(JSON.stringify(after))]])
  for (const secret of [CANARY, app.key]) expect(findLocations(secret, locations)).toEqual([])
})

test('the health is degraded if the log reports missing containment', async () => {
  const runtime = events('runner.containment').length === 0 ? 'healthy' : 'degraded'
  expect(await app.svc(argv`health ${remote()}`)).toEqual({
    version: 1,
    lifecycle: 'active',
    status: runtime,
    components: [
      { name: 'runtime', status: runtime },
      { name: 'documents', status: 'healthy' },
      { name: 'scheduler', status: 'healthy' },
      { name: 'releases', status: 'healthy' },
      { name: 'files', status: 'healthy' },
      { name: 'realtime', status: 'healthy' },
      { name: 'logs', status: 'healthy' },
    ],
  })
})

test('svc metrics --listen serves what collectors accept, without a token', async () => {
  const exporter = await startExporter(app.installation)
  try {
    const response = await fetch(`http://${exporter.address}/metrics`)
    expect(response.status).toBe(200)
    const input = await response.text()
    expect(input).toMatch(/^svc_mutations_succeeded_total [1-9]/m)
    if (MISSING === null) {
      const { status, stderr } = spawnSync(PROMTOOL, ['check', 'metrics'], { input })
      expect([status, String(stderr)]).toEqual([0, ''])
    }
  } finally {
    expect(await exporter.process.stop()).toBe(0)
  }
})

test('usage of Functions and keys is logged before the server ends', async () => {
  const { server } = app
  await server.stop()
  await server.ended
  expect(events('function.usage').map((record) => record.function)).toEqual(
    expect.arrayContaining(['channels.create', 'messages.list', 'messages.send']),
  )
  const [usage] = events('credential.usage')
  expect(usage).toMatchObject({ clientId: expect.stringMatching(/^app_/), failed: 0 })
  expect(usage!.succeeded).toBeGreaterThanOrEqual(7)
  for (const record of [usage!, ...events('function.usage')]) {
    expect(record.projectId).toMatch(/^prj_/)
    expect(record.environmentId).toMatch(/^env_/)
  }
})
