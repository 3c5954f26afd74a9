/**
 * Renders collected metrics as text: OpenMetrics 1.0, or the format of Prometheus 0.0.4. The base
 * units are seconds, bytes and ratios, and names end with them: `commitDurationMicros` becomes
 * `svc_commit_duration_seconds`. The samples of both formats are equal. In the older one the family
 * of a counter has the name of its sample, and there are neither units nor an end.
 */

import {
  COUNTERS,
  type CounterName,
  GAUGES,
  type GaugeName,
  HISTOGRAMS,
  type HistogramName,
} from './definitions.ts'
import type { Collected, CollectedHistogram } from './metrics.ts'

interface Unit {
  /** Suffix of names in names.ts. */
  readonly suffix: string
  readonly name: string
  /** Divisor from the unit of the suffix to this unit. */
  readonly size: number
}

const UNITS: readonly Unit[] = [
  { suffix: 'Micros', name: 'seconds', size: 1e6 },
  { suffix: 'Bytes', name: 'bytes', size: 1 },
  { suffix: 'Percent', name: 'ratio', size: 100 },
]

interface Family {
  readonly name: string
  readonly unit: Unit | null
}

type Format = 'openMetrics' | 'prometheus'

export function openMetricsText(collected: Collected): string {
  return `${textLines(collected, 'openMetrics').join('\n')}\n# EOF\n`
}

/** https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
export function prometheusText(collected: Collected): string {
  return `${textLines(collected, 'prometheus').join('\n')}\n`
}

function textLines(collected: Collected, format: Format): string[] {
  const { counters, gauges, histograms, processStartedAtMicros } = collected
  const lines: string[] = []
  for (const [name, value] of Object.entries(counters)) {
    const family = familyOf(name)
    describe(lines, family, 'counter', COUNTERS[name as CounterName], format)
    lines.push(`${family.name}_total ${valueText(value, family)}`)
  }
  for (const [name, value] of Object.entries(gauges)) {
    const family = familyOf(name)
    describe(lines, family, 'gauge', GAUGES[name as GaugeName], format)
    lines.push(`${family.name} ${valueText(value, family)}`)
  }
  const started = familyOf('processStartTimeMicros')
  describe(lines, started, 'gauge', 'Start time of the process since the Unix epoch', format)
  lines.push(`${started.name} ${valueText(Number(processStartedAtMicros), started)}`)
  for (const [name, histogram] of Object.entries(histograms)) {
    const family = familyOf(name)
    describe(lines, family, 'histogram', HISTOGRAMS[name as HistogramName], format)
    lines.push(...histogramLines(family, histogram))
  }
  return lines
}

/** Adds the metadata lines of a family, which precede its samples. */
function describe(
  lines: string[],
  { name, unit }: Family,
  type: 'counter' | 'gauge' | 'histogram',
  help: string,
  format: Format,
): void {
  const described = format === 'prometheus' && type === 'counter' ? `${name}_total` : name
  lines.push(`# TYPE ${described} ${type}`)
  if (format === 'openMetrics' && unit !== null) lines.push(`# UNIT ${described} ${unit.name}`)
  lines.push(`# HELP ${described} ${help}.`)
}

function familyOf(name: string): Family {
  const unit = UNITS.find(({ suffix }) => name.endsWith(suffix)) ?? null
  const stem = unit === null ? name : name.slice(0, -unit.suffix.length)
  const snake = stem.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return { name: `svc_${snake}${unit === null ? '' : `_${unit.name}`}`, unit }
}

function histogramLines(family: Family, { buckets, count, sumMicros }: CollectedHistogram) {
  return [
    ...buckets.map(
      ({ leMicros, count }) => `${family.name}_bucket{le="${boundText(leMicros)}"} ${count}`,
    ),
    `${family.name}_bucket{le="+Inf"} ${count}`,
    `${family.name}_count ${count}`,
    `${family.name}_sum ${valueText(sumMicros, family)}`,
  ]
}

function valueText(value: number, { unit }: Family): string {
  return String(unit === null ? value : value / unit.size)
}

/** Formats a bound. Bounds are compared as text, so each has one canonical form: `0.25`, `1.0`. */
function boundText(micros: number): string {
  const seconds = micros / 1e6
  return Number.isInteger(seconds) ? `${seconds}.0` : String(seconds)
}
