/**
 * The commands of the guides of backups, disasters and moving, run in order by the compiled
 * executables. Places of the guides are replaced by those of the test.
 *
 * @module-tag slow
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { codeBlocks } from '../../testing/markdown/markdown.ts'
import { type Application, application, mutation, query, string } from '../application.ts'
import { argv } from '../argv.ts'
import {
  CLIENT,
  type Environment,
  productEnvironment,
  type Result,
  run,
  SERVER,
} from '../harness.ts'
import { type NewServer, newServer } from './backups.ts'

const GUIDES = join(import.meta.dirname, '../../src/docs')
const BACKUP_ID = /\bbkp_[0-9A-Z]{26}\b/
const DIGEST = /with the digest ([0-9a-f]{64})/
/** Commands that reach the linked server: a user runs them in its Workspace. */
const LINKED = /^svc backup (?:create|list|show|download)\b/

let directory: string
let app: Application
/** Places of the guides, and those of the test. */
let places: Record<string, string>
let recipient: string

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-guides-'))
  const within = (name: string) => join(directory, name)
  places = {
    '/backups': within('backups'),
    'backup.key': within('backup.key'),
    'backup.tar': within('backup.tar'),
  }
  mkdirSync(within('backups'))
  app = await application()
  for (const name of ['general', 'random']) {
    const channel = { name: string(name), author: string('ana') }
    const created = await mutation(app, { function: 'channels.create', arguments: channel })
    expect(created.status).toBe(200)
  }
})
afterAll(async () => {
  await app?.installation.dispose()
  rmSync(directory, { recursive: true })
})

/** Returns the lines of a guide that run `svc` or `svc-server`, with their assignments. */
function commandsOf(guide: string): string[] {
  return codeBlocks(readFileSync(join(GUIDES, guide), 'utf8'))
    .filter(({ language }) => language === 'sh')
    .flatMap(({ text }) => text.split('\n'))
    .filter((line) => /^(?:[A-Z_]+=\S+ )*svc(?:-server)? /.test(line))
}

interface Run {
  readonly environment: Environment
  /** Values for the arguments after these options. */
  readonly options?: Readonly<Record<string, string>>
}

/** Runs a line of a guide, and expects that it succeeds. */
async function runLine(line: string, { environment, options = {} }: Run): Promise<Result> {
  const words = line.split(' ')
  const begin = words.findIndex((word) => word.startsWith('svc'))
  const assigned = Object.fromEntries(words.slice(0, begin).map((word) => word.split('=')))
  const [program, ...rest] = words.slice(begin)
  const args = rest.map((word, i) => options[rest[i - 1] ?? ''] ?? places[word] ?? word)
  const linked = LINKED.test(line) ? argv`--remote --root ${app.installation.productRoot}` : []
  const result = await run([program === 'svc' ? CLIENT : SERVER, ...args, ...linked], {
    environment: { ...environment, ...assigned },
  })
  expect([line, result.status, result.stderr]).toEqual([line, 0, result.stderr])
  return result
}

async function stop(): Promise<void> {
  await app.server.stop()
  await app.server.ended
}

/** Serves the installation with other settings. */
async function serve(settings: Environment): Promise<void> {
  await stop()
  const { installation } = app
  app.server = await installation.start({ ...productEnvironment(installation), ...settings })
}

/** Serves with a target, which has the first base then. */
async function serveWithTarget(): Promise<void> {
  const target = places['/backups']!
  await serve({ SERVICE_BACKUP_RECIPIENTS: recipient, SERVICE_BACKUP_DIRECTORY: target })
  const root = argv`--remote --root ${app.installation.productRoot}`
  const states = async () =>
    (await app.svc(argv`backup list ${root}`)).items.map(({ state }: { state: string }) => state)
  await expect.poll(states, { timeout: 120_000 }).toEqual(['complete'])
}

async function place(name: string, documents: 'sqlite' | 'postgres'): Promise<NewServer> {
  const made = await newServer(app, { name, documents })
  onTestFinished(() => made.dispose())
  return made
}

