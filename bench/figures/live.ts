/** Measures live Queries: memory of connections, broadcasts, and commits beside subscribers. */
import { baselineServer } from '../baselines/processes.ts'
import { call, ids, int64, mutateAll, mutationBody, queryBody, string, TEXTS } from '../calls.ts'
import { type Figure, inTurns, type Measured, type MeasureOptions, median } from '../figure.ts'
import type { BenchInstallation, Target } from '../installation.ts'
import { bareSubscribers, liveSubscribers, type Subscribers } from '../live/subscribers.ts'
import { type LoadResult, toLoadResult, WARM_UP_SHARE } from '../load.ts'
import { serverProcesses } from '../server-processes.ts'

const CONNECTIONS = 10_000
const SUBSCRIBERS = 1_000
/** Number of documents that one Mutation inserts. */
const FILLED = 1_000
const KIBIBYTES_MAX = 24
const SETTLE_MILLIS = 5_000
const SAMPLES = 5
const SAMPLE_MILLIS = 1_000
/**
 * Time from one Mutation to the next where only its own duration counts: a process that was idle
 * for longer is slower, so the times between must be equal. Longer than a round.
 */
const PERIOD_MILLIS = 50
const CLOSE_MILLIS = 500

export const LIVE: readonly Figure[] = [
  {
    name: `memory of each of ${CONNECTIONS} connections`,
    baseline: `a limit of ${KIBIBYTES_MAX} KiB`,
    ratioMin: 1,
    documents: 'sqlite',
    measure: measureMemory,
  },
  {
    name: `last of ${SUBSCRIBERS} subscribers, p99`,
    baseline: 'bare WebSocket broadcast, same payload',
    ratioMin: 1 / 3,
    documents: 'sqlite',
    measure: measureBroadcast,
  },
  {
    name: `Mutation beside ${SUBSCRIBERS} subscribers, p50`,
    baseline: 'the same Mutation without subscribers',
    ratioMin: 1 / 1.1,
    documents: 'sqlite',
    measure: measureBeside,
  },
  {
    name: `one of ${SUBSCRIBERS} subscribers, own keys, p50`,
    baseline: 'the only subscriber',
    ratioMin: 0.9,
    documents: 'sqlite',
    measure: measureOthers,
  },
]

let counter = 0
/** Each Mutation sets another title, so that the bytes of the result change. */
const change = (number: number): string =>
  mutationBody('live.change', { number: int64(number), title: string(`title ${counter++}`) })

const filled = new WeakSet<BenchInstallation>()

/** Inserts a document for each connection, once for each installation. */
async function fill(installation: BenchInstallation): Promise<void> {
  if (filled.has(installation)) return
  filled.add(installation)
  const bodies = Array.from({ length: CONNECTIONS / FILLED }, (_, i) => {
    const range = { from: int64(i * FILLED), to: int64((i + 1) * FILLED) }
    return mutationBody('live.fill', { ...range, ...TEXTS })
  })
  await mutateAll(installation.application, bodies, 1)
}

async function measureMemory(installation: BenchInstallation): Promise<Measured> {
  await fill(installation)
  // What the figures before left in the server's heap would be freed while this one measures.
  await installation.restart()
  const to = installation.application
  // What the first connections load stays, and is not memory of the others.
  const warm = await liveSubscribers(to, { clients: 100, number: 'own', roundMessages: 1 })
  warm.stop()
  const before = await residentKibibytes()
  const many = await liveSubscribers(to, { clients: CONNECTIONS, number: 'own', roundMessages: 1 })
  try {
    const each = ((await residentKibibytes()) - before) / CONNECTIONS
    const side = (kibibytes: number) => ({
      value: `${kibibytes.toFixed(1)} KiB`,
      p50Micros: null,
      p99Micros: null,
    })
    return {
      ratio: KIBIBYTES_MAX / each,
      candidate: side(each),
      baseline: side(KIBIBYTES_MAX),
      failure: null,
    }
  } finally {
    many.stop()
  }
}

/** Returns the median memory of the server, without its runners, after a pause without load. */
async function residentKibibytes(): Promise<number> {
  await Bun.sleep(SETTLE_MILLIS)
  const samples: number[] = []
  for (let i = 0; i < SAMPLES; i++) {
    samples.push(serverProcesses()[0]!.rssKibibytes)
    await Bun.sleep(SAMPLE_MILLIS)
  }
  return median(samples)
}

