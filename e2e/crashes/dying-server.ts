/**
 * A server that kills itself at a named point of the commit path: the real engine, document store
 * and application mount, with a wrapper of the store that kills. It is a program of the tests,
 * since no shipped program may kill itself on request. Arguments: a directory, and a database URL
 * or ''.
 */
import { writeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { CommitBatch, DocumentStore } from '../../src/documents/store.ts'
import { openDocuments } from '../../src/server/documents.ts'
import { realSystem } from '../../src/system/system.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics/metrics.ts'
import { Secret } from '../../src/value/secret.ts'
import type { TestContext } from '../../testing/engine/in-process-pool.ts'
import { openTestGateway } from '../../testing/gateways.ts'
import { ENVIRONMENT_ID } from '../../testing/product-roots.ts'
import { functionManifest } from '../../testing/products.ts'
import type { Death, LastWords, Started } from './deaths.ts'

/** The last instruction; null until the first one. */
let death: Death | null = null

/** Prints the pending operations and kills the process before anything else can run. */
function die(operations: readonly string[]): void {
  const words: LastWords = { operations }
  writeSync(1, `${JSON.stringify(words)}\n`)
  process.kill(process.pid, 'SIGKILL')
}

/** Returns whether the process must kill itself at this pass of `point`. */
function isDue(point: Death['point']): boolean {
  if (death?.point !== point) return false
  death = { ...death, passes: death.passes - 1 }
  return death.passes < 0
}

function dying(store: DocumentStore): DocumentStore {
  const commit = async (batch: CommitBatch): Promise<void> => {
    const operations = batch.transactions.flatMap(({ operation }) => operation?.operationId ?? [])
    if (isDue('before the write')) die(operations)
    const written = store.commit(batch)
    if (isDue('during the write')) {
      // Before the response at the latest. The write may or may not be durable by then.
      await Promise.race([written, delay(death!.delayMillis)])
      die(operations)
    }
    await written
    if (isDue('after the write')) die(operations)
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'commit') return commit
      const value = Reflect.get(target, name, target) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

interface Entry {
  readonly writer: string
  readonly token: string
}

const handlers = {
  /** Increments the writer's counter and stores its token: a second execution changes both. */
  'entries.add': async (ctx: TestContext, { writer, token }: Entry) => {
    const found = await ctx.range({ table: 'counters', index: 'byWriter', equal: [writer] })
    const [counter] = found.documents
    const count = { $i: String(counter === undefined ? 1 : Number(counter.count.$i) + 1) }
    if (counter === undefined) await ctx.insert('counters', { writer, count })
    else await ctx.patch(counter._id.$d, { count })
    await ctx.insert('entries', { writer, token })
    return count
  },
  'entries.tally': async (ctx: TestContext, { writer }: Entry) => {
    const equal = [writer]
    const counters = await ctx.range({ table: 'counters', index: 'byWriter', equal })
    const entries = await ctx.range({ table: 'entries', index: 'byWriter', equal, limit: 1_000 })
    const tokens = entries.documents.map(({ token }: Entry) => token)
    return { counts: counters.documents.map(({ count }: { count: unknown }) => count), tokens }
  },
}
const text = { type: 'string' } as const
const index = { name: 'byWriter', fields: ['writer'], unique: false }
const common = { clients: ['confidential'], returns: { type: 'any' } } as const

const [directory = '', databaseUrl = ''] = process.argv.slice(2)
const system = realSystem()
const store = await openDocuments({
  rootPath: directory,
  environmentId: ENVIRONMENT_ID,
  mayHoldDocuments: false,
  database:
    databaseUrl === '' ? null : { url: new Secret(databaseUrl), host: '', port: 0, name: '' },
  system,
  log: createLog({ system, sink: (line) => process.stderr.write(line) }),
  metrics: new Metrics(system),
})
const gateway = await openTestGateway({
  store: dying(store),
  handlers,
  functions: [
    functionManifest('entries.add', {
      ...common,
      kind: 'mutation',
      arguments: { token: text, writer: text },
    }),
    functionManifest('entries.tally', { ...common, arguments: { writer: text } }),
  ],
  tables: [
    { name: 'counters', fields: { count: { type: 'int64' }, writer: text }, indexes: [index] },
    { name: 'entries', fields: { token: text, writer: text }, indexes: [index] },
  ],
})

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    if (new URL(request.url).pathname === '/die') {
      death = (await request.json()) as Death
      return new Response(null, { status: 204 })
    }
    const body = await request.text()
    const { url, method, headers } = request
    const answer = await gateway.application.fetch(new Request(url, { method, headers, body }))
    const { operationId } = JSON.parse(body)
    if (operationId !== undefined && isDue('before the answer')) die([operationId])
    return answer
  },
})
// The parent process may be killed too.
process.stdin.on('end', () => process.exit(1)).resume()
const started: Started = { port: server.port!, key: gateway.key }
process.stdout.write(`${JSON.stringify(started)}\n`)
