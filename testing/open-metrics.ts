/** Parses OpenMetrics 1.0 text, strictly as far as the server uses the format. */
import assert from 'node:assert/strict'

export interface MetricFamily {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly unit: string | null
  readonly help: string
  /** Values by the text after the family's name, with labels: `_total`, `_bucket{le="0.1"}`. */
  readonly samples: ReadonlyMap<string, number>
}

interface Reading {
  readonly name: string
  type?: MetricFamily['type']
  unit?: string
  help?: string
  readonly samples: Map<string, number>
}

const META = /^# (TYPE|UNIT|HELP) ([a-z][a-z0-9_]*) (.+)$/
const SAMPLE = /^([a-z][a-z0-9_]*)(\{le="([^"\\]+)"\})? ([^ ]+)$/
const NUMBER = /^[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?$/
/** The form of a bound: with a decimal point, and not below 1e-4. */
const BOUND = /^(?:\+Inf|[0-9]+\.[0-9]+)$/

export function parseOpenMetrics(text: string): ReadonlyMap<string, MetricFamily> {
  assert(text.endsWith('\n# EOF\n'), 'the text must end with # EOF and a line end')
  const families = new Map<string, Reading>()
  let current: Reading | null = null
  for (const line of text.slice(0, -'# EOF\n'.length - 1).split('\n')) {
    const meta = META.exec(line)
    if (meta !== null) current = readMeta(meta, current, families)
    else readSample(line, current)
  }
  return new Map([...families].map(([name, reading]) => [name, checked(reading)]))
}

function readMeta(
  [, kind, name, rest]: RegExpExecArray,
  current: Reading | null,
  families: Map<string, Reading>,
): Reading {
  const known = current?.name === name ? current : null
  assert(
    known !== null || !families.has(name!),
    `${name} must not be interrupted by another family`,
  )
  const family: Reading = known ?? { name: name!, samples: new Map() }
  families.set(name!, family)
  assert.equal(family.samples.size, 0, `${name}: metadata must precede the samples`)
  const field = kind!.toLowerCase() as 'type' | 'unit' | 'help'
  assert.equal(family[field], undefined, `${name} must have one ${kind}`)
  Object.assign(family, { [field]: rest })
  return family
}

function readSample(line: string, current: Reading | null): void {
  const [, name, labels = '', bound, value] =
    SAMPLE.exec(line) ?? assert.fail(`malformed line: ${line}`)
  assert(
    current !== null && name!.startsWith(current.name),
    `${line}: not a sample of the family above`,
  )
  assert.match(value!, NUMBER)
  if (bound !== undefined) assert.match(bound, BOUND)
  const key = name!.slice(current.name.length) + labels
  assert(!current.samples.has(key), `${line}: duplicate sample`)
  current.samples.set(key, Number(value))
}

function checked({ name, type, unit = null as never, help, samples }: Reading): MetricFamily {
  assert(type !== undefined && help !== undefined, `${name} lacks a type or help`)
  if (unit !== null) assert(name.endsWith(`_${unit}`), `${name} must end with its unit`)
  assert(!/_(?:total|count|sum|bucket|created|info)$/.test(name), `${name}: no reserved suffix`)
  const keys = [...samples.keys()]
  if (type === 'counter') assert.deepEqual(keys, ['_total'])
  else if (type === 'gauge') assert.deepEqual(keys, [''])
  else if (type === 'histogram') checkHistogram(name, samples)
  else assert.fail(`${name}: unknown type ${type}`)
  return { type, unit, help, samples }
}

function checkHistogram(name: string, samples: ReadonlyMap<string, number>): void {
  const buckets = [...samples].filter(([key]) => key.startsWith('_bucket'))
  const rest = [...samples.keys()].filter((key) => !key.startsWith('_bucket'))
  assert.deepEqual(rest, ['_count', '_sum'], name)
  const bounds = buckets.map(([key]) => {
    const bound = /"(.*)"/.exec(key)![1]!
    return bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound)
  })
  assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, `${name} must end with +Inf`)
  for (const [i, [, count]] of buckets.entries()) {
    if (i === 0) continue
    assert(bounds[i]! > bounds[i - 1]!, `${name}: bounds must ascend`)
    assert(count >= buckets[i - 1]![1], `${name}: counts must be cumulative`)
  }
  assert.equal(buckets.at(-1)![1], samples.get('_count'), name)
}
