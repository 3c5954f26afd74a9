/** Tests that the checker finds each violation in a history that has it, and none elsewhere. */
import { describe, expect, test } from 'vitest'
import type { Json } from '../application.ts'
import { SeededRandom } from '../serializability/random.ts'
import {
  type Attempt,
  type AuditRecord,
  type Change,
  type Evidence,
  type Observation,
  RESOURCES,
  type Reply,
  type Resource,
  type TrackedChange,
} from './changes.ts'
import { check } from './checker.ts'
import { historyEntry } from './outcomes.ts'
import {
  ChannelState,
  type Compatibility,
  ConfigurationState,
  EnvironmentState,
  PolicyState,
  type State,
} from './states.ts'

type Mutable<T> = { -readonly [K in keyof T]: Mutable<T[K]> }

type Tracked = Mutable<TrackedChange>
const ALL_COMPATIBLE: Compatibility = { fits: () => true, coexist: () => true }
const RELEASES = ['rel_a', 'rel_b', 'rel_c']

/** A server that applies changes one after the other, with the clock of its clients. */
class Story {
  readonly tracked: Tracked[] = []
  readonly observed: Mutable<Observation>[] = []
  readonly audit: Record<Resource, Mutable<AuditRecord>[]>
  readonly history: Json[] = []
  readonly #initial: Evidence['initial']
  readonly #states: Record<Resource, State>
  readonly #revisions: Record<Resource, number>
  readonly #operations = new Map<string, Json>()
  #moment = 0
  #requests = 0

  constructor(compatibility: Compatibility = ALL_COMPATIBLE) {
    const initial = {
      'channel:production': new ChannelState('production', compatibility, ['rel_a']),
      'channel:staging': new ChannelState('staging', compatibility, []),
      serving_policy: new PolicyState('env', compatibility),
      configuration: new ConfigurationState(),
      environment: new EnvironmentState('env', { lifecycle: 'active', configuration: {} }),
    }
    const of = <T>(make: (resource: Resource) => T) =>
      Object.fromEntries(RESOURCES.map((resource) => [resource, make(resource)])) as Record<
        Resource,
        T
      >
    const first = (resource: Resource) => (resource === 'channel:production' ? 1 : 0)
    this.#initial = of((resource) => ({ revision: first(resource), state: initial[resource] }))
    this.#states = { ...initial }
    this.#revisions = of(first)
    this.audit = of(() => [])
  }

  get evidence(): Evidence {
    return {
      initial: this.#initial,
      tracked: this.tracked,
      observed: this.observed,
      audit: this.audit,
      configurationHistory: this.history,
    }
  }

  state(resource: Resource): State {
    return this.#states[resource]
  }

  /** Sends a change once. `lost` drops the reply, with or without an effect of the request. */
  ask(change: Change, lost?: 'before' | 'after'): Tracked {
    const tracked = { change, attempts: [], lookups: [] } as Tracked
    this.tracked.push(tracked)
    this.again(tracked, lost)
    return tracked
  }

