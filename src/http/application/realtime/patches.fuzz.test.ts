/**
 * Goal: after any changes of a live list the value of a client that takes patches equals the
 * whole state at each of its revisions, and entries that did not change stay the same objects.
 * Method: random edits of random results; the real subscriptions of the server send to the real
 * client, which reads slowly, subscribes again, and sees promotions. Its application sorts the
 * lists that it gets.
 */
import { afterAll, expect, test } from 'vitest'
import { fuzz, type Random } from '../../../../testing/fuzzing/fuzz.ts'
import { inputs } from '../../../../testing/properties.ts'
import { withList } from '../../../app-client/live/lists.ts'
import { WatchedQuery } from '../../../app-client/live/watched-query.ts'
import { decodeResult } from '../../../app-client/results.ts'
import { listPatch } from '../../../engine/subscriptions/list-patches.ts'
import { LiveQuery, type WatchRequest } from '../../../engine/subscriptions/live-query.ts'
import { SharedMemory } from '../../../engine/subscriptions/shared-memory.ts'
import { MemoryBudget } from '../../../system/memory/memory-budget.ts'
import { encodeTagged } from '../../../value/tagged.ts'
import { TypedId, type Value } from '../../../value/values.ts'
import { REALTIME_MESSAGE_BYTES_MAX } from '../../../wire/realtime.ts'
import {
  RealtimeSubscription,
  type ResolvedQuery,
  type SubscriptionPort,
} from './realtime-subscription.ts'

// biome-ignore lint/suspicious/noExplicitAny: messages and values of many shapes.
type Loose = any

/** Edits of one input; 100,000 inputs have a million. */
const EDITS = 10
const SUBSCRIBERS = 3
const memory = new MemoryBudget(2 ** 40).shareOf({ credential: null, peer: 'test' })
/** Counts of what happened in the whole run. */
const seen = { patches: 0, wholes: 0, parts: 0, resyncs: 0, promotions: 0, reconnects: 0 }

fuzz(
  'the state after patches is the whole state at its revision, and shares what did not change',
  async (random) => {
    const run = new Run(random)
    for (let i = 0; i < EDITS; i++) await run.step()
    run.finish()
  },
  inputs(500),
  100_000,
)

afterAll(() => console.info(`patches.fuzz: ${JSON.stringify(seen)}`))

test('every kind of message and of fault was among the inputs', () => {
  if (process.env.SVC_SEED !== undefined) return
  for (const [kind, count] of Object.entries(seen)) expect([kind, count > 20]).toEqual([kind, true])
})

/** A watched Query whose results the test decides. */
class FakeQuery {
  readonly releaseId: string
  readonly live: LiveQuery
  /** The results as JSON texts, by their sequences. */
  readonly texts = new Map<number, string>()
  sequence = 0

  constructor(number: number) {
    this.releaseId = `rel_${number}`
    this.live = new LiveQuery(
      { shared: '', perCaller: '' },
      { definition: {}, memory } as unknown as WatchRequest,
      {
        expectedBytes: 0,
        onEvicted: () => expect.fail('there is memory'),
        makePatch: (before, after) => listPatch(before.resultText, after.resultText),
      },
    )
  }

  commit(resultText: string): void {
    this.sequence += 1
    this.texts.set(this.sequence, resultText)
    this.live.isStale = true
    this.run()
  }

  /** Runs the Query if it is watched and its state is not the newest one. */
  run(): void {
    if (!this.live.isStale || this.live.size === 0) return
    const resultText = this.texts.get(this.sequence)!
    const readSet = { bytes: 0, count: 0 }
    const dependencies = { readSet, snapshot: this.sequence, bytesRead: 0 }
    const outcome = { resultText, snapshotSequence: this.sequence, dependencies } as never
    this.live.keep(outcome, new SharedMemory(resultText.length))
    this.live.isStale = false
    this.live.deliver(outcome, this.sequence)
  }
}

class Run {
  readonly #random: Random
  readonly #list: RandomList
  #query = new FakeQuery(1)
  readonly #peers: Peer[]
  #releases = 1

  constructor(random: Random) {
    this.#random = random
    this.#list = new RandomList(random)
    this.#query.commit(this.#list.text)
    this.#peers = Array.from({ length: SUBSCRIBERS }, () => new Peer(random, () => this.#query))
  }

