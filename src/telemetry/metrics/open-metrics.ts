/**
 * Renders collected metrics as OpenMetrics 1.0 text. Its base units are seconds, bytes and ratios,
 * and names end with them: `commitDurationMicros` becomes `svc_commit_duration_seconds`.
 */
import type { Collected, CollectedHistogram } from './metrics.ts'
import { COUNTERS, GAUGES, HISTOGRAMS } from './names.ts'

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

export function openMetricsText(collected: Collected): string {
  const { counters, gauges, histograms, processStartedAtMicros } = collected
  const lines: string[] = []
  for (const [name, value] of Object.entries(counters)) {
    const family = describe(lines, name, 'counter', COUNTERS)
    lines.push(`${family.name}_total ${valueText(value, family)}`)
  }
  for (const [name, value] of Object.entries(gauges)) {
    const family = describe(lines, name, 'gauge', GAUGES)
    lines.push(`${family.name} ${valueText(value, family)}`)
  }
  const started = describe(lines, 'processStartTimeMicros', 'gauge', {
    processStartTimeMicros: 'Start time of the process since the Unix epoch',
  })
  lines.push(`${started.name} ${valueText(Number(processStartedAtMicros), started)}`)
  for (const [name, histogram] of Object.entries(histograms)) {
    const family = describe(lines, name, 'histogram', HISTOGRAMS)
    lines.push(...histogramLines(family, histogram))
  }
  return `${lines.join('\n')}\n# EOF\n`
}

/** Adds the metadata lines of a family, which precede its samples. */
function describe(
  lines: string[],
  name: string,
  type: 'counter' | 'gauge' | 'histogram',
  help: { readonly [name: string]: string },
): Family {
  const family = familyOf(name)
  lines.push(`# TYPE ${family.name} ${type}`)
  if (family.unit !== null) lines.push(`# UNIT ${family.name} ${family.unit.name}`)
  lines.push(`# HELP ${family.name} ${help[name]}.`)
  return family
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
