import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realSystem } from '../../system/system.ts'
import type { ClientEnvironment } from '../environment.ts'
import { Output } from '../output.ts'
import { ProfileStore } from './profiles.ts'

function pathOn(platform: string, variables: Record<string, string>): string {
  const unused = () => {
    throw new TypeError('not used')
  }
  const environment: ClientEnvironment = {
    system: realSystem(),
    platform,
    homeDirectory: '/home/account',
    program: { path: '/nowhere/svc', userId: null },
    workingDirectory: '/work',
    stdin: { isTTY: false, readAll: unused, readLine: unused },
    stdout: { isTTY: false, write: unused },
    stderr: { isTTY: false, write: unused },
    pipes: unused,
    fetch: unused,
    variable: (name) => variables[name],
    git: unused,
    openBrowser: unused,
    pause: unused,
    onInterrupt: unused,
  }
  return new ProfileStore({ environment, output: new Output(environment, { json: false }) }).path
}

describe('the directory of the credentials file', () => {
  it.each<[string, Record<string, string>, string]>([
    ['linux', { HOME: '/h' }, '/h/.config/service/credentials-v1.json'],
    ['linux', {}, '/home/account/.config/service/credentials-v1.json'],
    ['linux', { HOME: '/h', XDG_CONFIG_HOME: '/x' }, '/x/service/credentials-v1.json'],
    ['linux', { HOME: '/h', XDG_CONFIG_HOME: 'x' }, '/h/.config/service/credentials-v1.json'],
    [
      'darwin',
      { HOME: '/h', XDG_CONFIG_HOME: '/x' },
      '/h/Library/Application Support/service/credentials-v1.json',
    ],
    ['win32', { HOME: '/h', APPDATA: '/a' }, '/a/service/credentials-v1.json'],
    ['win32', { SERVICE_CONFIG_HOME: '/c', APPDATA: '/a' }, '/c/credentials-v1.json'],
    ['linux', { SERVICE_CONFIG_HOME: '/c', XDG_CONFIG_HOME: '/x' }, '/c/credentials-v1.json'],
  ])('the file on %s with %j is %s', (platform, variables, path) => {
    expect(pathOn(platform, variables)).toBe(path)
  })

  it.each<[string, Record<string, string>]>([
    ['linux', { SERVICE_CONFIG_HOME: 'relative' }],
    ['linux', { HOME: 'relative' }],
    ['win32', { HOME: '/h' }],
  ])('the directory on %s with %j is unknown, which is a usage error', (platform, variables) => {
    expect(() => pathOn(platform, variables)).toThrow(
      expect.objectContaining({
        code: 'CLIENT_USAGE',
        detail: expect.stringContaining('SERVICE_CONFIG_HOME'),
      }),
    )
  })
})

/**
 * A program for Node that stores a new session with the code of the client and kills itself before
 * the file system call number STEP. Node allows functions of its modules to be replaced for all
 * importers, which counts the calls.
 */
const PROGRAM = `
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { processEnvironment } from '../process-environment.ts'
import { Output } from '../output.ts'
import { ProfileStore } from './profiles.ts'
import { Secret } from '../../value/secret.ts'
const step = Number(process.argv[2])
let calls = 0
for (const name of ['openSync', 'writeSync', 'fsyncSync', 'fchmodSync', 'closeSync', 'renameSync',
  'linkSync', 'rmSync', 'unlinkSync', 'mkdirSync', 'readdirSync']) {
  const real = fs[name]
  fs[name] = (...args) => {
    if (++calls === step) process.kill(process.pid, 'SIGKILL')
    return real(...args)
  }
}
syncBuiltinESMExports()
const environment = processEnvironment()
const store = new ProfileStore({ environment, output: new Output(environment, { json: false }) })
const profile = {
  authenticationOrigin: 'https://a.example.com',
  managementOrigin: 'https://m.example.com',
  operatorId: 'opr_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  operatorName: process.argv[3],
  sessionId: 'ops_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  accessToken: new Secret('rk_at_v1_' + 'A'.repeat(43)),
  accessExpiresAtMicros: 1n,
  refreshToken: new Secret('rk_rt_v1_' + 'A'.repeat(96)),
  refreshExpiresAtMicros: 2n,
}
await store.change(new AbortController().signal, async () => store.write(profile))
process.stdout.write(String(calls))
`

describe('a process that is killed while it stores a session', () => {
  const home = mkdtempSync(join(tmpdir(), 'svc-kill-'))
  const program = join(home, 'program.mjs')
  const config = join(home, 'config')
  const credentials = join(config, 'credentials-v1.json')

  beforeAll(async () => {
    await build({
      stdin: { contents: PROGRAM, resolveDir: import.meta.dirname, loader: 'ts' },
      outfile: program,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      logLevel: 'error',
    })
  })

  afterAll(() => rmSync(home, { recursive: true, force: true }))

  // The runtime of these tests adds itself to the path under the name of Node.
  const PATH = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('bun-node-'))
    .join(delimiter)

  function start(step: number, name: string) {
    return spawnSync('node', [program, String(step), name], {
      env: { PATH, SERVICE_CONFIG_HOME: config, HOME: home },
      encoding: 'utf8',
      timeout: 60_000,
    })
  }

  /** Every second step in the short run. */
  const STRIDE = process.env.SVC_TEST_LONG === '1' ? 1 : 2

  function storedName(): string {
    expect(statSync(credentials).mode & 0o777).toBe(0o600)
    return JSON.parse(readFileSync(credentials, 'utf8')).operatorName
  }

  it('leaves the old or the new file and does not block the next process', {
    tags: ['slow'],
  }, () => {
    expect(start(0, 'old')).toMatchObject({ status: 0, stderr: '' })
    const names = new Set<string>()
    let step = 1
    for (; start(step, 'new').signal === 'SIGKILL'; step += STRIDE) {
      names.add(storedName())
      // Each step leaves other files behind; none of them may block the next process.
      expect(start(0, 'old').status).toBe(0)
      expect(storedName()).toBe('old')
    }
    expect(step).toBeGreaterThan(15)
    expect([...names].sort()).toEqual(['new', 'old'])
    expect(readdirSync(config).filter((name) => name.endsWith('.lock'))).toEqual([])
  })
})
