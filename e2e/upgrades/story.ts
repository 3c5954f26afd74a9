/**
 * An installation with documents, operators, keys and pending work that servers of several versions
 * serve one after the other.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { makeIdentity, recipientOf } from '../../src/backups/format/age-files.ts'
import { execute } from '../../testing/databases/cluster.ts'
import { freshDatabase } from '../../testing/databases/postgres.ts'
import { type ServerProcess, startServer } from '../../testing/servers/server-process.ts'
import {
  type Application,
  application,
  type Json,
  mutation,
  operationId,
  query,
  string,
} from '../application.ts'
import { argv } from '../argv.ts'
import { type NewServer, newServer } from '../backups/backups.ts'
import { CLIENT, type Environment, productEnvironment, type Result, run } from '../harness.ts'

/** Each run of the work adds a channel, so that a second run is seen. */
const WORK = `
import { internalMutation, mutation, v } from 'svc'
import { internal } from '../_generated/api'

export const plan = mutation({
  clients: ['confidential'],
  arguments: { name: v.string(), seconds: v.string() },
  returns: v.null(),
  handler: async (ctx, { name, seconds }) => {
    await ctx.scheduler.runAfter({ seconds: Number(seconds) }, internal.work.run, { name })
    return null
  },
})
export const run = internalMutation({
  arguments: { name: v.string() },
  returns: v.null(),
  handler: async (ctx, { name }) => {
    await ctx.db.insert('channels', { name: 'ran ' + name })
    return null
  },
})
`

const NAMES = `
import { mutation, query, v } from 'svc'

export const add = mutation({
  clients: ['confidential'],
  arguments: { name: v.string() },
  returns: v.string(),
  handler: (ctx, { name }) => ctx.db.insert('channels', { name }),
})
export const names = query({
  clients: ['confidential'],
  arguments: {},
  returns: v.array(v.string()),
  handler: async (ctx) => (await ctx.db.table('channels').scan().collect()).map((c) => c.name),
})
`

/** Commands whose output must not change from one version to another. */
const COMMANDS = [argv`operators list`, argv`clients list`, argv`releases list`, argv`config list`]
const LATER_COMMANDS = [argv`buckets list`, argv`crons list`]

export interface Story {
  readonly app: Application
  readonly environment: Environment
  /** Names that were added, and repeated Mutations, by operation ID. */
  readonly added: string[]
  readonly planned: string[]
  /** Starts this version of the server; `stop` or `kill` end it. */
  serve(executable: string): Promise<ServerProcess>
  /** Runs a mode of a server to its end. */
  mode(executable: string, args: readonly string[]): Promise<Result>
  /** Uses other settings from now on, such as those of a restored root. */
  moveTo(settings: Environment): void
  /** Runs a mode and kills it once it has printed a line, or after a time. */
  killed(executable: string, args: readonly string[], afterMillis?: number): Promise<string>
  /** Writes through the server that runs. */
  write(name: string): Promise<void>
  /** Plans work; what is due in an hour stays pending. */
  plan(name: string, seconds: number): Promise<void>
  /** Checks that nothing is lost and returns what operators see. */
  observe(): Promise<Record<string, Json>>
  /** Waits until all due work has run, and checks that each has run once. */
  runsOnce(): Promise<void>
  /** Copies the root and the databases; no server may run. */
  backup(): Promise<() => Promise<void>>
}

/** Clients before `operators list` also reject fields of Releases that they do not know. */
function earliestCommands(help: string): readonly (readonly string[])[] {
  return help.includes('  operators list ') ? COMMANDS : [argv`clients list`, argv`config list`]
}

export interface BackupPlaces {
  readonly directory: string
  /** The file with the identity that opens the backups. */
  readonly identity: string
  /** The server that a backup is restored for. */
  readonly to: NewServer
}

export interface StoryOptions {
  readonly server: string
  readonly client?: string
  readonly store: 'sqlite' | 'postgres'
  /** Number of documents, which make a migration longer. */
  readonly documents: number
  /** Settings of the servers besides those of the installation. */
  readonly settings?: Environment
  /** True for a version without scheduled work, buckets and Crons. */
  readonly isEarliest?: boolean
}

