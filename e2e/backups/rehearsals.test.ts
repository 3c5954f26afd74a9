/**
 * Rehearsals of a restore by the compiled server, which have a process of their own.
 *
 * @module-tag slow
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeIdentity, recipientOf } from '../../src/backups/format/age-files.ts'
import { type Application, application, type Json, mutation, string } from '../application.ts'
import { argv } from '../argv.ts'

const WEEK_MICROS = 7n * 86_400_000_000n
const WAIT = { timeout: 120_000 }

let directory: string
let target: string
let app: Application

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-rehearsals-'))
  target = join(directory, 'target')
  mkdirSync(target)
  const identity = await makeIdentity()
  const key = join(directory, 'rehearsal.key')
  writeFileSync(key, `${identity}\n`, { mode: 0o600 })
  app = await application(undefined, {
    SERVICE_BACKUP_RECIPIENTS: await recipientOf(identity),
    SERVICE_BACKUP_DIRECTORY: target,
    SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE: key,
  })
})
afterAll(async () => {
  await app?.installation.dispose()
  rmSync(directory, { recursive: true })
})

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const metrics = () => app.svc(argv`metrics ${remote()}`)

async function backups(): Promise<Json> {
  const { components } = await app.svc(argv`health ${remote()}`)
  return components.find(({ name }: Json) => name === 'backups')
}
const outcome = async () => (await backups()).lastRehearsal?.outcome
const logged = (name: string): Json | null =>
  app.server.lines.map((line) => JSON.parse(line)).find(({ event }) => event === name) ?? null

/** Sets the end of the last rehearsal, which the stopped server has stored, a week back. */
function passWeek(): void {
  const path = join(app.installation.productRoot, 'rehearsal.json')
  const stored = JSON.parse(readFileSync(path, 'utf8'))
  const finishedAtMicros = String(BigInt(stored.finishedAtMicros) - WEEK_MICROS)
  writeFileSync(path, `${JSON.stringify({ ...stored, finishedAtMicros })}\n`)
}

/** Flips a byte of the first segment. Returns its name. */
function damageSegment(): string {
  const files = readdirSync(target, { recursive: true }).map(String).toSorted()
  const name = files.find((each) => /\/\d{12}\.age$/.test(each))!
  const bytes = readFileSync(join(target, name))
  bytes[bytes.length - 1]! ^= 1
  writeFileSync(join(target, name), bytes)
  return basename(name, '.age')
}

async function stop(): Promise<void> {
  await app.server.stop()
  await app.server.ended
}

test('the first whole backup is rehearsed, and the health and the metrics say so', async () => {
  await expect.poll(outcome, WAIT).toBe('passed')
  const { gauges, counters } = await metrics()
  expect(Number(gauges.backupRehearsalAgeMicros)).toBeGreaterThan(0)
  expect(counters).toMatchObject({ backupRehearsals: '1', backupRehearsalFailures: '0' })
  const { stdout } = await app.installation.svc(argv`health ${remote()}`)
  expect(stdout).toMatch(/Restore rehearsed \d{4}-.*: passed/)
})

test('a server that starts a week later rehearses its newest state', async () => {
  const channel = { name: string('general'), author: string('ana') }
  const created = await mutation(app, { function: 'channels.create', arguments: channel })
  expect(created.status).toBe(200)
  await stop()
  passWeek()
  await app.start()
  await expect.poll(() => logged('backup.rehearsed'), WAIT).not.toBeNull()
  const { documents, sequence } = logged('backup.rehearsed')
  expect(documents).toBeGreaterThanOrEqual(1)
  expect(sequence).toBe(Number((await metrics()).gauges.durableSequence))
  expect(readdirSync(app.installation.productRoot)).not.toContain('rehearsal')
})

test('a rehearsal of a damaged backup degrades the health and names the segment', async () => {
  await stop()
  passWeek()
  const segment = damageSegment()
  await app.start()
  await expect.poll(outcome, WAIT).toBe('failed')
  expect((await backups()).status).toBe('degraded')
  expect((await metrics()).counters.backupRehearsalFailures).toBe('1')
  const { errorCode, detail } = logged('backup.rehearsal_failed')
  expect(errorCode).toBe('BACKUP_CORRUPT')
  expect(detail).toContain(segment)
  const { stdout } = await app.installation.svc(argv`health ${remote()}`)
  expect(stdout).toMatch(/Restore rehearsed \d{4}-.*: failed/)
})
