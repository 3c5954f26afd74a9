/** A served application whose Queries greedy subscribers watch, with measured normal calls. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Application, application, createKey, int64, mutation } from '../application.ts'
import { cpuMillis, memoryMib, runClient, serverPid } from './attacks.ts'
import type { ClientReport } from './client.ts'
import type { SubscriberReport, SubscriberTask } from './subscriber.ts'

const SCHEMA = `import { defineSchema, table, v } from 'svc'

export default defineSchema({
  short: table({ body: v.string() }),
  long: table({ body: v.string() }),
})
`

const FUNCTIONS = `
import { mutation, query, v } from 'svc'
const shared = { nonce: v.string(), padding: v.string() }
const watched = { clients: ['public'] as const, arguments: shared, returns: v.any() }
export const small = query({
  clients: ['confidential'], arguments: { input: v.int64() }, returns: v.int64(),
  handler: (_ctx, { input }) => input + 1n,
})
export const one = query({ ...watched, handler: () => 1n })
export const short = query({
  ...watched,
  handler: async (ctx) => (await ctx.db.table('short').scan().collect()).map(({ body }) => body),
})
export const long = query({
  ...watched,
  handler: async (ctx) => (await ctx.db.table('long').scan().collect()).map(({ body }) => body),
})
export const fill = mutation({
  clients: ['confidential'], returns: v.null(),
  arguments: { short: v.int64(), long: v.int64() },
  handler: async (ctx, { short, long }) => {
    for (let i = 0n; i < short; i++) await ctx.db.insert('short', { body: 'x'.repeat(7000) })
    for (let i = 0n; i < long; i++) await ctx.db.insert('long', { body: 'x'.repeat(7000) })
    return null
  },
})
`

/** Documents of 7,000 bytes in each list. */
const SHORT = 100
const LONG = 1_030
const LONG_PER_CALL = 1_000

export async function openWatchedApplication(
  environment: Record<string, string> = {},
): Promise<Application> {
  const app = await application((workspace) => {
    rmSync(join(workspace, 'functions'), { recursive: true })
    mkdirSync(join(workspace, 'functions'))
    writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
    writeFileSync(join(workspace, 'functions/slow.ts'), FUNCTIONS)
  }, environment)
  await fill(app, SHORT, LONG_PER_CALL)
  await fill(app, 0, LONG - LONG_PER_CALL)
  return app
}

/** Adds documents, after which every list is read and sent again. */
async function fill(app: Application, short: number, long: number): Promise<void> {
  const counts = { short: int64(short), long: int64(long) }
  const { status, body } = await mutation(app, { function: 'slow.fill', arguments: counts })
  if (status !== 200) throw new Error(JSON.stringify(body))
}

type Size = 'function' | 'connections' | 'subscriptions' | 'seconds'

export interface Subscribers
  extends Pick<SubscriberTask, Size>,
    Partial<Omit<SubscriberTask, Size | 'origin' | 'key'>> {
  /** True if the lists change once a second. */
  readonly areChanged?: boolean
}

const PLAIN = {
  paddingCharacters: 0,
  blankCharacters: 0,
  isReading: true,
  pings: 0,
} as const

/** Memory of the server process in MiB, and the calls of another client. */
export interface SubscriberFigures {
  readonly mibBefore: number
  readonly mibPeak: number
  readonly attacked: ClientReport
  readonly attack: SubscriberReport
}

/** Measures normal calls. */
export function measureCalls(app: Application, seconds: number): Promise<ClientReport> {
  const origin = app.server.application!
  const calls = { kind: 'calls', keys: [app.key], connections: 2, bytes: 0 } as const
  return runClient('client.ts', { ...calls, origin, seconds })
}

/** Runs one attack beside normal calls and prints its figures. */
export async function subscribeTo(
  app: Application,
  { areChanged = false, ...task }: Subscribers,
): Promise<SubscriberFigures> {
  const pid = serverPid(app)
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const mibBefore = memoryMib(pid, 'VmRSS')
  let hasEnded = false
  const changes = async (): Promise<void> => {
    while (areChanged && !hasEnded) {
      await fill(app, 1, 1)
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
  }
  const [attack, attacked] = await Promise.all([
    runSubscriber(app, task).finally(() => {
      hasEnded = true
    }),
    measureCalls(app, task.seconds - 1),
    changes(),
  ])
  const mibPeak = memoryMib(pid, 'VmHWM')
  const figures = { mibBefore, mibPeak, attacked, attack }
  process.stdout.write(`${JSON.stringify({ ...task, areChanged })} ${JSON.stringify(figures)}\n`)
  return figures
}

/** Runs a subscriber with a public key of its own, whose rate no earlier attack has used up. */
async function runSubscriber(
  app: Application,
  task: Subscribers,
  onPinging?: () => void,
): Promise<SubscriberReport> {
  const { key } = await createKey(app, { kind: 'public' })
  const of = { origin: app.server.application!, key }
  return runClient('subscriber.ts', { ...PLAIN, ...task, ...of }, onPinging)
}

export interface Pings {
  readonly connections: number
  /** Subscriptions of each connection. */
  readonly subscriptions: number
  readonly count: number
}

/** The cost of a number of pings. */
export interface PingFigures {
  /** CPU time of the server, including the time of the calls beside the pings. */
  readonly cpuMillis: number
  /** Calls of another client from the first ping on; null if none were measured. */
  readonly beside: ClientReport | null
  readonly attack: SubscriberReport
}

/** Sends pings once all subscriptions have their states, beside calls for `besideSeconds`. */
export async function pingOver(
  app: Application,
  { connections, subscriptions, count }: Pings,
  besideSeconds: number,
): Promise<PingFigures> {
  const pid = serverPid(app)
  const started = Promise.withResolvers<number>()
  const size = { function: 'slow.one', connections, subscriptions, seconds: 0, pings: count }
  const [attack, cpuBefore, beside] = await Promise.all([
    runSubscriber(app, size, () => started.resolve(cpuMillis(pid))),
    started.promise,
    started.promise.then(() => (besideSeconds > 0 ? measureCalls(app, besideSeconds) : null)),
  ])
  const figures = { cpuMillis: cpuMillis(pid) - cpuBefore, beside, attack }
  process.stdout.write(`${JSON.stringify(size)} ${JSON.stringify(figures)}\n`)
  return figures
}