  async step(): Promise<void> {
    const random = this.#random
    this.#list.edit()
    if (random.chance(8)) {
      seen.promotions += 1
      this.#query = new FakeQuery(++this.#releases)
      this.#query.commit(this.#list.text)
      await Promise.all(this.#peers.map((peer) => peer.resolve()))
    } else this.#query.commit(this.#list.text)
    for (const peer of this.#peers) peer.act()
  }

  finish(): void {
    for (const peer of this.#peers) peer.finish(this.#list.text)
  }
}

/** One subscription, from the server's side to the value of the application. */
class Peer {
  readonly #random: Random
  readonly #query: () => FakeQuery
  readonly #watched = new WatchedQuery('key', {})
  #subscription!: RealtimeSubscription
  #subscriptions = 0
  #isReading = true
  /** The list that the application has sorted in place. */
  #reversed: unknown[] | null = null
  /** The results by releases and sequences, which the server may still send. */
  readonly #queries = new Map<string, FakeQuery>()

  constructor(random: Random, query: () => FakeQuery) {
    this.#random = random
    this.#query = query
    this.#subscribe()
  }

  /** The target may name another Release. */
  resolve(): Promise<void> {
    return this.#subscription.resolve()
  }

  act(): void {
    const random = this.#random
    if (random.chance(20)) {
      seen.reconnects += 1
      this.#subscription.close()
      this.#subscribe()
    }
    if (random.chance(4)) this.#isReading = !this.#isReading
    // A reader may stop in the middle of a state.
    if (this.#isReading) this.#read(random.chance(4) ? 1 : Number.POSITIVE_INFINITY)
  }

  finish(text: string): void {
    this.#isReading = true
    this.#read(Number.POSITIVE_INFINITY)
    expect(this.#value).toEqual(decodeResult(JSON.parse(text)))
    this.#subscription.close()
  }

  /** The value as the client has made it, before the application sorted its list. */
  get #value(): unknown {
    const value = this.#watched.base?.value
    const list = listIn(value)
    return list === null || list !== this.#reversed ? value : withList(value, list.toReversed())
  }

  #subscribe(): void {
    const subscriptionId = `s${++this.#subscriptions}`
    this.#watched.begin(subscriptionId)
    this.#subscription = new RealtimeSubscription(
      this.#port(),
      { subscriptionId, target: '', function: '', arguments: new Map(), patches: true },
      { trace: null, held: memory.reserve(1)! },
    )
    void this.#subscription.resolve()
  }

  #port(): SubscriptionPort {
    return {
      version: 2,
      memory,
      resolve: async () => {
        const query = this.#query()
        this.#queries.set(query.releaseId, query)
        const { releaseId } = query
        return { release: { releaseId }, definition: {}, principal: null } as ResolvedQuery
      },
      watch: (_, { release }, observer) => {
        const query = this.#queries.get(release.releaseId)!
        query.live.add(observer, memory, query.sequence)
        query.run()
        return { currentAt: 0, isCurrent: true, close: () => query.live.remove(observer) }
      },
      isBlocked: () => !this.#isReading,
      progressed: () => undefined,
      hasMessages: () => undefined,
      failed: (_, fault) => expect.fail(`the subscription failed: ${fault}`),
      onState: () => undefined,
      onResync: () => {
        seen.resyncs += 1
      },
    }
  }

  #read(messagesMax: number): void {
    for (let count = 0; count < messagesMax; count++) {
      const text = this.#subscription.nextMessage()
      if (text === null) return
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(REALTIME_MESSAGE_BYTES_MAX)
      this.#receive(JSON.parse(text))
    }
  }

