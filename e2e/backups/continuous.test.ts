/** Continuous backups of the compiled server into a directory. */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  joinIncrements,
  listEnvironments,
  listHistories,
  selectBackup,
} from '../../src/backups/format/chain.ts'
import { DirectoryTarget } from '../../src/backups/targets/directory.ts'
import { verifyArchive } from '../../testing/management/backups.ts'
import { type Application, application, mutation, string } from '../application.ts'
import { argv } from '../argv.ts'

let directory: string
let target: string
let app: Application
let identity: string

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-continuous-'))
  target = join(directory, 'target')
  mkdirSync(target)
  identity = await generateX25519Identity()
  app = await application(undefined, {
    SERVICE_BACKUP_RECIPIENTS: await identityToRecipient(identity),
    SERVICE_BACKUP_DIRECTORY: target,
  })
})
afterAll(async () => {
  await app?.installation.dispose()
  rmSync(directory, { recursive: true })
})

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const commit = async (name: string) => {
  const channel = { name: string(name), author: string('ana') }
  const created = await mutation(app, { function: 'channels.create', arguments: channel })
  expect(created.status).toBe(200)
}

async function health(): Promise<string> {
  const { components } = await app.svc(argv`health ${remote()}`)
  return components.find(({ name }: { name: string }) => name === 'backups').status
}
const becomes = (status: string) => expect.poll(health, { timeout: 60_000 }).toBe(status)
const logged = (event: string) => app.server.lines.some((line) => JSON.parse(line).event === event)

/** Returns the newest sequence that the target can restore. */
async function restorable(): Promise<number> {
  const files = new DirectoryTarget(target)
  const [environmentId] = await listEnvironments(files)
  const [historyId] = await listHistories(files, environmentId!)
  const address = { environmentId: environmentId!, historyId: historyId! }
  return joinIncrements(await selectBackup(files, address)).toSequence
}
const durable = async () =>
  Number((await app.svc(argv`metrics ${remote()}`)).gauges.durableSequence)

test('a server with a target makes a base by itself and then ships its commits', async () => {
  await becomes('healthy')
  await commit('general')
  const sequence = await durable()
  await expect.poll(restorable, { timeout: 60_000 }).toBeGreaterThanOrEqual(sequence)
  const { items } = await app.svc(argv`backup list ${remote()}`)
  expect(items).toMatchObject([{ reason: 'scheduled', location: 'target', state: 'complete' }])
  for (const figure of ['documents', 'bytes', 'damaged']) {
    expect(items[0][figure], figure).toMatch(/^\d+$/)
  }
})

test('a requested backup is in the target, and its archive is whole', async () => {
  const backup = await app.svc(argv`backup create ${remote()}`)
  expect(backup).toMatchObject({ location: 'target', state: 'complete', reason: 'requested' })
  const file = join(directory, 'backup.tar')
  await app.svc(argv`backup download ${backup.backupId} --out ${file} ${remote()}`)
  const { sequence } = await verifyArchive(readFileSync(file), identity)
  expect(String(sequence)).toBe(backup.sequence)
})

test('an unreachable target degrades the health, calls go on, and nothing is lost', async () => {
  renameSync(target, `${target}-away`)
  await commit('while away')
  await becomes('degraded')
  await expect.poll(() => logged('backup.delayed'), { timeout: 60_000 }).toBe(true)
  await commit('still away')
  renameSync(`${target}-away`, target)
  await becomes('healthy')
  await expect.poll(() => logged('backup.resumed'), { timeout: 60_000 }).toBe(true)
  const sequence = await durable()
  await expect.poll(restorable, { timeout: 60_000 }).toBeGreaterThanOrEqual(sequence)
})

test('a server that stops ships its last commits first', async () => {
  await commit('the last one')
  const sequence = await durable()
  await app.server.stop()
  await app.server.ended
  expect(await restorable()).toBeGreaterThanOrEqual(sequence)
})
