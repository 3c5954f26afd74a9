/** The checker finds each violation in a history that has it, and none in a sound one. */
import { describe, expect, test } from 'vitest'
import type { Json } from '../application.ts'
import { SeededRandom } from '../serializability/random.ts'
import {
  type Asked,
  type Attempt,
  type AuditRecord,
  type Change,
  type Evidence,
  RESOURCES,
  type Reply,
  type Resource,
  type Seen,
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

type Changing<T> = { -readonly [K in keyof T]: Changing<T[K]> }

const FITTING: Compatibility = { fits: () => true, coexist: () => true }
const RELEASES = ['rel_a', 'rel_b', 'rel_c']

/** A server that applies one change after the other, and the clock of its clients. */
class Story {
  readonly asked: Changing<Asked>[] = []
  readonly seen: Changing<Seen>[] = []
  readonly audit: Record<Resource, Changing<AuditRecord>[]>
  readonly history: Json[] = []
  readonly #initial: Evidence['initial']
  readonly #states: Record<Resource, State>
  readonly #revisions: Record<Resource, number>
  readonly #operations = new Map<string, Json>()
  #moment = 0
  #requests = 0

  constructor(compatibility: Compatibility = FITTING) {
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
      asked: this.asked,
      seen: this.seen,
      audit: this.audit,
      configurationHistory: this.history,
    }
  }

  state(resource: Resource): State {
    return this.#states[resource]
  }

  /** Sends it once; `lost` says what became of a request that nobody answered. */
  ask(change: Change, lost?: 'before' | 'after'): Changing<Asked> {
    const asked: Changing<Asked> = { change, attempts: [], lookups: [] } as Changing<Asked>
    this.asked.push(asked)
    this.again(asked, lost)
    return asked
  }

  again(asked: Changing<Asked>, lost?: 'before' | 'after'): void {
    const sent = this.#moment++
    const reply = lost === 'before' ? null : this.#answer(asked.change as Change)
    const attempt = { sent, answered: this.#moment++, reply: lost === undefined ? reply : null }
    asked.attempts.push(attempt as Changing<Attempt>)
  }

  look(asked: Changing<Asked>): void {
    const known = this.#operations.get(asked.change.operationId ?? '')?.operation
    const text = JSON.stringify({ ...known, replayed: true })
    const reply = { status: known === undefined ? 404 : 200, requestId: this.#request(), text }
    asked.lookups.push({ sent: this.#moment++, answered: this.#moment++, reply })
  }

  read(resource: Resource): void {
    this.seen.push({
      resource,
      sent: this.#moment++,
      answered: this.#moment++,
      revision: this.#revisions[resource],
      view: this.#states[resource].view,
    })
  }

  #request(): string {
    return `req_${this.#requests++}`
  }

  #answer(change: Change): Reply {
    const requestId = this.#request()
    const known = change.operationId === null ? undefined : this.#operations.get(change.operationId)
    if (known !== undefined) {
      const operation = { ...known.operation, replayed: true }
      return { status: 200, requestId, text: JSON.stringify({ ...known, operation }) }
    }
    const { resource } = change
    const code = this.#states[resource].refusal(change)
    if (code !== null) {
      return { status: 409, requestId, text: JSON.stringify({ error: { code, requestId } }) }
    }
    const state = this.#states[resource].after(change)
    this.#states[resource] = state
    const revision = String(++this.#revisions[resource])
    this.audit[resource].push({ ...state.audit!, requestId })
    if (resource === 'configuration') this.history.push(historyEntry(state.answer))
    const operation = { operationId: change.operationId, replayed: false, revision }
    const body = bodyFor(resource, state, { revision, operation })
    if (change.operationId !== null) this.#operations.set(change.operationId, body)
    return { status: 200, requestId, text: JSON.stringify(body) }
  }
}

function bodyFor(
  resource: Resource,
  { answer }: State,
  { revision, operation }: { readonly revision: string; readonly operation: Json },
): Json {
  if (resource === 'configuration') return { change: { ...answer, operatorId: 'opr' }, operation }
  if (resource === 'serving_policy' || resource === 'environment') {
    return { desired: { revision, ...answer }, operation }
  }
  return { ...answer, revision }
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
const replace = (reply: Changing<Reply> | null, from: string, to: string): void => {
  expect(reply!.text).toContain(from)
  reply!.text = reply!.text.replace(from, to)
}

describe('a sound history', () => {
  test.each(Array.from({ length: 20 }, (_, seed) => seed))('of the seed %s', (seed) => {
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
      const asked = story.ask(draw(), lost)
      if (asked.change.operationId === null) continue
      story.look(asked)
      story.again(asked)
      if (random.chance(0.3)) story.again(random.pick(story.asked.slice(-1)))
      story.look(asked)
      story.read(random.pick(RESOURCES))
    }
    expect(check(story.evidence)).toEqual([])
  })

  test('explains a promotion that nobody heard of again', () => {
    const story = new Story()
    story.ask(promote('rel_a', 'rel_b'), 'after')
    story.ask(promote('rel_a', 'rel_c'), 'before')
    story.ask(promote('rel_b', 'rel_c'))
    story.read('channel:production')
    expect(kinds(story)).toEqual([])
  })
})

describe('a violation is found:', () => {
  test('a lost update', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    const late = story.ask(set(1, 'A'))
    ;(late.change as { expected: string }).expected = '0'
    expect(kinds(story)).toEqual(['lost update'])
  })

  test('a promotion over a Release that it did not expect', () => {
    const story = new Story()
    const asked = story.ask(promote('rel_a', 'rel_b'))
    ;(asked.change as { expected: string }).expected = 'rel_c'
    expect(kinds(story)).toEqual(['lost update'])
  })

  test('a revision that is used twice', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    const second = story.ask(set(1, 'B'))
    for (const revision of ['"revision":"2"', '"revision":"2"']) {
      replace(second.attempts[0]!.reply, revision, '"revision":"1"')
    }
    expect(kinds(story)).toContain('revision used twice')
  })

  test('a repeat with another answer', () => {
    const story = new Story()
    const asked = story.ask(policy(0, 'rel_a'))
    story.again(asked)
    replace(asked.attempts[1]!.reply, 'rel_a', 'rel_b')
    expect(kinds(story)).toEqual(['answered differently'])
  })

  test('a repeat whose bytes differ', () => {
    const story = new Story()
    const asked = story.ask(policy(0, 'rel_a'))
    story.again(asked)
    replace(asked.attempts[1]!.reply, '"weight":10000', '"weight": 10000')
    expect(kinds(story)).toEqual(['answered differently'])
  })

  test('a repeat that claims to be the first', () => {
    const story = new Story()
    const asked = story.ask(archive(0))
    story.again(asked)
    replace(asked.attempts[1]!.reply, '"replayed":true', '"replayed":false')
    expect(kinds(story)).toEqual(['answered differently'])
  })

  test('a first answer that claims to be a repeat', () => {
    const story = new Story()
    replace(story.ask(archive(0)).attempts[0]!.reply, '"replayed":false', '"replayed":true')
    expect(kinds(story)).toEqual(['against the clock'])
  })

  test('an operation that is applied twice', () => {
    const story = new Story()
    const asked = story.ask(policy(0, 'rel_a'), 'after')
    // The record of the first time is lost, and so the repeat is a change of its own.
    story.ask(policy(1, 'rel_a'))
    const twice = story.asked.pop()!
    asked.attempts.push(...twice.attempts)
    expect(kinds(story)).toContain('revision of nobody')
  })

  test('a promotion that is applied twice', () => {
    const story = new Story()
    story.ask(promote('rel_a', 'rel_b'))
    story.ask(promote('rel_b', 'rel_a'))
    story.ask(promote('rel_a', 'rel_b'))
    story.asked.pop()
    expect(kinds(story)).toEqual(['revision of nobody'])
  })

  test('an operation that is known although it was refused', () => {
    const story = new Story()
    const known = story.ask(policy(0, 'rel_a'))
    story.look(known)
    const refused = story.ask(policy(0, 'rel_b'))
    refused.lookups.push(...known.lookups)
    expect(kinds(story)).toEqual(['answered differently'])
  })

  test('an operation that was applied and is not known', () => {
    const story = new Story()
    const asked = story.ask(policy(0, 'rel_a'))
    story.look(asked)
    asked.lookups[0]!.reply!.status = 404
    expect(kinds(story)).toEqual(['against the clock'])
  })

  test('an operation that nobody settles', () => {
    const story = new Story()
    story.ask(policy(0, 'rel_a'), 'before')
    expect(kinds(story)).toEqual(['never answered'])
  })

  test('a refusal of what was current all the time', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    const refused = story.ask(set(0, 'B'))
    ;(refused.change as { expected: string }).expected = '1'
    expect(kinds(story)).toEqual(['refused without cause'])
  })

  test('an answer to a change that comes before one which was answered earlier', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    story.ask(set(1, 'B'))
    const [one, two] = story.asked as [Changing<Asked>, Changing<Asked>]
    ;[one.attempts[0]!.sent, two.attempts[0]!.sent] = [two.attempts[0]!.sent, 0]
    ;[one.attempts[0]!.answered, two.attempts[0]!.answered] = [two.attempts[0]!.answered, 1]
    expect(kinds(story)).toEqual(['against the clock'])
  })

  test('a read of what was replaced before it was sent', () => {
    const story = new Story()
    story.ask(set(0, 'A'))
    story.read('configuration')
    story.ask(set(1, 'A'))
    story.seen[0]!.sent = 100
    story.seen[0]!.answered = 101
    expect(kinds(story)).toEqual(['wrong read'])
  })

  test('a read of another value', () => {
    const story = new Story()
    story.ask(set(0, 'A', 'right'))
    story.read('configuration')
    const [entry] = story.state('configuration').view
    Object.assign(story.seen[0]!, { view: [{ ...entry, value: 'wrong' }] })
    expect(kinds(story)).toEqual(['wrong read'])
  })

  test('an audit record that is missing, of another request, or one too many', () => {
    const tell = (bend: (records: Changing<AuditRecord>[]) => void) => {
      const story = new Story()
      for (let i = 0; i < 3; i++) story.ask(archiveOrRestore(i))
      bend(story.audit.environment)
      return kinds(story)
    }
    expect(tell((records) => records.splice(1, 1))).toEqual(['wrong audit'])
    expect(tell((records) => records.pop())).toEqual(['wrong audit'])
    expect(tell((records) => records.push(records[1]!))).toEqual(['revision of nobody'])
    expect(
      tell((records) => {
        records[1]!.requestId = 'req_other'
      }),
    ).toEqual(['wrong audit'])
  })

  test('a configuration history with a hole', () => {
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
