/**
 * `npm run bench`: measures each figure beside a baseline in the same run, in turns, so that a
 * drift of the machine's speed affects both. Ratios can be quoted; absolute figures belong to the
 * machine. BENCH_ONLY selects the figures whose name contains it; BENCH_LONG=1 adds those that take
 * minutes.
 */

import type { Figure, Measured } from './figure.ts'
import { CALLS } from './figures/calls.ts'
import { COMMITS } from './figures/commits.ts'
import { COMPRESSION } from './figures/compression.ts'
import { CONSOLE } from './figures/console.ts'
import { DISK } from './figures/disk.ts'
import { FILES } from './figures/files.ts'
import { HOOKS } from './figures/hooks.ts'
import { IMPORTS } from './figures/imports.ts'
import { LIVE } from './figures/live.ts'
import { LIVE_LISTS } from './figures/live-lists.ts'
import { MEMORY } from './figures/memory.ts'
import { ONE_CALLER } from './figures/one-caller.ts'
import { PROCESSES_COMPARED } from './figures/processes.ts'
import { PROMOTIONS } from './figures/promotions.ts'
import { RESTARTS } from './figures/restarts.ts'
import { SAVES } from './figures/saves.ts'
import { SCHEDULING } from './figures/scheduling.ts'
import { SIZES } from './figures/sizes.ts'
import { TEST_KIT } from './figures/test-kit.ts'
import { TRACES } from './figures/traces.ts'
import { TRANSFERS } from './figures/transfers.ts'
import { benchInstallation } from './installation.ts'

/** A server's rate is 15% lower in its first 5 s of load, while its code is being compiled. */
const WARM_UP_SECONDS = Number(process.env.BENCH_WARM_UP_SECONDS ?? '10')
const SECONDS = Number(process.env.BENCH_SECONDS ?? '5')
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? '3')
const ONLY = process.env.BENCH_ONLY ?? ''
const LONG = process.env.BENCH_LONG === '1'

const options = { warmUpSeconds: WARM_UP_SECONDS, seconds: SECONDS, rounds: ROUNDS }
/** The figures of each store run in this order, SQLite first. */
const FIGURES: readonly Figure[] = [
  ...CALLS,
  ...ONE_CALLER,
  ...PROCESSES_COMPARED,
  ...COMPRESSION,
  ...CONSOLE,
  ...TRACES,
  ...PROMOTIONS,
  ...COMMITS,
  ...TRANSFERS,
  ...DISK,
  ...IMPORTS,
  ...SCHEDULING,
  ...HOOKS,
  ...LIVE,
  ...LIVE_LISTS,
  ...SIZES,
  ...RESTARTS,
  ...MEMORY,
  ...SAVES,
  ...TEST_KIT,
  ...FILES,
]
/** Widths of the text columns; the other columns hold numbers. */
const WIDTHS = [50, 44]

const named = FIGURES.filter(({ name }) => name.includes(ONLY))
const chosen = named.filter(({ long }) => LONG || long !== true)
print(['figure', 'baseline', 'ratio', 'target', '', 'svc', 'p50', 'p99', 'baseline', 'p50', 'p99'])
for (const documents of ['sqlite', 'postgres'] as const) {
  const figures = chosen.filter((figure) => figure.documents === documents)
  if (figures.length === 0) continue
  const installation = await benchInstallation(documents)
  try {
    for (const figure of figures) {
      report(figure, await figure.measure(installation, options))
    }
  } finally {
    await installation.dispose()
  }
}
for (const { name } of named) {
  if (!chosen.some((figure) => figure.name === name)) print([name, 'only with BENCH_LONG=1'])
}

function report(figure: Figure, measured: Measured): void {
  const { ratio, candidate, baseline, failure, note } = measured
  if (failure !== null) {
    process.stderr.write(`${figure.name}: ${failure}\n`)
    process.exitCode = 1
  }
  print([
    figure.name,
    figure.baseline,
    ratio.toFixed(3),
    figure.ratioMin.toFixed(2),
    failure !== null ? 'failed' : ratio >= figure.ratioMin ? 'met' : 'missed',
    ...[candidate, baseline].flatMap(({ value, p50Micros, p99Micros }) => [
      value,
      millis(p50Micros),
      millis(p99Micros),
    ]),
    ...(note === undefined ? [] : [`  ${note}`]),
  ])
}

function millis(micros: number | null): string {
  return micros === null ? '' : `${(micros / 1000).toFixed(2)} ms`
}

function print(cells: readonly string[]): void {
  const padded = cells.map((cell, i) => {
    const width = WIDTHS[i]
    return width === undefined ? cell.padStart(11) : cell.padEnd(width)
  })
  process.stdout.write(`${padded.join('').trimEnd()}\n`)
}
