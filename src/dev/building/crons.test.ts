/** Builds of a Workspace with a file crons.ts: its manifest, and the mistakes that are reported. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { poolBench } from '../../../testing/runners.ts'
import type { RunnerPool } from '../../engine/runners/runner-pool.ts'
import { isFault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import type { CronManifest } from '../../value/manifest.ts'
import { buildWorkspace, type Describe } from './build.ts'

const FUNCTIONS = `
import { internalMutation, internalQuery, mutation, v } from 'svc'
export const send = internalMutation({
  arguments: { since: v.timestamp(), count: v.optional(v.int64()) }, handler: () => null,
})
export const sweep = internalMutation({ handler: () => null })
export const read = internalQuery({ handler: () => null })
export const own = mutation({ clients: ['public'], auth: 'user', handler: () => null })
`
const directory = mkdtempSync(join(tmpdir(), 'svc-crons-'))
let pool: RunnerPool
let describe: Describe
beforeAll(async () => {
  mkdirSync(join(directory, 'functions'))
  writeFileSync(
    join(directory, 'schema.ts'),
    `import { defineSchema } from 'svc'\nexport default defineSchema({})\n`,
  )
  writeFileSync(join(directory, 'functions/mail.ts'), FUNCTIONS)
  pool = poolBench({}).pool
  await pool.start({ sandbox: 'preferred' })
  const { ids } = realSystem()
  describe = (bundle) => pool.describe({ ...bundle, releaseId: ids.make('rel') })
})
afterAll(async () => {
  await pool.close()
  rmSync(directory, { recursive: true })
})

const HEAD = `import { cronJobs } from 'svc'\nimport { internal } from './_generated/api'\n`

/** Builds the Workspace with these Crons. */
async function cronsOf(text: string): Promise<readonly CronManifest[] | undefined> {
  writeFileSync(join(directory, 'crons.ts'), text)
  return (await buildWorkspace(directory, { describe })).description.crons
}

const declared = (crons: string): string => `${HEAD}export default cronJobs({\n${crons}\n})\n`

async function rejectionOf(text: string): Promise<string> {
  const error = await cronsOf(text).catch((thrown: unknown) => thrown)
  if (!isFault(error, 'WORKSPACE_INVALID')) throw error
  return error.detail!
}

test('Crons are part of the manifest, sorted by name, with their arguments', {
  tags: ['slow'],
}, async () => {
  const crons = await cronsOf(
    declared(`
  sweep: { every: { minutes: 10 }, function: internal.mail.sweep, overlap: 'queue' },
  digest: {
    schedule: '0 7 * * mon-fri', timeZone: 'Europe/Rome',
    function: internal.mail.send, arguments: { since: 5n },
  },`),
  )
  expect(crons).toEqual([
    {
      name: 'digest',
      schedule: '0 7 * * mon-fri',
      timeZone: 'Europe/Rome',
      everyMillis: null,
      function: 'mail.send',
      arguments: { since: { $i: '5' } },
      overlap: 'skip',
    },
    {
      name: 'sweep',
      schedule: null,
      timeZone: null,
      everyMillis: 600_000,
      function: 'mail.sweep',
      arguments: {},
      overlap: 'queue',
    },
  ])
})

test('a Workspace without Crons has none in its manifest', { tags: ['slow'] }, async () => {
  expect(await cronsOf(declared(''))).toBeUndefined()
})

test.each([
  ['schedule: "0 25 * * *", function: internal.mail.sweep', 'Write an hour from 0 to 23'],
  ['function: internal.mail.sweep', 'has neither schedule nor every'],
  [
    'schedule: "* * * * *", every: { hours: 1 }, function: internal.mail.sweep',
    'has schedule and every',
  ],
  ['every: { milliseconds: 10 }, function: internal.mail.sweep', 'an interval from 1 second'],
  [
    'schedule: "* * * * *", timeZone: "Europe/Nowhere", function: internal.mail.sweep',
    'timeZone is "Europe/Nowhere"',
  ],
  [
    'every: { hours: 1 }, timeZone: "UTC", function: internal.mail.sweep',
    'Leave timeZone out: an interval has none',
  ],
  ['every: { hours: 1 }', 'function is undefined'],
  ['every: { hours: 1 }, function: internal.mail.sweep, overlap: "wait"', 'overlap is "wait"'],
  ['every: { hours: 1 }, function: internal.mail.sweep, at: 1', 'has no option "at"'],
])('an invalid Cron is rejected with its line: %s', { tags: ['slow'] }, async (cron, message) => {
  const detail = await rejectionOf(declared(`  digest: { ${cron} },`))
  expect(detail).toMatch(/^crons\.ts:\d+/)
  expect(detail).toContain(message)
})

test.each([
  ['internal.mail.absent', '{}', 'a Mutation or an Action of this Workspace at function'],
  ['internal.mail.read', '{}', 'a Mutation or an Action of this Workspace at function'],
  ['internal.mail.own', '{}', 'a Function that needs no identity, as a Cron has none at function'],
  ['internal.mail.send', '{}', 'at arguments'],
  ['internal.mail.send', '{ since: "now" }', 'a timestamp'],
  ['internal.mail.sweep', '{ more: 1 }', 'at arguments'],
])(
  'a call that would fail is rejected: %s(%s)',
  { tags: ['slow'] },
  async (callee, input, rule) => {
    const cron = `  digest: { every: { hours: 1 }, function: ${callee}, arguments: ${input} },`
    const detail = await rejectionOf(declared(cron))
    expect(detail).toMatch(/^crons\.ts:4\n {2}digest: expected /)
    expect(detail).toContain(rule)
  },
)

test('a file that does not export Crons is rejected', async () => {
  expect(await rejectionOf('export const x = 1\n')).toContain('export default cronJobs({ ... })')
  expect(await rejectionOf('export default {}\n')).toContain('must be cronJobs({ ... })')
})