async function measureBroadcast(
  installation: BenchInstallation,
  options: MeasureOptions,
): Promise<Measured> {
  await fill(installation)
  const to = installation.application
  const server = await baselineServer('broadcast', { PAYLOAD: await payloadOf(to) })
  const all = { clients: SUBSCRIBERS, number: 0, roundMessages: SUBSCRIBERS } as const
  const live = await liveSubscribers(to, all)
  const bare = await bareSubscribers(server.port, SUBSCRIBERS)
  const post = () => fetch(`http://127.0.0.1:${server.port}/`, { method: 'POST' })
  const candidate = (seconds: number) =>
    rounds(seconds, () => lastReceipt(() => mutate(to, 0), live))
  const baseline = (seconds: number) => rounds(seconds, () => lastReceipt(post, bare))
  try {
    return byDuration(await inTurns({ candidate, baseline }, options), 'p99Micros')
  } finally {
    live.stop()
    bare.stop()
    server.stop()
  }
}

/** Compares the time of a Mutation with subscribers of its document and without. */
async function measureBeside(
  installation: BenchInstallation,
  options: MeasureOptions,
): Promise<Measured> {
  await fill(installation)
  const to = installation.application
  const all = { clients: SUBSCRIBERS, number: 0, roundMessages: SUBSCRIBERS } as const
  const run = (seconds: number, afterwards: () => Promise<unknown>) =>
    rounds(seconds, async () => {
      const startedAt = performance.now()
      await mutate(to, 0)
      const millis = performance.now() - startedAt
      await afterwards()
      await periodEnd(startedAt)
      return millis
    })
  const candidate = (seconds: number) =>
    beside(to, all, (subscribers) => run(seconds, () => subscribers.round()))
  const baseline = (seconds: number) => run(seconds, async () => undefined)
  return byDuration(await inTurns({ candidate, baseline }, options), 'p50Micros')
}

/** Compares a Mutation that one subscriber sees, beside those of other documents and alone. */
async function measureOthers(
  installation: BenchInstallation,
  options: MeasureOptions,
): Promise<Measured> {
  await fill(installation)
  const to = installation.application
  const number = CONNECTIONS - 1
  const one = await liveSubscribers(to, { clients: 1, number, roundMessages: 1 })
  const baseline = (seconds: number) =>
    rounds(seconds, async () => {
      const startedAt = performance.now()
      const millis = await lastReceipt(() => mutate(to, number), one)
      await periodEnd(startedAt)
      return millis
    })
  const others = { clients: SUBSCRIBERS - 1, number: 'own', roundMessages: 1 } as const
  const candidate = (seconds: number) => beside(to, others, () => baseline(seconds))
  try {
    return byDuration(await inTurns({ candidate, baseline }, options), 'p50Micros')
  } finally {
    one.stop()
  }
}

/** Runs a load while the subscribers are connected. */
async function beside<T>(
  to: Target,
  what: Parameters<typeof liveSubscribers>[1],
  run: (subscribers: Subscribers) => Promise<T>,
): Promise<T> {
  const subscribers = await liveSubscribers(to, what)
  try {
    return await run(subscribers)
  } finally {
    subscribers.stop()
    // The server closes their connections.
    await Bun.sleep(CLOSE_MILLIS)
  }
}

/** Measures one after the other for `seconds`. Durations of the first fifth are discarded. */
async function rounds(seconds: number, measure: () => Promise<number>): Promise<LoadResult> {
  const startedAt = performance.now()
  const countFrom = startedAt + seconds * 1000 * WARM_UP_SHARE
  const stopAt = startedAt + seconds * 1000
  const durations: number[] = []
  while (performance.now() < stopAt) {
    const millis = await measure()
    if (performance.now() >= countFrom) durations.push(millis)
  }
  return toLoadResult(durations, (stopAt - countFrom) / 1000)
}

/** Returns the milliseconds from the request to the last receipt of its round. */
async function lastReceipt(send: () => Promise<unknown>, from: Subscribers): Promise<number> {
  const sentAt = performance.now()
  const receipt = from.round().then(() => performance.now() - sentAt)
  await send()
  return receipt
}

const periodEnd = (startedAt: number) =>
  Bun.sleep(Math.max(0, startedAt + PERIOD_MILLIS - performance.now()))

const mutate = (to: Target, number: number) => call(to, '/v1/mutation', change(number))

/** The state message of document 0, as its subscribers receive it. */
async function payloadOf(to: Target): Promise<string> {
  const body = queryBody('live.get', { number: int64(0), nonce: int64(0) })
  const result = JSON.stringify(await call(to, '/v1/query', body))
  const head = { version: 1, type: 'state', subscriptionId: 'one', revision: '1' }
  const more = { snapshotSequence: '10000', releaseId: ids.make('rel') }
  return `${JSON.stringify({ ...head, ...more }).slice(0, -1)},"result":${result}}`
}

/** Compares durations in place of rates. */
function byDuration(measured: Measured, of: 'p50Micros' | 'p99Micros'): Measured {
  return { ...measured, ratio: measured.baseline[of]! / measured.candidate[of]! }
}
