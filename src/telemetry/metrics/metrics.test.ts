import { afterEach, describe, expect, test } from 'vitest'
import { parseOpenMetrics } from '../../../testing/open-metrics.ts'
import { realSystem, TestSystem } from '../../system/system.ts'
import { BOUNDS, COUNTERS, GAUGES, HISTOGRAMS } from './definitions.ts'
import { Metrics } from './metrics.ts'
import { openMetricsText } from './open-metrics.ts'
import { watchProcess } from './process.ts'

const ALL = { ...COUNTERS, ...GAUGES, ...HISTOGRAMS }

/** A source that provides every gauge. */
function full(metrics: Metrics): Metrics {
  metrics.addSource(() => Object.fromEntries(Object.keys(GAUGES).map((name, i) => [name, i])))
  return metrics
}

describe('metrics', () => {
  test('metrics have unique names and descriptions', () => {
    const names = [COUNTERS, GAUGES, HISTOGRAMS].flatMap((table) => Object.keys(table))
    expect(new Set(names).size).toBe(names.length)
    for (const [name, help] of Object.entries(ALL)) {
      expect(name).toMatch(/^[a-z][A-Za-z]+$/)
      expect(help).toMatch(/^[A-Z][^\n\\"]+[^.]$/)
    }
  })

  test('metrics without events are 0, and those that no component provides are omitted', () => {
    const { counters, gauges, histograms } = new Metrics(new TestSystem()).collect()
    expect(new Set(Object.values(counters))).toEqual(new Set([0]))
    expect(Object.keys(counters)).toEqual(Object.keys(COUNTERS))
    expect(gauges).toEqual({})
    expect(histograms.commitDurationMicros).toMatchObject({ count: 0, sumMicros: 0 })
  })

  test('metrics that components provide are read at collection', () => {
    const metrics = new Metrics(new TestSystem())
    let hits = 1
    metrics.addSource(() => ({ queryCacheHits: hits, queryCacheEntries: 2.9 }))
    expect(metrics.collect().counters.queryCacheHits).toBe(1)
    hits = 5
    const { counters, gauges } = metrics.collect()
    expect([counters.queryCacheHits, gauges.queryCacheEntries]).toEqual([5, 2])
  })

  test('metrics have the times of collection and of the start', () => {
    const system = new TestSystem()
    const started = system.nowMicros()
    const metrics = new Metrics(system)
    system.advance(1_500)
    const collected = metrics.collect()
    expect(collected.processStartedAtMicros).toBe(started)
    expect(collected.collectedAtMicros).toBe(started + 1_500_000n)
  })
})

test('a bucket counts all observations up to its bound', () => {
  const metrics = new Metrics(new TestSystem())
  const histogram = metrics.histograms.queryDurationMicros
  for (const micros of [0, BOUNDS[0], BOUNDS[0] + 0.5, BOUNDS.at(-1)!, BOUNDS.at(-1)! + 1]) {
    histogram.observe(micros)
  }
  const { count, sumMicros, buckets } = metrics.collect().histograms.queryDurationMicros
  expect(count).toBe(5)
  expect(sumMicros).toBe(2 * BOUNDS[0] + 2 * BOUNDS.at(-1)! + 1)
  expect(buckets.map(({ leMicros }) => leMicros)).toEqual([...BOUNDS])
  expect(buckets.map((bucket) => bucket.count)).toEqual([2, ...Array(BOUNDS.length - 2).fill(3), 4])
})

describe('as OpenMetrics', () => {
  test('renders every metric as one described family in base units', () => {
    const metrics = full(new Metrics(new TestSystem()))
    metrics.counters.queriesSucceeded.add(7)
    metrics.counters.functionCpuMicros.add(1_500)
    metrics.histograms.commitDurationMicros.observe(2_500)
    const families = parseOpenMetrics(openMetricsText(metrics.collect()))
    // And the start of the process, which JSON has beside the gauges.
    expect(families.size).toBe(Object.keys(ALL).length + 1)
    const sample = (name: string, key: string) => families.get(name)!.samples.get(key)
    expect(sample('svc_queries_succeeded', '_total')).toBe(7)
    expect(sample('svc_function_cpu_seconds', '_total')).toBe(0.0015)
    expect(families.get('svc_function_cpu_seconds')!.unit).toBe('seconds')
    expect(families.get('svc_process_resident_bytes')!.unit).toBe('bytes')
    expect(families.get('svc_query_cache_hit_ratio')).toMatchObject({
      type: 'gauge',
      unit: 'ratio',
      samples: new Map([['', Object.keys(GAUGES).indexOf('queryCacheHitPercent') / 100]]),
    })
    const commits = families.get('svc_commit_duration_seconds')!
    expect(commits.samples.get('_bucket{le="0.001"}')).toBe(0)
    expect(commits.samples.get('_bucket{le="0.0025"}')).toBe(1)
    expect(commits.samples.get('_bucket{le="600.0"}')).toBe(1)
    expect(commits.samples.get('_sum')).toBe(0.0025)
    expect(sample('svc_process_start_time_seconds', '')).toBe(1_800_000_000)
  })
})

describe('the process', () => {
  const ends: (() => void)[] = []
  afterEach(() => {
    for (const end of ends.splice(0)) end()
  })

  test('the process reports its memory and CPU time', () => {
    const metrics = new Metrics(realSystem())
    ends.push(watchProcess(metrics, realSystem()))
    const { counters, gauges } = metrics.collect()
    expect(counters.processCpuMicros).toBeGreaterThan(1_000)
    expect(gauges.processHeapBytes).toBeGreaterThan(1e5)
    expect(gauges.processResidentBytes).toBeGreaterThanOrEqual(gauges.processHeapBytes! / 2)
  })

  test('the process reports the delay of its event loop', async () => {
    const system = realSystem()
    const metrics = new Metrics(system)
    ends.push(watchProcess(metrics, system))
    await new Promise((resolve) => setTimeout(resolve, 60))
    const from = system.monotonicMillis()
    while (system.monotonicMillis() - from < 300);
    await new Promise((resolve) => setTimeout(resolve, 60))
    const { count, sumMicros } = metrics.collect().histograms.eventLoopDelayMicros
    expect(count).toBeGreaterThanOrEqual(2)
    expect(sumMicros).toBeGreaterThan(200_000)
  })
})
