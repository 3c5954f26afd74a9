/**
 * Applications with the package `svc` against the compiled server: in Node 20, which loads `ws`,
 * and in Bun, and in a page with React. The server restarts and is killed in between; no Mutation
 * is lost or applied twice.
 *
 * @module-tag slow
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { transformSync } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium, chromiumInstalled } from '../../testing/browsers/chromium.ts'
import { type JwtIssuer, jwtIssuer, writeAuthFile } from '../../testing/providers/jwt-issuers.ts'
import { UserTokens } from '../../testing/providers/user-tokens.ts'
import { NODE_PATH } from '../../testing/servers/node-path.ts'
import {
  type Application,
  application,
  createKey,
  mutation,
  query,
  string,
} from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT, run } from '../harness.ts'
import { FUNCTIONS } from './functions.ts'
import { type PageServer, pageServer, type Shown } from './page.ts'
import { PROGRAM } from './program.ts'

/** Restarts are part of `npm run test:long`. */
const isLong = process.env.SVC_TEST_LONG === '1'
const ROOT = join(import.meta.dirname, '../..')
const BUN = join(ROOT, 'node_modules/bun/bin/bun.exe')

let app: Application
let users: JwtIssuer
let tokens: UserTokens
let page: PageServer
let key: string
let directory: string

beforeAll(async () => {
  users = await jwtIssuer()
  tokens = new UserTokens(users)
  page = await pageServer(tokens)
  const settings = { SERVICE_PRODUCT_ALLOWED_ORIGINS: page.origin }
  app = await application(
    (workspace) => {
      writeFileSync(join(workspace, 'functions/lab.ts'), FUNCTIONS)
      writeAuthFile(join(workspace, '../product/auth.json'), users)
    },
    { ...settings, SERVICE_PRODUCT_AUTH_CONFIG: 'auth.json' },
  )
  const scopes = 'action,mutation,query,realtime'
  ;({ key } = await createKey(app, { kind: 'public', scopes }))
  directory = join(app.installation.directory, 'web')
  const { status, stderr } = await run(
    argv`${CLIENT} codegen --workspace ${app.installation.workspace} --client ${directory}`,
    { environment: app.installation.clientEnvironment },
  )
  if (status !== 0) throw new Error(stderr)
  mkdirSync(join(directory, 'node_modules'))
  symlinkSync(join(directory, 'svc'), join(directory, 'node_modules/svc'))
  symlinkSync(join(ROOT, 'node_modules/ws'), join(directory, 'node_modules/ws'))
  const api = readFileSync(join(directory, 'api.ts'), 'utf8')
  writeFileSync(join(directory, 'api.js'), transformSync(api, { loader: 'ts' }).code)
  writeFileSync(join(directory, 'program.mjs'), PROGRAM)
})
afterAll(async () => {
  page?.close()
  await app?.installation.dispose()
  await users?.close()
})

// biome-ignore lint/suspicious/noExplicitAny: records of many shapes.
type Printed = any

class Program {
  readonly printed: Printed[] = []
  readonly #child: ChildProcess
  #errors = ''

