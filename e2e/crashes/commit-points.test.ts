/**
 * kill -9 at each named point of the commit path, in both stores: no acknowledged Mutation is lost
 * and none is applied twice. After each kill the next server is sent all Mutations of the one
 * before it again, acknowledged or not; at the end it is sent all Mutations of the run.
 *
 * @module-tag slow
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { freshDatabase } from '../../testing/databases/postgres.ts'
import { fields, type Json, object, operationId, send, string } from '../application.ts'
import { SeededRandom } from '../serializability/random.ts'
import { type Death, type LastWords, POINTS, type Started } from './deaths.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
/** Number of kills at each point of each store in the long run; otherwise there is one. */
const LONG_KILLS = 200
const WRITERS = 8
/** Bound of the number of batches that pass the point before the kill. */
const PASSES_MAX = 6
const WRITE_MILLIS_MAX = 4
const TIMEOUT_MILLIS = LONG ? 1_800_000 : 600_000

const campaigns = LONG
  ? POINTS.map((point) => ({ where: point, points: Array<Death['point']>(LONG_KILLS).fill(point) }))
  : [{ where: 'at each point of a commit', points: POINTS }]
const cases = (['sqlite', 'postgres'] as const).flatMap((store) =>
  campaigns.map(({ where, points }) => ({ store, where, points, kills: points.length })),
)

test.each(cases)(
  '$store: $kills kills $where lose no acknowledged Mutation and apply none twice',
  { timeout: TIMEOUT_MILLIS },
  async ({ store, points }) => {
    const seed = Date.now() % 2 ** 31
    const random = new SeededRandom(seed, 0)
    const directory = mkdtempSync(join(tmpdir(), 'svc-crashes-'))
    const database = store === 'postgres' ? await freshDatabase() : null
    const start = () => Server.start(directory, database?.url ?? '')
    let server: Server | null = null
    try {
      server = await start()
      const lives: Life[] = []
      for (const [kill, point] of points.entries()) {
        const life = await live(server, `${kill}`, {
          point,
          passes: random.below(PASSES_MAX),
          delayMillis: random.below(WRITE_MILLIS_MAX),
        })
        lives.push(life)
        server = await start()
        await check(server, life, `seed ${seed}, death ${kill}`)
      }
      for (const life of lives) await check(server, { ...life, pending: null }, `seed ${seed}`)
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
  /** The result of the Mutation, from 1 on, since no other writer changes this counter. */
  readonly number: number
  /** Null until the Mutation is acknowledged. */
  sequence: string | null
}

/** The requests of one server until its end. */
interface Life {
  readonly point: Death['point']
  readonly sent: readonly Sent[]
  /** Operations that were pending at the kill; null once their outcome is known. */
  readonly pending: ReadonlySet<string> | null
}

/** Sends Mutations from several writers until the server has ended. */
async function live(server: Server, name: string, death: Death): Promise<Life> {
  await server.killAt(death)
  const sent: Sent[] = []
  const write = async (writer: string): Promise<void> => {
    for (let number = 1; ; number++) {
      const each: Sent = { operationId: operationId(), writer, number, sequence: null }
      sent.push(each)
      const reply = await server.add(each).catch(() => null)
      if (reply === null) return
      expect(reply).toMatchObject({ status: 200, body: { result: count(number) } })
      each.sequence = reply.body.metadata.commitSequence
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, (_, i) => write(`${name}-${i}`)))
  const { operations } = await server.lastWords()
  return { point: death.point, sent, pending: new Set(operations) }
}

/** Sends each Mutation again and checks the documents of all of them. */
async function check(server: Server, { point, sent, pending }: Life, where: string) {
  for (const each of sent) {
    const reply = await server.add(each)
    const about = `${where}: ${JSON.stringify({ ...each, reply: reply.body })}`
    expect(reply.status, about).toBe(200)
    expect(reply.body.result, about).toEqual(count(each.number))
    const { replayed, commitSequence } = reply.body.metadata
    if (each.sequence !== null) {
      expect({ replayed, commitSequence }, about).toEqual({
        replayed: true,
        commitSequence: each.sequence,
      })
    }
    if (pending?.has(each.operationId)) {
      expect(each.sequence, about).toBeNull()
      if (point !== 'during the write') expect(replayed, about).toBe(point !== 'before the write')
    }
    each.sequence = commitSequence
  }
  if (pending !== null) {
    const known = sent.filter((each) => pending.has(each.operationId))
    expect(known.length, where).toBe(pending.size)
    expect(pending.size, where).toBeGreaterThan(0)
  }
  for (const writer of new Set(sent.map((each) => each.writer))) {
    const own = sent.filter((each) => each.writer === writer)
    const tally = fields((await server.tally(writer)).body.result)
    expect(tally.counts.value, where).toEqual([count(own.length)])
    const tokens = tally.tokens.value.map(({ value }: Json) => value)
    expect(tokens, where).toEqual(own.map((each) => each.operationId))
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
      // Temporary files that it cannot remove are removed with the directory.
      env: { TMPDIR: directory },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const server = new Server(child)
    server.#started = (await server.#line()) as Started
    return server
  }

  async killAt(death: Death): Promise<void> {
    const reply = await send(this.#origin, 'POST', '/die', { body: death })
    expect(reply.status).toBe(204)
  }

  /**
   * Sends the Mutation, again while the answer is UNAVAILABLE: a database that a busy machine
   * keeps waiting makes it so, and the operation ID keeps the Mutation from taking effect twice.
   */
  async add({ operationId, writer }: Sent) {
    const input = { token: string(operationId), writer: string(writer) }
    const call = { operationId, function: 'entries.add', arguments: object(input) }
    let reply = await this.#call('mutation', call)
    while (reply.body.error?.code === 'UNAVAILABLE') reply = await this.#call('mutation', call)
    return reply
  }

  tally(writer: string) {
    const input = object({ writer: string(writer) })
    return this.#call('query', { function: 'entries.tally', arguments: input })
  }

  /** Waits for the kill and returns the last line that the server printed. */
  async lastWords(): Promise<LastWords> {
    const words = (await this.#line()) as LastWords
    expect(await this.#ended).toBe('SIGKILL')
    return words
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
