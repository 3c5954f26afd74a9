/** A real Prometheus with the shipped configuration collects from the compiled exporter. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, query } from '../application.ts'
import { argv } from '../argv.ts'
import {
  type Exporter,
  MISSING,
  type Prometheus,
  startExporter,
  startPrometheus,
} from './collectors.ts'

let app: Application
let exporter: Exporter
let prometheus: Prometheus

const call = () => query(app, { function: 'channels.list', arguments: {} })

beforeAll(async () => {
  if (MISSING !== null) return
  app = await application()
  await call()
  exporter = await startExporter(app.installation)
  prometheus = await startPrometheus(exporter.address)
})

afterAll(async () => {
  await prometheus?.stop()
  await exporter?.process.stop()
  await app?.installation.dispose()
})

test.skipIf(MISSING !== null)(
  `Prometheus collects counters, gauges and histograms (${MISSING ?? 'Debian'})`,
  async () => {
    const calls = 'svc_queries_succeeded_total'
    const before = await prometheus.value(calls)
    expect((await call()).status).toBe(200)
    expect(await prometheus.value(calls, (value) => value > before)).toBe(before + 1)
    expect(await prometheus.value('svc_process_resident_bytes')).toBeGreaterThan(1e7)
    const p99 = 'histogram_quantile(0.99, svc_query_duration_seconds_bucket)'
    expect(await prometheus.value(p99)).toBeGreaterThan(0)
    const left = await prometheus.value('svc_exporter_session_end_time_seconds - time()')
    expect(left).toBeGreaterThan(29 * 86_400)
    expect(await prometheus.value('up')).toBe(1)
  },
)

test.skipIf(MISSING !== null)(
  `Prometheus sees the end of the session as a target that is down (${MISSING ?? 'Debian'})`,
  async () => {
    await app.svc(argv`logout`)
    expect(await prometheus.value('up', (value) => value === 0)).toBe(0)
  },
)
