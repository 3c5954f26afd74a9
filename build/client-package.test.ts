/** The npm package of `svc/client` and `svc/react`: its size, its installation, its types. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { APP_CLIENT_FILES } from '../src/app-client/embedded.generated.ts'
import { bundleEntry } from './embed-app-client.ts'
import { clientPackage } from './release.ts'

const ROOT = join(import.meta.dirname, '..')
const BYTES_MAX = 13 * 1024
let project: string

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'svc-npm-'))
  writeFileSync(join(project, 'svc.tgz'), clientPackage())
  writeFileSync(join(project, 'package.json'), '{"name":"empty","private":true}')
  const options = ['--offline', '--no-audit', '--no-fund', '--omit=peer']
  const installed = spawnSync('npm', ['install', './svc.tgz', ...options], {
    cwd: project,
    encoding: 'utf8',
  })
  if (installed.status !== 0) throw new Error(installed.stderr)
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

test('the client without React is smaller than 13 KiB, minified and compressed', async () => {
  const text = await bundleEntry(ROOT, 'browser.ts', true)
  expect(gzipSync(text, { level: 9 }).length).toBeLessThan(BYTES_MAX)
})

test('the packed package installs into an empty project, and Node imports it', () => {
  const program = `import { createClient } from 'svc/client'
const client = createClient({ url: 'http://127.0.0.1:9', applicationKey: 'k', target: 'channel:a' })
console.log(typeof client.watch, client.connection.current().status)`
  writeFileSync(join(project, 'main.mjs'), program)
  const run = spawnSync('node', ['main.mjs'], { cwd: project, encoding: 'utf8' })
  expect(run.stdout + run.stderr).toBe('function idle\n')
})

const API = `
interface Reference<Kind, A, R, E extends string> {
  readonly kind: Kind; readonly name: string; readonly arguments: { readonly [n: string]: unknown }
  readonly types?: { readonly arguments: A; readonly result: R; readonly errorCode: E }
}
export type Id<T extends string> = string & { readonly __table: T }
export const list = { kind: 'query', name: 'm.list', arguments: {} } as Reference<
  'query', { channel: Id<'channels'>; limit?: bigint | undefined }, { body: string }[], never>
export const all = { kind: 'query', name: 'm.all', arguments: {} } as Reference<
  'query', Record<string, never>, bigint, never>
export const send = { kind: 'mutation', name: 'm.send', arguments: {} } as Reference<
  'mutation', { body: string }, Id<'messages'>, 'APP_CLOSED'>
`
const USES = `
import { createClient, isErrorOf } from 'svc/client'
import { all, type Id, list, send } from './api'
const client = createClient({ url: '', applicationKey: '', target: '' })
const channel = 'c' as Id<'channels'>
export const bodies: Promise<{ body: string }[]> = client.query(list, { channel })
export const count: Promise<bigint> = client.query(all)
client.watch(list, { channel, limit: 5n }, (messages) => messages.map(({ body }) => body))
client.mutation(send, { body: 'a' }, { optimistic: (local) => {
  local.set(list, { channel }, [{ body: 'a' }])
  // @ts-expect-error the value is not a list of messages
  local.set(list, { channel }, [5])
} }).catch((error: unknown) => {
  if (!isErrorOf(send, error)) return
  if (error.code === 'APP_CLOSED' || error.code === 'UNAVAILABLE') return
  // @ts-expect-error neither the Function nor the service has this code
  if (error.code === 'APP_OPEN') return
})
// @ts-expect-error an argument is missing
client.query(list, {})
// @ts-expect-error an int64 is a bigint
client.query(list, { channel, limit: 5 })
// @ts-expect-error an ID of another table
client.query(list, { channel: 'm' as Id<'messages'> })
// @ts-expect-error a Mutation is not a Query
client.query(send, { body: 'a' })
// @ts-expect-error a Query has no operation
client.mutation(all, {})
`

test('the package cites no document that only the repository has', () => {
  const citing = Object.entries(APP_CLIENT_FILES).filter(([, text]) => /\(contract\//.test(text))
  expect(citing.map(([path]) => path)).toEqual([])
})

test('the types accept good programs and reject bad ones', { tags: ['slow'] }, () => {
  writeFileSync(join(project, 'api.ts'), API)
  writeFileSync(join(project, 'uses.ts'), USES)
  const settings = {
    compilerOptions: {
      target: 'es2022',
      module: 'esnext',
      moduleResolution: 'bundler',
      strict: true,
      noEmit: true,
      types: [],
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
    },
    files: ['uses.ts'],
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(settings))
  const tsc = (): string => {
    const compiler = join(ROOT, 'node_modules/.bin/tsc')
    return spawnSync(compiler, ['-p', project], { encoding: 'utf8' }).stdout
  }
  expect(tsc()).toBe('')
  writeFileSync(join(project, 'uses.ts'), USES.replaceAll(/^ *\/\/ @ts-expect-error.*$/gm, ''))
  const wrong = new Set([...tsc().matchAll(/uses\.ts\((\d+),/g)].map(([, line]) => line))
  expect(wrong.size).toBe([...USES.matchAll(/@ts-expect-error/g)].length)
})