/** Runs `svc-server restore` of a guide with the places of the new server. */
async function restoreLine(line: string, to: NewServer): Promise<string> {
  const { SERVICE_PRODUCT_ROOT: _, ...environment } = to.environment
  const documents = to.documentsDatabase?.url ?? 'sqlite'
  const database = to.identityDatabase.url
  const options = { '--root': to.root, '--database': database, '--documents': documents }
  return (await runLine(line, { environment, options })).stdout
}

/** Settings of the restored server: those of the installation, with the new places. */
const settingsOf = (to: NewServer): Environment => ({
  ...app.installation.environment,
  ...productEnvironment(app.installation),
  ...to.environment,
})

/** Starts the restored server and reads the documents with a key of the lost one. */
async function channelsOf(to: NewServer): Promise<number> {
  app.server = await app.installation.start(settingsOf(to))
  const reply = await query(app, { function: 'channels.list' })
  expect(reply.status).toBe(200)
  await stop()
  return reply.body.result.value.length
}

test('the commands of the guide of backups run in order', async () => {
  const environment = app.installation.clientEnvironment
  const [keygen, ...lines] = commandsOf('backup.md').filter((line) => line.startsWith('svc '))
  recipient = (await runLine(keygen!, { environment })).stdout.trim()
  expect(recipient).toMatch(/^age1/)
  await serveWithTarget()
  const ran: string[] = []
  for (const line of lines) {
    // The settings of the server name no recipients then.
    if (line.includes('--recipient')) await serve({})
    const { stdout } = await runLine(line, { environment, options: { '--recipient': recipient } })
    if (line === 'svc backup create') {
      const sample = BACKUP_ID.exec(lines.find((each) => each.includes(' show '))!)![0]
      places[sample] = BACKUP_ID.exec(stdout)![0]
    }
    ran.push(line.split(' ').slice(0, 3).join(' '))
  }
  expect(ran).toEqual([
    'svc backup create',
    'svc backup list',
    'svc backup show',
    'svc backup download',
    'svc backup create',
    'svc sessions list',
    'svc audit --limit',
  ])
  expect(statSync(places['backup.tar']!).size).toBeGreaterThan(1_024)
})

test('the commands of the guide of disasters make a new server of the backup', async () => {
  const to = await place('disaster', 'sqlite')
  await stop()
  const digests: string[] = []
  const ran: string[] = []
  for (const line of commandsOf('disaster.md')) {
    ran.push(line)
    if (line.startsWith('svc-server restore')) {
      digests.push(DIGEST.exec(await restoreLine(line, to))![1]!)
    } else if (line === 'svc-server serve') {
      expect(await channelsOf(to)).toBe(2)
    } else {
      const { clientEnvironment } = app.installation
      const environment = line.startsWith('svc ') ? clientEnvironment : settingsOf(to)
      const { stdout } = await runLine(line, { environment })
      if (line.endsWith('--restore')) digests.push(DIGEST.exec(stdout)![1]!)
    }
  }
  expect(ran.map((line) => /svc(?:-server)? .*?(?= [/-]|$)/.exec(line)![0])).toEqual([
    'svc backup verify',
    'svc backup verify',
    'svc-server restore',
    'svc-server recover-owner',
    'svc-server check',
    'svc-server serve',
  ])
  expect(digests).toEqual([digests[0], digests[0]])
})

test('the commands of the guide of moving restore to both stores of documents', async () => {
  const digests: string[] = []
  const stores: string[] = []
  for (const line of commandsOf('moving.md')) {
    const documents = line.endsWith('--documents sqlite') ? 'sqlite' : 'postgres'
    const to = await place(`moved-${documents}`, documents)
    digests.push(DIGEST.exec(await restoreLine(line, to))![1]!)
    stores.push(documents)
    expect(await channelsOf(to)).toBe(2)
  }
  expect(stores).toEqual(['postgres', 'sqlite'])
  expect(digests).toEqual([digests[0], digests[0]])
})
