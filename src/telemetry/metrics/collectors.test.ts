/** The files of dist-config that show metrics name only metrics that exist. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TestSystem } from '../../system/system.ts'
import { GAUGES } from './definitions.ts'
import { Metrics } from './metrics.ts'
import { prometheusText } from './open-metrics.ts'

const ROOT = join(import.meta.dirname, '../../..')
/** The metric that `svc metrics --listen` adds. */
const EXPORTER = 'svc_exporter_session_end_time_seconds'

function sampleNames(): Set<string> {
  const metrics = new Metrics(new TestSystem())
  metrics.addSource(() => Object.fromEntries(Object.keys(GAUGES).map((name) => [name, 1])))
  const text = prometheusText(metrics.collect())
  const samples = text.match(/^svc_[a-z_]+/gm)!
  const histograms = [...text.matchAll(/^# TYPE (\S+) histogram$/gm)].map(([, name]) => name!)
  return new Set([...samples, ...histograms, EXPORTER])
}

test.each(['dist-config/grafana-dashboard.json', 'src/docs/monitoring.md'])(
  '%s names only metrics that exist',
  (file) => {
    const known = sampleNames()
    const named = readFileSync(join(ROOT, file), 'utf8').match(/\bsvc_[a-z_]+/g) ?? []
    expect(named.filter((name) => !known.has(name))).toEqual([])
    expect(named).toContain(EXPORTER)
  },
)

test('every panel of the dashboard has a place of its own and queries', () => {
  const text = readFileSync(join(ROOT, 'dist-config/grafana-dashboard.json'), 'utf8')
  const { panels } = JSON.parse(text)
  const places = panels.map(({ gridPos }: { gridPos: object }) => JSON.stringify(gridPos))
  expect(new Set(places).size).toBe(panels.length)
  for (const { title, targets } of panels) {
    expect(targets.length, title).toBeGreaterThan(0)
    for (const { expr } of targets) expect(expr, title).toMatch(/svc_[a-z_]+/)
  }
})