  again(tracked: Tracked, lost?: 'before' | 'after'): void {
    const sent = this.#moment++
    const reply = lost === 'before' ? null : this.#replyTo(tracked.change as Change)
    const attempt = { sent, received: this.#moment++, reply: lost === undefined ? reply : null }
    tracked.attempts.push(attempt as Mutable<Attempt>)
  }

  look(tracked: Tracked): void {
    const known = this.#operations.get(tracked.change.operationId ?? '')?.operation
    const text = JSON.stringify({ ...known, replayed: true })
    const reply = { status: known === undefined ? 404 : 200, requestId: this.#request(), text }
    tracked.lookups.push({ sent: this.#moment++, received: this.#moment++, reply })
  }

  read(resource: Resource): void {
    this.observed.push({
      resource,
      sent: this.#moment++,
      received: this.#moment++,
      revision: this.#revisions[resource],
      view: this.#states[resource].view,
    })
  }

  #request(): string {
    return `req_${this.#requests++}`
  }

  #replyTo(change: Change): Reply {
    const requestId = this.#request()
    const known = change.operationId === null ? undefined : this.#operations.get(change.operationId)
    if (known !== undefined) {
      const operation = { ...known.operation, replayed: true }
      return { status: 200, requestId, text: JSON.stringify({ ...known, operation }) }
    }
    const { resource } = change
    const code = this.#states[resource].rejection(change)
    if (code !== null) {
      return { status: 409, requestId, text: JSON.stringify({ error: { code, requestId } }) }
    }
    const state = this.#states[resource].after(change)
    this.#states[resource] = state
    const revision = String(++this.#revisions[resource])
    this.audit[resource].push({ ...state.audit!, requestId })
    if (resource === 'configuration') this.history.push(historyEntry(state.result))
    const operation = { operationId: change.operationId, replayed: false, revision }
    const body = bodyFor(resource, state, { revision, operation })
    if (change.operationId !== null) this.#operations.set(change.operationId, body)
    return { status: 200, requestId, text: JSON.stringify(body) }
  }
}

function bodyFor(
  resource: Resource,
  { result }: State,
  { revision, operation }: { readonly revision: string; readonly operation: Json },
): Json {
  if (resource === 'configuration') return { change: { ...result, operatorId: 'opr' }, operation }
  if (resource === 'serving_policy' || resource === 'environment') {
    return { desired: { revision, ...result }, operation }
  }
  return { ...result, revision }
}

let operations = 0
const common = () => ({ operationId: `opn_${operations++}`, changedAtMicros: '1' })

const promote = (expected: string, releaseId: string): Change => ({
  operationId: null,
  resource: 'channel:production',
  verb: 'promote',
  expected,
  releaseId,
})
const set = (expected: number, name: string, value = 'value'): Change => ({
  ...common(),
  resource: 'configuration',
  verb: 'set',
  expected: String(expected),
  name,
  kind: 'variable',
  value,
})
const policy = (expected: number, releaseId: string): Change => ({
  ...common(),
  resource: 'serving_policy',
  verb: 'set',
  expected: String(expected),
  mode: 'atomic',
  releases: [{ releaseId, weight: 10_000 }],
})
const archive = (expected: number): Change => ({
  ...common(),
  resource: 'environment',
  verb: 'archive',
  expected: String(expected),
})

const kinds = ({ evidence }: Story) => [...new Set(check(evidence).map(({ kind }) => kind))]
const replace = (reply: Mutable<Reply> | null, from: string, to: string): void => {
  expect(reply!.text).toContain(from)
  reply!.text = reply!.text.replace(from, to)
}

const SEEDS = Array.from({ length: 20 }, (_, seed) => seed)
describe('valid histories', () => {
  test.each(SEEDS)('a valid history of seed %s has no finding', (seed) => {
    const random = new SeededRandom(seed, 0)
    const story = new Story()
    const draw = (): Change => {
      const near = (resource: Resource) =>
        Math.max(0, Number(story.state(resource).stamp) - random.below(2))
      const release = random.pick(RELEASES)
      switch (random.below(4)) {
        case 0:
          return promote(random.pick(RELEASES.filter((other) => other !== release)), release)
        case 1:
          return set(near('configuration'), random.pick(['A', 'B']))
        case 2:
          return policy(near('serving_policy'), release)
        default:
          return archive(near('environment'))
      }
    }
    for (let i = 0; i < 300; i++) {
      const lost = random.pick([undefined, undefined, 'before', 'after'] as const)
      const tracked = story.ask(draw(), lost)
      if (tracked.change.operationId === null) continue
      story.look(tracked)
      story.again(tracked)
      if (random.chance(0.3)) story.again(random.pick(story.tracked.slice(-1)))
      story.look(tracked)
      story.read(random.pick(RESOURCES))
    }
    expect(check(story.evidence)).toEqual([])
  })

  test('a valid history can contain a promotion whose outcome is unknown', () => {
    const story = new Story()
    story.ask(promote('rel_a', 'rel_b'), 'after')
    story.ask(promote('rel_a', 'rel_c'), 'before')
    story.ask(promote('rel_b', 'rel_c'))
    story.read('channel:production')
    expect(kinds(story)).toEqual([])
  })
})

describe('findings', () => {
  test('a lost update is reported', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    const late = story.ask(set(1, 'A'))
    ;(late.change as { expected: string }).expected = '0'
    expect(kinds(story)).toEqual(['lost update'])
  })

  test('a promotion over a Release that it did not expect is reported', () => {
    const story = new Story()
    const tracked = story.ask(promote('rel_a', 'rel_b'))
    ;(tracked.change as { expected: string }).expected = 'rel_c'
    expect(kinds(story)).toEqual(['lost update'])
  })

  test('a revision that is used twice is reported', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    const second = story.ask(set(1, 'B'))
    for (const revision of ['"revision":"2"', '"revision":"2"']) {
      replace(second.attempts[0]!.reply, revision, '"revision":"1"')
    }
    expect(kinds(story)).toContain('revision used twice')
  })

  test('a replay with another result is reported', () => {
    const story = new Story()
    const tracked = story.ask(policy(0, 'rel_a'))
    story.again(tracked)
    replace(tracked.attempts[1]!.reply, 'rel_a', 'rel_b')
    expect(kinds(story)).toEqual(['inconsistent replay'])
  })

  test('a replay whose bytes differ is reported', () => {
    const story = new Story()
    const tracked = story.ask(policy(0, 'rel_a'))
    story.again(tracked)
    replace(tracked.attempts[1]!.reply, '"weight":10000', '"weight": 10000')
    expect(kinds(story)).toEqual(['inconsistent replay'])
  })

  test('a replay that claims to be the first execution is reported', () => {
    const story = new Story()
    const tracked = story.ask(archive(0))
    story.again(tracked)
    replace(tracked.attempts[1]!.reply, '"replayed":true', '"replayed":false')
    expect(kinds(story)).toEqual(['inconsistent replay'])
  })

  test('a first execution that claims to be a replay is reported', () => {
    const story = new Story()
    replace(story.ask(archive(0)).attempts[0]!.reply, '"replayed":false', '"replayed":true')
    expect(kinds(story)).toEqual(['real-time violation'])
  })

  test('an operation that is applied twice is reported', () => {
    const story = new Story()
    const tracked = story.ask(policy(0, 'rel_a'), 'after')
    // The record of the first execution is lost, so the repeat is another change.
    story.ask(policy(1, 'rel_a'))
    const twice = story.tracked.pop()!
    tracked.attempts.push(...twice.attempts)
    expect(kinds(story)).toContain('revision without a change')
  })

  test('a promotion that is applied twice is reported', () => {
    const story = new Story()
    story.ask(promote('rel_a', 'rel_b'))
    story.ask(promote('rel_b', 'rel_a'))
    story.ask(promote('rel_a', 'rel_b'))
    story.tracked.pop()
    expect(kinds(story)).toEqual(['revision without a change'])
  })

  test('a rejected operation that has a record is reported', () => {
    const story = new Story()
    const known = story.ask(policy(0, 'rel_a'))
    story.look(known)
    const rejected = story.ask(policy(0, 'rel_b'))
    rejected.lookups.push(...known.lookups)
    expect(kinds(story)).toEqual(['inconsistent replay'])
  })

  test('an applied operation without a record is reported', () => {
    const story = new Story()
    const tracked = story.ask(policy(0, 'rel_a'))
    story.look(tracked)
    tracked.lookups[0]!.reply!.status = 404
    expect(kinds(story)).toEqual(['real-time violation'])
  })

  test('an operation whose outcome stays unknown is reported', () => {
    const story = new Story()
    story.ask(policy(0, 'rel_a'), 'before')
    expect(kinds(story)).toEqual(['unknown outcome'])
  })

  test('a conflict for an expected revision that was current all the time is reported', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    const rejected = story.ask(set(0, 'B'))
    ;(rejected.change as { expected: string }).expected = '1'
    expect(kinds(story)).toEqual(['unjustified rejection'])
  })

  test('a change that is applied before one that had been acknowledged earlier is reported', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    story.ask(set(1, 'B'))
    const [first, second] = story.tracked as [Tracked, Tracked]
    ;[first.attempts[0]!.sent, second.attempts[0]!.sent] = [second.attempts[0]!.sent, 0]
    ;[first.attempts[0]!.received, second.attempts[0]!.received] = [second.attempts[0]!.received, 1]
    expect(kinds(story)).toEqual(['real-time violation'])
  })

