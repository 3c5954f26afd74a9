/**
 * kill -9 at each named point of the commit path, in both stores: nothing that was acknowledged is
 * lost, nothing is applied twice. After each death the next server is asked again for all that the
 * one before it was sent, acknowledged or not; at the end, for everything.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { freshDatabase } from '../../build/testing/databases/postgres.ts'
import { fields, type Json, object, operationId, send, string } from '../application.ts'
import { SeededRandom } from '../serializability/random.ts'
import { type Death, POINTS, type Started, type Struck } from './deaths.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
/** At each point. */
const KILLS = LONG ? { sqlite: 200, postgres: 200 } : { sqlite: 5, postgres: 2 }
const WRITERS = 8
/** Passes of a point before the death: none, or some batches that are through already. */
const PASSES_MAX = 6
const WRITE_MILLIS_MAX = 4
const TIMEOUT_MILLIS = LONG ? 1_800_000 : 120_000

const cases = (['sqlite', 'postgres'] as const).flatMap((store) =>
  POINTS.map((point) => ({ store, point, kills: KILLS[store] })),
)

test.each(cases)(
  '$store: $kills deaths $point lose nothing that was acknowledged and apply nothing twice',
  { timeout: TIMEOUT_MILLIS },
  async ({ store, point, kills }) => {
    const seed = Date.now() % 2 ** 31
    const random = new SeededRandom(seed, POINTS.indexOf(point))
    const directory = mkdtempSync(join(tmpdir(), 'svc-crashes-'))
    const database = store === 'postgres' ? await freshDatabase() : null
    const start = () => Server.start(directory, database?.url ?? '')
    let server: Server | null = null
    try {
      server = await start()
      const lives: Life[] = []
      for (let kill = 0; kill < kills; kill++) {
        const life = await live(server, `${kill}`, {
          point,
          passes: random.below(PASSES_MAX),
          delayMillis: random.below(WRITE_MILLIS_MAX),
        })
        lives.push(life)
        server = await start()
        await check(server, life, `seed ${seed}, death ${kill}`)
      }
      for (const life of lives) await check(server, { ...life, struck: null }, `seed ${seed}`)
      const sequences = lives.flatMap(({ sent }) => sent.map(({ sequence }) => sequence))
      expect(new Set(sequences).size, `seed ${seed}`).toBe(sequences.length)
    } finally {
      await server?.kill()
      await database?.drop()
      rmSync(directory, { recursive: true, force: true })
    }
  },
)

interface Sent {
  readonly operationId: string
  readonly writer: string
  /** From 1; what the Mutation answers, since nobody else counts for this writer. */
  readonly number: number
  /** Null until it was acknowledged. */
  sequence: string | null
}

interface Life {
  readonly point: Death['point']
  readonly sent: readonly Sent[]
  /** The operations that it died over; null where that is settled. */
  readonly struck: ReadonlySet<string> | null
}

/** Sends Mutations from some writers at once until the server is dead. */
async function live(server: Server, name: string, death: Death): Promise<Life> {
  await server.tell(death)
  const sent: Sent[] = []
  const write = async (writer: string): Promise<void> => {
    for (let number = 1; ; number++) {
      const one: Sent = { operationId: operationId(), writer, number, sequence: null }
      sent.push(one)
      const reply = await server.add(one).catch(() => null)
      if (reply === null) return
      expect(reply).toMatchObject({ status: 200, body: { result: count(number) } })
      one.sequence = reply.body.metadata.commitSequence
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, (_, i) => write(`${name}-${i}`)))
  const { operations } = await server.struck()
  return { point: death.point, sent, struck: new Set(operations) }
}

/** Asks for each Mutation again, and for what all of them left behind. */
async function check(server: Server, { point, sent, struck }: Life, where: string) {
  for (const one of sent) {
    const reply = await server.add(one)
    const about = `${where}: ${JSON.stringify({ one, reply: reply.body })}`
    expect(reply.status, about).toBe(200)
    expect(reply.body.result, about).toEqual(count(one.number))
    const { replayed, commitSequence } = reply.body.metadata
    if (one.sequence !== null) {
      expect({ replayed, commitSequence }, about).toEqual({
        replayed: true,
        commitSequence: one.sequence,
      })
    }
    if (struck?.has(one.operationId)) {
      expect(one.sequence, about).toBeNull()
      if (point !== 'during the write') expect(replayed, about).toBe(point !== 'before the write')
    }
    one.sequence = commitSequence
  }
  if (struck !== null) {
    const known = sent.filter((one) => struck.has(one.operationId))
    expect(known.length, where).toBe(struck.size)
    expect(struck.size, where).toBeGreaterThan(0)
  }
  for (const writer of new Set(sent.map((one) => one.writer))) {
    const own = sent.filter((one) => one.writer === writer)
    const tally = fields((await server.tally(writer)).body.result)
    expect(tally.counts.value, where).toEqual([count(own.length)])
    const tokens = tally.tokens.value.map(({ value }: Json) => value)
    expect(tokens, where).toEqual(own.map((one) => one.operationId))
  }
}

const count = (value: number) => ({ type: 'int64', value: String(value) })

class Server {
  readonly #child: ChildProcess
  readonly #ended: Promise<NodeJS.Signals | number | null>
  readonly #lines: AsyncIterator<string>
  #started: Started = { port: 0, key: '' }

  private constructor(child: ChildProcess) {
    this.#child = child
    this.#ended = new Promise((resolve) => {
      child.once('exit', (status, signal) => resolve(signal ?? status))
    })
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  }

  static async start(directory: string, databaseUrl: string): Promise<Server> {
    const script = join(import.meta.dirname, 'dying-server.ts')
    const child = spawn(process.execPath, [script, directory, databaseUrl], {
      // What it has no time to remove goes with the directory.
      env: { TMPDIR: directory },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const server = new Server(child)
    server.#started = (await server.#line()) as Started
    return server
  }

  async tell(death: Death): Promise<void> {
    const reply = await send(this.#origin, 'POST', '/die', { body: death })
    expect(reply.status).toBe(204)
  }

  add({ operationId, writer }: Sent) {
    const input = { token: string(operationId), writer: string(writer) }
    return this.#call('mutation', {
      operationId,
      function: 'entries.add',
      arguments: object(input),
    })
  }

  tally(writer: string) {
    const input = object({ writer: string(writer) })
    return this.#call('query', { function: 'entries.tally', arguments: input })
  }

  /** What it died over. */
  async struck(): Promise<Struck> {
    const struck = (await this.#line()) as Struck
    expect(await this.#ended).toBe('SIGKILL')
    return struck
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  get #origin(): string {
    return `http://127.0.0.1:${this.#started.port}`
  }

  #call(kind: 'query' | 'mutation', call: Readonly<Record<string, Json>>) {
    return send(this.#origin, 'POST', `/v1/${kind}`, {
      headers: { 'x-service-key': this.#started.key },
      body: { version: 1, target: 'channel:production', ...call },
    })
  }

  async #line(): Promise<unknown> {
    const line = await this.#lines.next()
    if (line.done === true) throw new Error(`the server ended with ${await this.#ended}`)
    return JSON.parse(line.value)
  }
}
