/**
 * An executable that is started in a directory, or with variables, of an attacker runs only its own
 * code. Each case plants code that creates a file when it runs. The last tests show that the
 * planted code works with an unchanged runtime.
 *
 * @module-tag slow
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HARMLESS, NEUTRALISED, NEUTRALISED_SOMEWHERE } from '../../build/runtime/variables.ts'
import about from '../../package.json' with { type: 'json' }
import { RecordingServer } from '../../testing/servers/recording-server.ts'
import { argv } from '../argv.ts'
import { ACCESS_TOKEN, REFRESH_TOKEN, storedSession } from '../client/stored-sessions.ts'
import {
  CLIENT,
  CLIENTS,
  call,
  createInstallation,
  type Environment,
  loginAsOwner,
  run,
  runSync,
  SERVER,
  text,
} from '../harness.ts'

let directory: string
let mark: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-e2e-hostile-'))
  mark = join(directory, 'was-run')
  const leave = `require('node:fs').writeFileSync(${JSON.stringify(mark)}, '')`
  writeFileSync(join(directory, 'evil.js'), leave)
  writeFileSync(join(directory, 'index.js'), leave)
  writeFileSync(join(directory, 'version'), leave)
  writeFileSync(join(directory, 'package.json'), '{"scripts":{"version":"touch was-run"}}')
  writeFileSync(join(directory, 'tsconfig.json'), '{"compilerOptions":{"baseUrl":"."}}')
  // The module that pg loads if NODE_PG_FORCE_NATIVE is set.
  mkdirSync(join(directory, 'node_modules/pg-native'), { recursive: true })
  writeFileSync(join(directory, 'node_modules/pg-native/index.js'), leave)
  writeFileSync(join(directory, 'bunfig.toml'), 'preload = ["./evil.js"]\n')
  const settings = ['BUN_OPTIONS=--preload ./evil.js', 'SERVICE_STATE_DIRECTORY=relative']
  for (const name of ['.env', '.env.local', '.env.production']) {
    writeFileSync(join(directory, name), `${settings.join('\n')}\n`)
  }
})
afterEach(() => rmSync(directory, { recursive: true }))

const HOSTILE: Record<string, Record<string, string>> = {
  'the directory alone': {},
  BUN_OPTIONS: { BUN_OPTIONS: '--preload ./evil.js' },
  BUN_BE_BUN: { BUN_BE_BUN: '1' },
  BUN_INSPECT_PRELOAD: { BUN_INSPECT_PRELOAD: './evil.js' },
  NODE_OPTIONS: { NODE_OPTIONS: '--require ./evil.js --import ./evil.js' },
  NODE_PATH: { NODE_PATH: '.' },
  everything: {
    BUN_OPTIONS: '--preload ./evil.js',
    BUN_BE_BUN: '1',
    BUN_INSPECT_PRELOAD: './evil.js',
    NODE_OPTIONS: '--require ./evil.js',
  },
}

for (const [name, environment] of Object.entries(HOSTILE)) {
  test(`${name} runs no code and changes no output`, () => {
    for (const executable of [SERVER, CLIENT]) {
      const result = runSync([executable, 'version'], { directory, environment })
      expect(result.stderr).toBe('')
      expect(result.status).toBe(0)
      expect(result.stdout).toContain(about.version)
    }
    expect(existsSync(mark)).toBe(false)
  })
}

test.each(['dumpOptions=2', 'logGC=2', 'functionOverrides=./evil.js', 'noSuchOption=1'])(
  'BUN_JSC_%s sets no option of the engine',
  (option) => {
    const [name = '', value = ''] = option.split('=')
    for (const executable of [SERVER, CLIENT]) {
      const environment = { [`BUN_JSC_${name}`]: value, [`JSC_${name}`]: value }
      const result = runSync([executable, 'version'], { directory, environment })
      expect(result.stderr).toBe('')
      expect(result.status).toBe(0)
      expect(result.stdout.trim().split('\n')).toHaveLength(1)
    }
  },
)

test.each(['1', './written-by-the-runtime'])(
  'all neutralised variables set to %s print nothing and write no file',
  (value) => {
    const names = [...NEUTRALISED, ...NEUTRALISED_SOMEWHERE]
    const environment = Object.fromEntries(names.map((name) => [name, value]))
    const before = readdirSync(directory)
    for (const executable of [SERVER, CLIENT]) {
      const result = runSync([executable, 'version'], { directory, environment })
      expect(result.stderr).toBe('')
      expect(result.status).toBe(0)
      expect(result.stdout).toContain(about.version)
    }
    expect(readdirSync(directory)).toEqual(before)
  },
)

test('a server that is started with all of them serves requests', async () => {
  const names = [...NEUTRALISED, ...NEUTRALISED_SOMEWHERE, 'BUN_JSC_useJIT', 'JSC_useJIT']
  const here = await createInstallation()
  try {
    const server = await here.start(Object.fromEntries(names.map((name) => [name, '0'])))
    const login = await loginAsOwner(here, server)
    const token = text(login, 'accessToken')
    expect((await call(server.management, 'GET', '/v1/auth/me', { token })).status).toBe(200)
  } finally {
    await here.dispose()
  }
})

test.each(CLIENTS)('no variable makes $build print a token', async ({ command, needs }) => {
  using server = await RecordingServer.start(() => ({ status: 404, body: '{}' }))
  using session = storedSession({ authentication: server.origin() })
  for (const variables of [
    { BUN_CONFIG_VERBOSE_FETCH: 'curl' },
    { BUN_CONFIG_VERBOSE_FETCH: '1' },
    { NODE_DEBUG: 'http,https,net,tls,stream,undici,fetch,*' },
  ]) {
    const environment = { ...needs, ...session.environment, ...variables }
    const result = await run(argv`${command} whoami`, { directory, environment })
    for (const token of [ACCESS_TOKEN, REFRESH_TOKEN]) {
      expect(result.stdout + result.stderr).not.toContain(token)
    }
  }
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(
    Array(3).fill(`Bearer ${ACCESS_TOKEN}`),
  )
})

test('no remaining variable changes the bytes of a package', () => {
  const svc = (args: readonly string[], environment: Environment = {}) => {
    const result = runSync(argv`${CLIENT} ${args}`, { directory, environment })
    expect(result.stderr).not.toContain('CLIENT_')
    expect(result.status).toBe(0)
  }
  svc(argv`init --root root --workspace app --name chat`)
  svc(argv`build --root root --out usual.pkg`)
  // A wrong directory stops any program, and so does a library that a loader cannot find.
  const rows = HARMLESS.filter(({ reason }) => !/directories|allocator/.test(reason))
  expect(rows).toHaveLength(HARMLESS.length - 2)
  const environment = {
    ...Object.fromEntries(rows.flatMap(({ names }) => names).map((name) => [name, '1'])),
    NODE_ENV: 'development',
    BUN_ENV: 'development',
    NODE_PATH: join(directory, 'node_modules'),
  }
  svc(argv`build --root root --out hostile.pkg`, environment)
  const bytesOf = (name: string) => readFileSync(join(directory, name))
  expect(bytesOf('hostile.pkg').equals(bytesOf('usual.pkg'))).toBe(true)
  expect(existsSync(mark)).toBe(false)
})

test('NODE_PG_FORCE_NATIVE loads no module of the working directory', () => {
  const environment = {
    NODE_PG_FORCE_NATIVE: '1',
    NODE_PATH: join(directory, 'node_modules'),
    SERVICE_IDENTITY_DATABASE_URL: 'postgres://ada:secret@127.0.0.1:1/identity',
    SERVICE_PLATFORM_IDENTITY_PEPPER: 'A'.repeat(43),
    SERVICE_STATE_DIRECTORY: join(directory, 'state'),
  }
  const result = runSync(argv`${SERVER} migrate`, { directory, environment })
  expect(result.stderr).toContain('ECONNREFUSED')
  expect(existsSync(mark)).toBe(false)
})

test('a .env file is not read for settings', () => {
  const result = runSync(argv`${SERVER} check`, { directory })
  expect(result.stderr).toContain('SERVER_CONFIGURATION_MISSING')
  expect(result.stderr).not.toContain('relative')
})

test('BUN_INSPECT opens no debugger and connects to none', async () => {
  let called = false
  const listener = createServer((socket) => {
    called = true
    socket.destroy()
  })
  const path = join(directory, 'inspector.sock')
  await new Promise<void>((resolve) => listener.listen(path, resolve))
  for (const environment of [
    { BUN_INSPECT: '127.0.0.1:0', BUN_INSPECT_NOTIFY: `unix://${path}` },
    { BUN_INSPECT_CONNECT_TO: `unix://${path}` },
    { BUN_INSPECT: `ws+unix://${path}?wait=1` },
  ]) {
    const result = await run(argv`${SERVER} version`, { directory, environment })
    expect(result.stdout).toContain(about.version)
    expect(result.stderr).toBe('')
  }
  expect(called).toBe(false)
  await new Promise((resolve) => listener.close(resolve))
})

test('the unchanged runtime would have run the code', () => {
  runSync([process.execPath, '-e', '1'], {
    directory,
    environment: { BUN_OPTIONS: '--preload ./evil.js' },
  })
  expect(existsSync(mark)).toBe(true)
})

test('the unchanged runtime would have printed the options of its engine', () => {
  const environment = { BUN_JSC_dumpOptions: '2' }
  const result = runSync([process.execPath, '-e', '1'], { directory, environment })
  expect(result.stderr).toContain('All JSC options')
})
