/**
 * `npm run bench`: each figure beside a limit measured in the same run, in turns, so that a machine
 * whose speed drifts slows both. Ratios are what is quoted; absolute figures are this machine's.
 * BENCH_ONLY keeps the figures whose name contains it.
 */
import { randomBytes } from 'node:crypto'
import { IdFactory } from '../src/value/ids.ts'
import {
  type BareServer,
  type BenchInstallation,
  bareServer,
  benchInstallation,
} from './bench/installation.ts'
import { type LoadOptions, type LoadResult, load } from './bench/load.ts'

const SECONDS = Number(process.env.BENCH_SECONDS ?? '5')
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? '3')
const ONLY = process.env.BENCH_ONLY ?? ''
const ITEMS = 10_000
const TITLE = 'An item of ordinary length'
const BODY =
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor. '.repeat(2)

interface Figure {
  readonly name: string
  readonly bar: number
  readonly connections: number
  readonly surface: 'application' | 'management'
  readonly limit: 'bare.ts' | 'bare-select.ts'
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Of the next request. */
  readonly body?: () => string
}

const ids = new IdFactory({ nowMillis: () => Date.now(), randomBytes })
let counter = 0

const int64 = (value: number) => `{"type":"int64","value":"${value}"}`
const string = (value: string) => `{"type":"string","value":${JSON.stringify(value)}}`
const envelope = (name: string, entries: Record<string, string>, more = '') => {
  const list = Object.keys(entries)
    .sort()
    .map((key) => `{"key":"${key}","value":${entries[key]}}`)
  const head = `"version":1,"target":"channel:production","function":"${name}"`
  return `{${head},"arguments":{"type":"object","value":[${list.join(',')}]}${more}}`
}
const add = () => {
  const entries = { number: int64(counter++), title: string(TITLE), body: string(BODY) }
  return envelope('items.add', entries, `,"operationId":"${ids.make('opn')}"`)
}
const read = () => {
  const number = (counter * 7919) % ITEMS
  return envelope('items.get', { number: int64(number), nonce: int64(counter++) })
}
const cached = () => envelope('items.get', { number: int64(counter++ % 100) })

const application = {
  surface: 'application',
  limit: 'bare.ts',
  method: 'POST',
  connections: 64,
} as const

const FIGURES: readonly Figure[] = [
  // First, since the access token lives 10 minutes.
  {
    name: 'authenticated GET /v1/auth/me',
    bar: 0.35,
    surface: 'management',
    limit: 'bare-select.ts',
    method: 'GET',
    connections: 64,
    path: '/v1/auth/me',
  },
  { ...application, name: 'Query from cache', bar: 0.6, path: '/v1/query', body: cached },
  { ...application, name: 'Query, one indexed read', bar: 0.15, path: '/v1/query', body: read },
  {
    ...application,
    name: 'durable Mutation, 64 in flight',
    bar: 0.08,
    path: '/v1/mutation',
    body: add,
  },
]

type Target = Pick<LoadOptions, 'port' | 'headers'>

const installation = await benchInstallation()
try {
  await run(installation)
} finally {
  await installation.dispose()
}

async function run(installation: BenchInstallation): Promise<void> {
  const targets = targetsOf(installation)
  const figures = FIGURES.filter(({ name }) => name.includes(ONLY))
  let filled = false
  print(['figure', 'per second', 'limit', 'ratio', 'bar', 'p50', 'p99', 'limit p50', 'limit p99'])
  for (const figure of figures) {
    const target = targets[figure.surface]
    if (figure.surface === 'application' && !filled) {
      await fill(target)
      filled = true
    }
    const answerBytes = (await one(target, figure)).length
    const bare = await bareServer(figure.limit, {
      ANSWER_BYTES: String(answerBytes),
      DATABASE_URL: installation.databaseUrl,
    })
    try {
      await compare(figure, target, bare)
    } finally {
      bare.stop()
    }
  }
}

function targetsOf(installation: BenchInstallation): Record<Figure['surface'], Target> {
  const { applicationPort, key, managementPort, accessToken } = installation
  const accept = { accept: 'application/json' }
  return {
    application: {
      port: applicationPort,
      headers: { ...accept, 'content-type': 'application/json', 'x-service-key': key },
    },
    management: {
      port: managementPort,
      headers: { ...accept, authorization: `Bearer ${accessToken}` },
    },
  }
}

/** In turns with the limit. */
async function compare(figure: Figure, target: Target, bare: BareServer): Promise<void> {
  const ours: LoadResult[] = []
  const limits: LoadResult[] = []
  const { headers } = target
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(await measure(figure, { ...target, path: figure.path }))
    limits.push(await measure(figure, { port: bare.port, headers, path: '/bare' }))
  }
  report(figure, ours, limits)
}

async function measure(
  figure: Figure,
  to: Target & { readonly path: string },
): Promise<LoadResult> {
  const { connections, method, body } = figure
  const result = await load({ ...to, connections, method, body, seconds: SECONDS })
  if (result.failures > 0) {
    process.stderr.write(`${figure.name}: ${result.failures} failures; ${result.firstFailure}\n`)
    process.exitCode = 1
  }
  return result
}

async function fill({ port, headers }: Target): Promise<void> {
  while (counter < ITEMS) {
    const calls = Array.from({ length: 64 }, () =>
      fetch(`http://127.0.0.1:${port}/v1/mutation`, { method: 'POST', headers, body: add() }),
    )
    for (const reply of await Promise.all(calls)) {
      if (!reply.ok) throw new Error(await reply.text())
    }
  }
}

async function one({ port, headers }: Target, { method, path, body }: Figure): Promise<string> {
  const init = { method, headers, ...(body !== undefined && { body: body() }) }
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, init)
  const text = await reply.text()
  if (!reply.ok) throw new Error(text)
  return text
}

function report(figure: Figure, ours: LoadResult[], limits: LoadResult[]): void {
  const ratios = ours.map((result, i) => result.perSecond / limits[i]!.perSecond)
  const of = (results: LoadResult[], field: 'perSecond' | 'p50Micros' | 'p99Micros') =>
    median(results.map((result) => result[field]))
  print([
    figure.name,
    of(ours, 'perSecond').toFixed(0),
    of(limits, 'perSecond').toFixed(0),
    median(ratios).toFixed(3),
    figure.bar.toFixed(2),
    ...[of(ours, 'p50Micros'), of(ours, 'p99Micros')].map(millis),
    ...[of(limits, 'p50Micros'), of(limits, 'p99Micros')].map(millis),
  ])
}

function millis(micros: number): string {
  return `${(micros / 1000).toFixed(2)} ms`
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function print(cells: readonly string[]): void {
  const [name = '', ...rest] = cells
  process.stdout.write(`${name.padEnd(32)}${rest.map((cell) => cell.padStart(12)).join('')}\n`)
}