  test('a read of a state that was replaced before the read was sent is reported', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    story.read('configuration')
    story.ask(set(1, 'A'))
    story.observed[0]!.sent = 100
    story.observed[0]!.received = 101
    expect(kinds(story)).toEqual(['wrong read'])
  })

  test('a read of another value is reported', () => {
    const story = new Story()
    story.ask(set(0, 'A', 'right'))
    story.read('configuration')
    const [entry] = story.state('configuration').view
    Object.assign(story.observed[0]!, { view: [{ ...entry, value: 'wrong' }] })
    expect(kinds(story)).toEqual(['wrong read'])
  })

  test('a missing, foreign or duplicated audit record is reported', () => {
    const findings = (change: (records: Mutable<AuditRecord>[]) => void) => {
      const story = new Story()
      for (let i = 0; i < 3; i++) story.ask(archiveOrRestore(i))
      change(story.audit.environment)
      return kinds(story)
    }
    expect(findings((records) => records.splice(1, 1))).toEqual(['wrong audit'])
    expect(findings((records) => records.pop())).toEqual(['wrong audit'])
    expect(findings((records) => records.push(records[1]!))).toEqual(['revision without a change'])
    expect(
      findings((records) => {
        records[1]!.requestId = 'req_other'
      }),
    ).toEqual(['wrong audit'])
  })

  test('a configuration history with a gap is reported', () => {
    const story = new Story()
    for (let i = 0; i < 3; i++) story.ask(set(i, 'A'))
    story.history.splice(1, 1)
    expect(kinds(story)).toEqual(['wrong history'])
  })
})

const archiveOrRestore = (expected: number): Change => ({
  ...common(),
  resource: 'environment',
  verb: expected % 2 === 0 ? 'archive' : 'restore',
  expected: String(expected),
})