  constructor(command: readonly string[], channel: string, tokensUrl = '') {
    const [file = '', ...args] = command
    const given = [app.server.application!, key, channel, tokensUrl]
    this.#child = spawn(file, [...args, 'program.mjs', ...given], {
      cwd: directory,
      env: { PATH: NODE_PATH },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let rest = ''
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) this.printed.push(JSON.parse(line))
    })
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text
    })
  }

  do(command: string, more: object = {}): void {
    this.#child.stdin!.write(`${JSON.stringify({ do: command, ...more })}\n`)
  }

  async until(fits: (record: Printed) => boolean): Promise<Printed> {
    const seen = () => JSON.stringify(this.printed.slice(-20)) + this.#errors
    await expect.poll(() => (this.printed.some(fits) ? '' : seen())).toBe('')
    return this.printed.find(fits)
  }

  /** The last list of messages that the watch has shown. */
  get bodies(): string[] {
    return this.printed.findLast((record) => record.bodies !== undefined)?.bodies ?? []
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

async function newChannel(name: string): Promise<string> {
  const created = await mutation(app, {
    function: 'channels.create',
    arguments: { name: string(name), author: string('test') },
  })
  return created.body.result.value
}

describe.each([
  ['Node 20 with ws', ['node']],
  ['Bun', [BUN]],
])('applications in %s', (name, command) => {
  test('values are plain, a watch is live, and errors have their codes', async () => {
    const channel = await newChannel(`values ${name}`)
    const program = new Program(command, channel)
    try {
      await program.until(({ bodies }) => bodies?.length === 1)
      program.do('send', { body: 'one' })
      await program.until(({ sent }) => /^messages_/.test(sent))
      await expect.poll(() => program.bodies.at(-1)).toBe('one')
      const shown = program.printed.filter(({ bodies }) => bodies !== undefined)
      expect(shown.some(({ bodies }) => bodies.at(-1) === 'one (sending)')).toBe(true)
      program.do('wrong')
      await program.until(({ error }) => error === 'ARGUMENTS_INVALID')
      program.do('declared')
      await program.until(({ error }) => error === 'APP_CHANNEL_NOT_FOUND')
      program.do('query')
      const { names, created } = await program.until((record) => record.names !== undefined)
      expect(names).toContain(`values ${name}`)
      expect(created).toBe('bigint')
    } finally {
      program.kill()
    }
  })

  test('Mutations called without a server apply once each, in order, when it is back', async () => {
    const channel = await newChannel(`offline ${name}`)
    const program = new Program(command, channel)
    try {
      await program.until(({ bodies }) => bodies?.length === 1)
      app.server.kill()
      await app.server.ended
      await program.until(({ status }) => status === 'waiting')
      const bodies = Array.from({ length: 20 }, (_, i) => `m${i}`)
      for (const body of bodies) program.do('send', { body })
      await program.until(({ pendingMutations }) => pendingMutations === bodies.length)
      await app.start()
      program.do('reconnect')
      await expect
        .poll(() => program.printed.filter(({ sent }) => sent).length, { timeout: 60_000 })
        .toBe(bodies.length)
      await expect.poll(() => program.bodies.slice(1)).toEqual(bodies)
      const listed = await query(app, {
        function: 'messages.list',
        arguments: { channel: { type: 'typed_id', value: channel } },
      })
      expect(listed.body.result.value).toHaveLength(bodies.length + 1)
    } finally {
      program.kill()
    }
  })

  test('pages have neither gaps nor repeats while a list grows', async () => {
    const channel = await newChannel(`pages ${name}`)
    const program = new Program(command, channel)
    const last = () => program.printed.findLast(({ page }) => page !== undefined)
    const shows = (page: string, items: readonly string[]) =>
      expect.poll(last).toEqual({ page, items })
    try {
      await program.until(({ bodies }) => bodies?.length === 1)
      for (let i = 1; i <= 8; i++) program.do('send', { body: `m${i}` })
      await program.until(({ bodies }) => bodies?.at(-1) === 'm8')
      program.do('page')
      await shows('ready', ['m8', 'm7', 'm6'])
      program.do('more')
      await shows('ready', ['m8', 'm7', 'm6', 'm5', 'm4', 'm3'])
      program.do('send', { body: 'm9' })
      await shows('ready', ['m9', 'm8', 'm7', 'm6', 'm5', 'm4', 'm3'])
      program.do('more')
      const all = Array.from({ length: 9 }, (_, i) => `m${9 - i}`)
      const opened = `test opened #pages ${name}`
      await expect.poll(() => last()?.items).toEqual([...all, opened])
      program.do('more')
      await shows('exhausted', [...all, opened])
    } finally {
      program.kill()
    }
  })

  test('files go up and down with grants, and wrong transfers are rejected', async () => {
    const program = new Program(command, await newChannel(`files ${name}`))
    try {
      program.do('file', { text: 'contents' })
      const stored = await program.until(({ whole, error }) => whole !== undefined || error)
      const sizes = ['8n', 8, 8]
      const type = 'text/plain'
      expect(stored).toEqual({ whole: 'contents', part: 'ont', same: true, type, sizes })
      const { signed } = await program.until((record) => record.signed !== undefined)
      expect(signed).toEqual([200, 'image/gif', 'ARGUMENTS_INVALID'])
      const { rejected } = await program.until((record) => record.rejected !== undefined)
      const codes = ['GRANT_INVALID', 'MEDIA_TYPE_UNSUPPORTED', 'LIMIT_EXCEEDED', 'RANGE_INVALID']
      expect(rejected).toEqual(codes)
    } finally {
      program.kill()
    }
  })

  test('expiring tokens are renewed on the same connection', async () => {
    tokens.lifetimeSeconds = 2
    const before = tokens.refreshes
    const program = new Program(command, await newChannel(`user ${name}`), `${page.origin}/token`)
    try {
      program.do('me')
      await program.until(({ subject }) => subject === 'subject-1')
      await expect.poll(() => tokens.refreshes - before).toBeGreaterThan(3)
      const { channels } = program.printed.findLast(({ subject }) => subject === 'subject-1')
      await newChannel(`seen ${name}`)
      const more = `${Number.parseInt(channels, 10) + 1}n`
      await program.until((record) => record.channels === more)
      program.do('querySubject')
      await program.until(({ subject }) => subject === 'subject-1')
      const statuses = program.printed.map(({ status }) => status).filter(Boolean)
      const renewed = statuses.slice(statuses.indexOf('connected'))
      expect(new Set(renewed)).toEqual(new Set(['connected']))
      expect(program.printed.filter(({ failed }) => failed)).toEqual([])
    } finally {
      program.kill()
    }
  })

  test.skipIf(!isLong)('Mutations during a restart apply once each (test:long)', async () => {
    const channel = await newChannel(`restart ${name}`)
    const program = new Program(command, channel)
    try {
      await program.until(({ bodies }) => bodies?.length === 1)
      const bodies = Array.from({ length: 30 }, (_, i) => `m${i}`)
      for (const body of bodies.slice(0, 15)) program.do('send', { body })
      const restarted = app.restart('stop')
      for (const body of bodies.slice(15)) program.do('send', { body })
      await restarted
      program.do('reconnect')
      await expect.poll(() => program.bodies.slice(1), { timeout: 60_000 }).toEqual(bodies)
      await program.until(({ pendingMutations }) => pendingMutations === 0)
    } finally {
      program.kill()
    }
  })
})

test.skipIf(!chromiumInstalled)(
  'a page with React is live, and a Mutation survives its reload (needs Chromium)',
  async () => {
    const channel = await newChannel('react')
    page.settings = { url: app.server.application, applicationKey: key, channel }
    await page.prepare(directory)
    const browser = await chromium()
    const until = (fits: (shown: Shown) => boolean) =>
      expect
        .poll(() => (page.reports.some(fits) ? '' : JSON.stringify(page.reports.slice(-5))))
        .toBe('')
    try {
      await browser.visit(page.origin)
      await until(({ names }) => names?.includes('react') === true)
      await until(({ error }) => error === 'ARGUMENTS_INVALID')
      await until(({ bodies, state }) => bodies.length === 1 && state === 'connected 0')
      page.do('send', 'one')
      await until(({ bodies }) => bodies[1] === 'one')
      page.do('send', '1.5')
      await until(({ pages }) => pages === 'ready: 1.5,one')
      page.do('more')
      await until(({ pages }) => pages === 'exhausted: 1.5,one,test opened #react')
      page.do('file', 'page')
      await until(({ file }) => file === 'page,pa,4,true')
      page.do('picture')
      await until(({ file }) => file === 'picture 1')
      app.server.kill()
      await app.server.ended
      page.do('send', 'two')
      await until(({ state }) => /^(waiting|connecting) 1$/.test(state ?? ''))
      await browser.visit(`${page.origin}/?again`)
      page.reports.length = 0
      await app.start()
      await until(({ bodies, state }) => bodies[3] === 'two' && state === 'connected 0')
      const listed = await query(app, {
        function: 'messages.list',
        arguments: { channel: { type: 'typed_id', value: channel } },
      })
      expect(listed.body.result.value).toHaveLength(4)
    } finally {
      await browser.close()
    }
  },
)
