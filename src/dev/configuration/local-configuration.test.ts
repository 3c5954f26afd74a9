import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { hookManifest } from '../../../testing/http/hooks.ts'
import {
  actorWith,
  functionManifest,
  openTestProduct,
  REQUEST_ID,
  type TestProduct,
} from '../../../testing/products.ts'
import type { DevelopmentEvent } from '../../client/development/events.ts'
import { readConfiguration, setConfiguration } from '../../product/configuration/configuration.ts'
import { LocalConfiguration, type UsedNames } from './local-configuration.ts'

type Reported = Extract<DevelopmentEvent, { event: 'configuration' }>

let harness: TestProduct
let workspaceDirectory = ''
let events: Reported[] = []
let configuration: LocalConfiguration
beforeEach(async () => {
  harness = await openTestProduct()
  workspaceDirectory = mkdtempSync(join(tmpdir(), 'svc-configuration-'))
  events = []
  configuration = open()
})
afterEach(async () => {
  await harness.close()
  rmSync(workspaceDirectory, { recursive: true, force: true })
})

const open = () =>
  new LocalConfiguration({
    ports: harness.product,
    author: harness.actor,
    workspaceDirectory,
    report: (event) => events.push(event as Reported),
  })
const write = (text: string) => writeFileSync(join(workspaceDirectory, '.env.local'), text)
const live = () => harness.product.configuration.current
const revision = () => readConfiguration(harness.product).revision
const names = () => readConfiguration(harness.product).entries.map(({ name }) => name)

/** A Release whose Action `pay.charge` declares secrets, and whose source mentions variables. */
function using(secrets: readonly string[], source = ''): UsedNames {
  const uses = { network: [], secrets }
  const action = functionManifest('pay.charge', { kind: 'action', uses })
  return { functions: new Map([[action.name, action]]), source }
}

/** Writes the file and applies it. Returns the new event, or null without one. */
function apply(text: string, release = using(['KEY'], 'GREETING')): Reported | null {
  const before = events.length
  write(text)
  configuration.apply(release)
  return events[before] ?? null
}

test('declared names become secrets and others variables, and values are not reported', () => {
  const event = apply('KEY=sesame\nGREETING=hello')
  expect(event).toEqual({
    event: 'configuration',
    set: [
      { name: 'KEY', kind: 'secret' },
      { name: 'GREETING', kind: 'variable' },
    ],
    removed: [],
    warnings: [],
  })
  expect(live().secret('KEY')?.reveal()).toBe('sesame')
  expect(live().variable('GREETING')).toBe('hello')
  expect(live().variable('KEY')).toBeNull()
})

test('only changes of the file make a new revision and are reported', () => {
  apply('KEY=sesame\nGREETING=hello')
  const before = revision()
  expect(apply('KEY=sesame\nGREETING=hello')).toBeNull()
  // Another instance, as after a start on the same root.
  configuration = open()
  expect(apply('GREETING="hello"\nKEY=sesame')).toBeNull()
  expect(revision()).toBe(before)
  expect(apply('KEY=other\nGREETING=hello')?.set).toEqual([{ name: 'KEY', kind: 'secret' }])
  expect(revision()).toBe(before + 1n)
  expect(live().secret('KEY')?.reveal()).toBe('other')
})

test('a name that the file no longer has is removed unless another operator has set it', () => {
  setConfiguration(harness.product, actorWith(), {
    operationId: harness.system.ids.make('opn'),
    requestId: REQUEST_ID,
    name: 'OTHERS',
    kind: 'variable',
    value: 'x',
    expectedRevision: 0n,
    changedAtMicros: harness.system.nowMicros(),
  })
  apply('KEY=sesame\nGREETING=hello')
  expect(apply('KEY=sesame')).toMatchObject({ removed: ['GREETING'], set: [] })
  expect(names()).toEqual(['KEY', 'OTHERS'])
  rmSync(join(workspaceDirectory, '.env.local'))
  configuration.apply(using([]))
  expect(names()).toEqual(['OTHERS'])
})

test('a secret without a value is reported with its Functions until it has one', () => {
  for (const text of ['', 'KEY=']) {
    events = []
    configuration = open()
    expect(apply(text)).toMatchObject({
      set: [],
      warnings: [expect.stringMatching(/secret KEY has no value: pay\.charge.*KEY=value.*\.env/)],
    })
    // A further save does not repeat the report.
    expect(apply(text)).toBeNull()
    expect(live().secret('KEY')).toBeNull()
  }
  expect(apply('KEY=sesame')).toMatchObject({ warnings: [] })
})

test('a name that no Function uses is set and reported', () => {
  const { warnings } = apply('KEY=sesame\nGREETINGS=hello', using(['KEY'], 'GREETING'))!
  expect(warnings).toEqual([expect.stringMatching(/^No Function uses GREETINGS /)])
  expect(live().variable('GREETINGS')).toBe('hello')
})

test('a declaration that is added or removed changes the kind of the name', () => {
  apply('KEY=sesame', using([], 'KEY'))
  expect(live().variable('KEY')).toBe('sesame')
  const event = apply('KEY=sesame', using(['KEY']))
  expect(event).toMatchObject({ set: [{ name: 'KEY', kind: 'secret' }], warnings: [] })
  expect(live().variable('KEY')).toBeNull()
  expect(live().secret('KEY')?.reveal()).toBe('sesame')
  apply('KEY=sesame', using([], 'KEY'))
  expect(live().secret('KEY')).toBeNull()
})

test('a value that is too long is reported, and the others are set', () => {
  const long = 'x'.repeat(32 * 1024 + 1)
  const { set, warnings } = apply(`GREETING=${long}\nKEY=sesame`)!
  expect(set).toEqual([{ name: 'KEY', kind: 'secret' }])
  expect(warnings).toEqual([expect.stringMatching(/^GREETING was not set: .*32768 bytes/)])
})

test('a file that cannot be read, or a missing Workspace, changes nothing', () => {
  apply('KEY=sesame\nGREETING=hello')
  rmSync(join(workspaceDirectory, '.env.local'))
  mkdirSync(join(workspaceDirectory, '.env.local'))
  configuration.apply(using(['KEY'], 'GREETING'))
  expect(events.at(-1)).toMatchObject({
    removed: [],
    warnings: [expect.stringContaining('was not read')],
  })
  rmSync(workspaceDirectory, { recursive: true })
  configuration.apply(using(['KEY'], 'GREETING'))
  expect(names()).toEqual(['GREETING', 'KEY'])
})

test('a name that a hook verifies with is a secret, and missing without a value', () => {
  const hook = hookManifest('stripe', { verify: { scheme: 'github', secret: 'HOOK' } })
  const release = { ...using([]), http: [hook] }
  expect(apply('HOOK=sesame', release)).toMatchObject({
    set: [{ name: 'HOOK', kind: 'secret' }],
    warnings: [],
  })
  expect(apply('', release)!.warnings).toEqual([
    expect.stringContaining('HOOK has no value: stripe of http.ts verifies with it. Write a line'),
  ])
})

test('events and the log never contain secrets', () => {
  apply('KEY=sesame-1\nlower=sesame-2\nsesame-3')
  apply('KEY=sesame-4')
  expect(JSON.stringify(events) + harness.log.text()).not.toContain('sesame')
})
