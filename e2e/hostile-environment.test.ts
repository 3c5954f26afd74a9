/**
 * An executable that is started in somebody else's directory, or with somebody else's variables,
 * runs its own code only. Each case plants something that leaves a file behind when it runs; the
 * last ones show that the traps work, on the runtime as it was before the build changed it.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { NEUTRALISED, NEUTRALISED_SOMEWHERE } from '../build/runtime/variables.ts'
import { RecordingServer } from '../build/testing/servers/recording-server.ts'
import about from '../package.json' with { type: 'json' }
import { CLIENT, CLIENTS, run, runSync, SERVER } from './harness.ts'
import { ACCESS_TOKEN, REFRESH_TOKEN, storedSession } from './stored-sessions.ts'

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
  // What pg loads where NODE_PG_FORCE_NATIVE is set.
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
  test(`${name} runs no code and changes no answer`, () => {
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

test.each(CLIENTS)('no variable makes $build print a token', async ({ command, needs }) => {
  using server = await RecordingServer.start(() => ({ status: 404, body: '{}' }))
  using session = storedSession({ authentication: server.origin() })
  for (const variables of [
    { BUN_CONFIG_VERBOSE_FETCH: 'curl' },
    { BUN_CONFIG_VERBOSE_FETCH: '1' },
    { NODE_DEBUG: 'http,https,net,tls,stream,undici,fetch,*' },
  ]) {
    const environment = { ...needs, ...session.environment, ...variables }
    const result = await run([...command, 'whoami'], { directory, environment })
    for (const token of [ACCESS_TOKEN, REFRESH_TOKEN]) {
      expect(result.stdout + result.stderr).not.toContain(token)
    }
  }
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(
    Array(3).fill(`Bearer ${ACCESS_TOKEN}`),
  )
})

test('NODE_PG_FORCE_NATIVE loads no module of the working directory', () => {
  const environment = {
    NODE_PG_FORCE_NATIVE: '1',
    NODE_PATH: join(directory, 'node_modules'),
    SERVICE_IDENTITY_DATABASE_URL: 'postgres://ada:secret@127.0.0.1:1/identity',
    SERVICE_PLATFORM_IDENTITY_PEPPER: 'A'.repeat(43),
    SERVICE_STATE_DIRECTORY: join(directory, 'state'),
  }
  const result = runSync([SERVER, 'migrate'], { directory, environment })
  expect(result.stderr).toContain('ECONNREFUSED')
  expect(existsSync(mark)).toBe(false)
})

test('a .env file is not read for settings', () => {
  const result = runSync([SERVER, 'check'], { directory })
  expect(result.stderr).toContain('SERVER_CONFIGURATION_MISSING')
  expect(result.stderr).not.toContain('relative')
})

test('BUN_INSPECT opens no debugger and calls nobody', async () => {
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
    const result = await run([SERVER, 'version'], { directory, environment })
    expect(result.stdout).toContain(about.version)
    expect(result.stderr).toBe('')
  }
  expect(called).toBe(false)
  await new Promise((resolve) => listener.close(resolve))
})

test('the runtime as it comes would have run the code', () => {
  runSync([process.execPath, '-e', '1'], {
    directory,
    environment: { BUN_OPTIONS: '--preload ./evil.js' },
  })
  expect(existsSync(mark)).toBe(true)
})

test('the runtime as it comes would have printed the options of its engine', () => {
  const environment = { BUN_JSC_dumpOptions: '2' }
  const result = runSync([process.execPath, '-e', '1'], { directory, environment })
  expect(result.stderr).toContain('All JSC options')
})
