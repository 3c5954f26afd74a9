import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseOpenMetrics } from '../../../testing/open-metrics.ts'
import { answer, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import { publishRelease } from '../../../testing/products.ts'
import { COUNTERS } from '../../telemetry/metrics/definitions.ts'
import { FunctionFigures } from '../../telemetry/metrics/function-figures.ts'
import { CAPABILITIES } from '../../value/capabilities.ts'
import { FunctionFiguresReport, MetricsReport } from '../../wire/metrics.ts'

const PROMTOOL = '/usr/bin/promtool'

let routes: ProductRoutes

beforeAll(async () => {
  routes = await ProductRoutes.open()
})
afterAll(() => routes.harness.close())

const METRICS = '/metrics'
const report = () => answer(routes.call('GET', METRICS), 200, MetricsReport)
const scrape = (accept: string) => routes.call('GET', METRICS, { headers: { accept } })

describe('metrics', () => {
  test('metrics are texts with every digit, and have the time of their collection', async () => {
    const { metrics, harness } = routes
    metrics.counters.functionCpuMicros.add(2 ** 53 - 1)
    metrics.histograms.commitDurationMicros.observe(150)
    const { counters, histograms, ...times } = await report()
    expect(counters.functionCpuMicros).toBe('9007199254740991')
    expect(histograms.commitDurationMicros).toMatchObject({ count: '1', sumMicros: '150' })
    expect(histograms.commitDurationMicros!.buckets.slice(0, 3)).toEqual([
      { leMicros: '100', count: '0' },
      { leMicros: '250', count: '1' },
      { leMicros: '500', count: '1' },
    ])
    expect(times.collectedAtMicros).toBe(String(harness.system.nowMicros()))
  })

  test.each([
    ['application/json', 'application/json; charset=utf-8'],
    ['*/*', 'application/json; charset=utf-8'],
    ['text/plain', 'text/plain; version=0.0.4; charset=utf-8'],
    ['text/plain;version=0.0.4;q=0.9,*/*;q=0.1', 'text/plain; version=0.0.4; charset=utf-8'],
    [
      'application/openmetrics-text; version=1.0.0, text/plain;q=0.5',
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    ],
  ])('the metrics for %s have the type %s', async (accept, type) => {
    const response = await scrape(accept)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-service-request-id')).toMatch(/^req_/)
  })

  test('metrics are equal as text and as JSON', async () => {
    const { counters } = await report()
    const families = parseOpenMetrics(await (await scrape('application/openmetrics-text')).text())
    for (const [name, value] of Object.entries(counters)) {
      if (name.endsWith('Micros') || name.startsWith('managementRequests')) continue
      const family = `svc_${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`
      expect(families.get(family)?.samples.get('_total'), name).toBe(Number(value))
    }
  })

  test.skipIf(!existsSync(PROMTOOL))(
    'text of version 0.0.4 passes promtool, and OpenMetrics does not (needs Debian: prometheus)',
    async () => {
      const check = async (accept: string) => {
        const input = await (await scrape(accept)).text()
        const { status, stdout, stderr } = spawnSync(PROMTOOL, ['check', 'metrics'], { input })
        return [status, `${stdout}${stderr}`]
      }
      expect(await check('text/plain;version=0.0.4')).toEqual([0, ''])
      expect(await check('text/plain')).toEqual([0, ''])
      expect(await check('application/openmetrics-text')).not.toEqual([0, ''])
    },
  )

  test('metrics have equal samples in both text formats', async () => {
    const samples = async (accept: string) => {
      const lines = (await (await scrape(accept)).text()).split('\n')
      return lines.filter((line) => !/^(?:#|svc_management_re|$)/.test(line))
    }
    const classic = await samples('text/plain;version=0.0.4')
    expect(classic.length).toBeGreaterThan(Object.keys(COUNTERS).length)
    expect(classic).toEqual(await samples('text/plain'))
  })

  test('metrics are not served as an image or a page', async () => {
    await rejection(scrape('text/html'), 406, 'PLATFORM_NOT_ACCEPTABLE')
    await rejection(
      routes.call('GET', '/status', { headers: { accept: 'text/plain' } }),
      406,
      'PLATFORM_NOT_ACCEPTABLE',
    )
  })

  test('count the requests of their origin by outcome', async () => {
    const names = [
      'managementRequestsSucceeded',
      'managementRequestsRefused',
      'managementRequestsFailed',
      'managementAuthenticationFailures',
    ]
    const figures = async () => {
      const { counters } = await report()
      return names.map((name) => Number(counters[name]))
    }
    const before = await figures()
    await routes.call('GET', '/status')
    await routes.call('GET', '/status', { token: null })
    await routes.call('GET', '/nothing')
    await routes.call('DELETE', '/status')
    const after = await figures()
    // The first report is among the requests that succeeded since.
    expect(after.map((value, i) => value - before[i]!)).toEqual([2, 3, 0, 1])
  })

  test('measure requests that read and requests that change apart', async () => {
    const counts = async () => {
      const { histograms } = await report()
      const { managementReadDurationMicros, managementChangeDurationMicros } = histograms
      return [managementReadDurationMicros, managementChangeDurationMicros].map((each) =>
        Number(each!.count),
      )
    }
    const before = await counts()
    await routes.call('GET', '/status')
    await routes.call('GET', '/status', { token: null })
    await routes.call('PUT', '/channels/none', { body: {} })
    const after = await counts()
    // The first report is among the requests that read since.
    expect(after.map((value, i) => value - before[i]!)).toEqual([3, 1])
  })

  test('require usage:read', async () => {
    routes.capabilities = CAPABILITIES.filter((capability) => capability !== 'usage:read')
    await rejection(routes.call('GET', METRICS), 403, 'PLATFORM_ACCESS_DENIED')
    routes.capabilities = ['usage:read']
    expect((await routes.call('GET', METRICS)).status).toBe(200)
    routes.capabilities = CAPABILITIES
  })
})

describe('figures of Functions', () => {
  const FIGURES = '/metrics/functions'
  const declared = { visibility: 'internal', clients: [], auth: 'none', arguments: {} } as const
  let releaseId: string

  beforeAll(async () => {
    const functions = (['notes.add', 'notes.list'] as const).map((name) => ({
      ...declared,
      name,
      kind: name === 'notes.add' ? ('mutation' as const) : ('query' as const),
      returns: { type: 'null' as const },
      errors: {},
    }))
    ;({ releaseId } = await publishRelease(routes.harness, { source: 'figures', functions }))
  })

  test('figures name the Functions of the Release alone, in all processes', async () => {
    const { metrics, harness } = routes
    const nowMillis = harness.system.monotonicMillis()
    const call = { startedMillis: nowMillis - 20, nowMillis }
    const [release, list] = [{ releaseId }, { name: 'notes.list' }]
    metrics.functions.ended(release, list, { ...call, as: 'succeeded' })
    metrics.functions.ended(release, list, { ...call, as: 'failed' })
    metrics.functions.cached(release, list, nowMillis)
    metrics.functions.cached(release, { name: '<b>none</b>' }, nowMillis)
    metrics.functions.cached({ releaseId: 'rel_other' }, list, nowMillis)
    const other = new FunctionFigures()
    other.ended(release, list, { ...call, as: 'rejected' })
    other.cached(release, { name: 'notes.add' }, nowMillis)
    metrics.addProcesses({
      refresh: async () => undefined,
      reported: () => [],
      functionsOf: async (asked) => [other.read(asked, nowMillis)],
    })
    const path = `${FIGURES}?target=release:${releaseId}`
    const found = await answer(routes.call('GET', path), 200, FunctionFiguresReport)
    expect(found.releaseId).toBe(releaseId)
    expect(found.collectedAtMicros).toBe(String(harness.system.nowMicros()))
    expect(BigInt(found.sinceMicros)).toBeLessThanOrEqual(BigInt(found.collectedAtMicros))
    const none = { p50Micros: null, p95Micros: null, p99Micros: null }
    const counts = { cached: '1', rejected: '0', failed: '0' }
    expect(found.functions).toMatchObject([
      { name: 'notes.add', kind: 'mutation', calls: '1', ...counts, ...none },
      { name: 'notes.list', kind: 'query', calls: '4', cached: '1', rejected: '1', failed: '1' },
    ])
    const { p50Micros, p99Micros } = found.functions[1]!
    expect(Math.abs(Number(p50Micros) - 20_000)).toBeLessThan(1_000)
    expect(p99Micros).toBe(p50Micros)
  })

  test('a target is required and must exist', async () => {
    await rejection(routes.call('GET', FIGURES), 400, 'PLATFORM_REQUEST_INVALID')
    const malformed = routes.call('GET', `${FIGURES}?target=none`)
    await rejection(malformed, 400, 'PRODUCT_INVALID')
    const absent = routes.call('GET', `${FIGURES}?target=channel:none`)
    await rejection(absent, 404, 'PRODUCT_NOT_FOUND')
  })

  test('require usage:read', async () => {
    const path = `${FIGURES}?target=release:${releaseId}`
    routes.capabilities = CAPABILITIES.filter((capability) => capability !== 'usage:read')
    await rejection(routes.call('GET', path), 403, 'PLATFORM_ACCESS_DENIED')
    routes.capabilities = ['usage:read']
    expect((await routes.call('GET', path)).status).toBe(200)
    routes.capabilities = CAPABILITIES
  })
})