export async function story(options: StoryOptions): Promise<Story> {
  const databases: string[] = []
  let environment: Environment = { ...options.settings }
  if (options.store === 'postgres') {
    const database = await freshDatabase()
    onTestFinished(database.drop)
    databases.push(database.url)
    environment = { ...environment, SERVICE_PLATFORM_DATABASE_URL: database.url }
  }
  const { server, client = CLIENT, isEarliest = false } = options
  const app = await application(
    (workspace) => {
      writeFileSync(join(workspace, 'functions/names.ts'), NAMES)
      if (!isEarliest) writeFileSync(join(workspace, 'functions/work.ts'), WORK)
    },
    environment,
    { server, client },
  )
  onTestFinished(() => app.installation.dispose())
  const { installation } = app
  environment = { ...installation.environment, ...productEnvironment(installation), ...environment }
  databases.push(readFileSync(environment.SERVICE_IDENTITY_DATABASE_URL_FILE!, 'utf8').trim())
  const added: string[] = []
  const planned: string[] = []
  const first = { function: 'names.add', operationId: operationId() }
  const repeated = { ...first, arguments: { name: string('repeated') } }
  const result = (await mutation(app, repeated)).body
  added.push('repeated')
  const call = async (name: string, given: Record<string, Json>): Promise<void> => {
    const reply = await mutation(app, { function: name, arguments: given })
    expect(reply.body).toMatchObject({ status: 'ok' })
  }
  const names = async (): Promise<string[]> => {
    const reply = await query(app, { function: 'names.names' })
    expect(reply.body).toMatchObject({ status: 'ok' })
    return reply.body.result.value.map(({ value }: Json) => value)
  }
  const help = (await installation.svc(argv`--help`)).stdout
  const root = argv`--root ${installation.productRoot} --remote`
  const found: Story = {
    app,
    environment,
    added,
    planned,
    async serve(executable) {
      app.server = await startServer({ executable, environment, directory: installation.directory })
      const started = app.server
      onTestFinished(async () => {
        started.kill()
        await started.ended
      })
      return app.server
    },
    mode: (executable, args) => run([executable, ...args], { environment }),
    moveTo(settings) {
      const { SERVICE_PLATFORM_DATABASE_URL: _, ...rest } = environment
      environment = { ...rest, ...settings }
    },
    killed: (executable, args, afterMillis) =>
      killed([executable, ...args], environment, afterMillis),
    async write(name) {
      await call('names.add', { name: string(name) })
      added.push(name)
    },
    async plan(name, seconds) {
      if (isEarliest) return
      await call('work.plan', { name: string(name), seconds: string(String(seconds)) })
      if (seconds < 3_600) planned.push(name)
    },
    async observe() {
      const stored = await names()
      const own = stored.filter((name) => !name.startsWith('ran '))
      expect(own.toSorted()).toEqual(added.toSorted())
      // An exact repeat is answered by the record of the first call.
      expect((await mutation(app, repeated)).body).toMatchObject({
        status: 'ok',
        result: result.result,
        metadata: { replayed: true, commitSequence: result.metadata.commitSequence },
      })
      const commands = isEarliest ? earliestCommands(help) : [...COMMANDS, ...LATER_COMMANDS]
      const read = async (command: readonly string[]): Promise<readonly [string, Json]> => {
        const scope = command[0] === 'operators' ? [] : root
        return [command.join(' '), await app.svc(argv`${command} ${scope}`)]
      }
      const outputs = Object.fromEntries(await Promise.all(commands.map(read)))
      if (!isEarliest) outputs.pending = await pendingIn(app, root)
      return JSON.parse(JSON.stringify(outputs, (key, value) => (VARYING.test(key) ? null : value)))
    },
    async runsOnce() {
      const all = planned.map((name) => `ran ${name}`).toSorted()
      const ran = async () => (await names()).filter((name) => name.startsWith('ran ')).toSorted()
      await expect.poll(ran).toEqual(all)
    },
    backup: () => backup(databases, installation.productRoot),
  }
  await installation.svc(argv`config set GREETING hello ${root}`)
  for (let i = 0; i < options.documents; i++) await found.write(`first ${i}`)
  if (isEarliest) return found
  await app.svc(argv`buckets create uploads ${root}`)
  for (const seconds of [1, 2, 3]) await found.plan(`first ${seconds}`, seconds)
  await found.plan('in an hour', 3_600)
  return found
}

/** A story whose server has a target of backups, and where they are restored. */
export async function backedUpStory(
  options: StoryOptions,
): Promise<{ readonly story: Story; readonly places: BackupPlaces }> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-backups-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const secret = await makeIdentity()
  const identity = join(directory, 'backup.key')
  writeFileSync(identity, `${secret}\n`, { mode: 0o600 })
  const target = join(directory, 'target')
  mkdirSync(target)
  const settings = {
    SERVICE_BACKUP_RECIPIENTS: await recipientOf(secret),
    SERVICE_BACKUP_DIRECTORY: target,
  }
  const found = await story({ ...options, settings })
  const to = await newServer(found.app, { name: 'back', documents: options.store })
  onTestFinished(() => to.dispose())
  return { story: found, places: { directory: target, identity, to } }
}

/** Returns the pending work that is due last, which no test waits for. */
async function pendingIn({ svc }: Application, root: readonly string[]): Promise<Json> {
  const { items } = await svc(argv`scheduled list ${root}`)
  const due = items.toSorted((a: Json, b: Json) => a.dueAtMicros - b.dueAtMicros)
  const { scheduledId, function: name, state } = due.at(-1)
  return { scheduledId, name, state }
}

/** Fields that change with every use. */
const VARYING = /^(?:lastUsedAt|lastUsedAtMicros|nextAtMicros|lastAtMicros|usage|next|last)$/

/** Kills a program with SIGKILL. Returns what it had printed, errors last. */
function killed(
  [file = '', ...args]: readonly string[],
  environment: Environment,
  afterMillis?: number,
): Promise<string> {
  const child = spawn(file, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  let [printed, errors] = ['', '']
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
    if (afterMillis === undefined) child.kill('SIGKILL')
  })
  if (afterMillis !== undefined) setTimeout(() => child.kill('SIGKILL'), afterMillis)
  return new Promise((resolve) => child.once('close', () => resolve(`${printed}\n${errors}`)))
}

async function backup(databases: readonly string[], root: string): Promise<() => Promise<void>> {
  const copy = `${root}-backup`
  rmSync(copy, { recursive: true, force: true })
  cpSync(root, copy, { recursive: true })
  for (const url of databases) await replace(url, nameOf(url), `${nameOf(url)}_backup`)
  return async () => {
    rmSync(root, { recursive: true })
    cpSync(copy, root, { recursive: true })
    for (const url of databases) await replace(url, `${nameOf(url)}_backup`, nameOf(url))
  }
}

const nameOf = (url: string): string => new URL(url).pathname.slice(1)

async function replace(url: string, from: string, to: string): Promise<void> {
  const other = new URL(url)
  other.pathname = '/postgres'
  await execute(other.href, `drop database if exists ${to} with (force)`)
  await execute(other.href, `create database ${to} template ${from}`)
}