  #receive(message: Loose): void {
    if (message.type === 'resync_required') return
    const before = this.#value
    if (message.type === 'patch') {
      seen.patches += 1
      expect(this.#watched.receivePatch(message)).toBe(true)
    } else {
      seen[message.part === undefined ? 'wholes' : 'parts'] += 1
      if (!this.#watched.receive(message)) return
    }
    const query = this.#queries.get(message.releaseId)!
    const expected = decodeResult(JSON.parse(query.texts.get(Number(message.snapshotSequence))!))
    const value = this.#value
    // A comparison by the test runner takes most of the time of a million edits.
    if (textOf(value) !== textOf(expected)) expect(value).toEqual(expected)
    expectShared(before, value)
    const list = listIn(this.#watched.base!.value)
    if (list === null || list === this.#reversed || !this.#random.chance(3)) return
    this.#reversed = list.reverse()
  }
}

function listIn(value: Loose): Loose[] | null {
  if (Array.isArray(value)) return value
  return Array.isArray(value?.items) ? value.items : null
}

/** Checks that entries that are equal before and after are the same objects. */
function expectShared(before: unknown, after: unknown): void {
  const entries = listIn(after) ?? []
  const ids = entries.map((entry) => entry?._id)
  if (new Set(ids).size < ids.length) return
  const old = new Map((listIn(before) ?? []).map((entry) => [entry?._id, entry]))
  for (const entry of entries) {
    const known = old.get(entry?._id)
    if (known === entry || entry?._id === undefined) continue
    if (textOf(known) === textOf(entry)) expect(known).toBe(entry)
  }
}

const textOf = (value: unknown) =>
  JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}n` : each))

const BODIES = ['', 'hello', 'a "quote" \\', ']}{[', 'ünïcödé 😀', 'x'.repeat(200), '"_id"']
/** A body that makes the state too long for one message. */
const LONG_BODY = 'y'.repeat(70_000)

/** A result that is a list, a page, or sometimes neither, and changes at random. */
class RandomList {
  readonly #random: Random
  readonly #hasTypedIds: boolean
  readonly #isPage: boolean
  #entries: Value[] = []
  #cursor = 0
  #next = 0
  /** Replaces an entry for one state, so that no patch can be made of it. */
  #oddity: Value | null = null

  constructor(random: Random) {
    this.#random = random
    this.#hasTypedIds = !random.chance(4)
    this.#isPage = random.chance(2)
    const count = random.chance(10) ? 0 : random.below(30)
    for (let i = 0; i < count; i++) this.#insert(i)
  }

  get text(): string {
    const list = this.#oddity === null ? this.#entries : [this.#oddity, ...this.#entries]
    if (!this.#isPage) return encodeTagged(list)
    return encodeTagged(
      new Map<string, Value>([
        ['cursor', `c${this.#cursor}`],
        ['done', false],
        ['items', list],
        ['total', BigInt(this.#cursor)],
      ]),
    )
  }

  edit(): void {
    const random = this.#random
    this.#oddity = random.chance(15) ? this.#odd() : null
    for (let count = 1 + random.below(3); count > 0; count--) this.#editOnce()
    if (random.chance(12)) this.#cursor += 1
  }

  #odd(): Value {
    const first = this.#entries[0] ?? null
    return this.#random.pick<Value>([first, 'x', new Map([['body', 'x']]), new Map([['_id', 1n]])])
  }

  #editOnce(): void {
    const random = this.#random
    const entries = this.#entries
    const at = random.below(entries.length + 1)
    const kind = random.below(100)
    if (kind < 35) this.#insert(at)
    else if (kind < 50) entries.splice(at, 1)
    else if (kind < 70) {
      const entry = entries[at]
      if (entry !== undefined) entries[at] = this.#entry((entry as Map<string, Value>).get('_id')!)
    } else if (kind < 90) {
      entries.splice(random.below(entries.length + 1), 0, ...entries.splice(at, 1))
    } else if (kind < 94) entries.reverse()
    else if (kind < 98) entries.splice(at, random.below(entries.length + 1))
    else entries.length = 0
  }

  #insert(at: number): void {
    const number = this.#next++
    const id = `notes_${String(number).padStart(26, '0')}`
    const text = `${BODIES[number % BODIES.length]} ${number}`
    this.#entries.splice(at, 0, this.#entry(this.#hasTypedIds ? new TypedId(id) : text))
  }

  #entry(id: Value): Value {
    const random = this.#random
    const body = random.chance(400) ? LONG_BODY : random.pick(BODIES)
    const fields: [string, Value][] = [
      ['_id', id],
      ['body', body],
      ['tags', [random.pick(BODIES), BigInt(random.below(5))]],
      ['author', new Map([['_id', random.pick(BODIES)]])],
    ]
    if (random.chance(2)) fields.push(['First', new Map([['_id', 'inner']])])
    if (random.chance(4)) fields.push(['bytes', Uint8Array.of(random.below(3))])
    return new Map(fields)
  }
}
