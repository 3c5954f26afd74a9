/**
 * An author's first ten minutes with `svc dev` in a real terminal (tmux): a new root, a call, an
 * edit, a mistake and its correction, a change of the schema that documents do not fit, and Ctrl-C.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../build/testing/servers/ports.ts'
import { CLIENT, runSync } from './harness.ts'

const hasTmux = spawnSync('tmux', ['-V']).status === 0

let directory = ''
let socket = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-tape-'))
  socket = join(directory, 'tmux')
})
afterAll(() => {
  tmux('kill-server')
  rmSync(directory, { recursive: true, force: true })
})

function tmux(...args: readonly string[]): string {
  return spawnSync('tmux', ['-S', socket, ...args], { encoding: 'utf8' }).stdout
}

/** Everything that the terminal shows and has shown. */
const screen = (): string => tmux('capture-pane', '-pJ', '-S', '-2000', '-t', 'tape')

/** Resolves with the screen once it shows the pattern behind what it showed before. */
async function shows(pattern: RegExp): Promise<string> {
  await expect.poll(screen, { interval: 20 }).toMatch(pattern)
  return screen()
}

const edit = (file: string, from: string | RegExp, to: string): void => {
  const path = join(directory, 'app/workspace', file)
  const text = readFileSync(path, 'utf8')
  expect(text).toMatch(from)
  writeFileSync(path, text.replace(from, to))
}

async function call(
  origin: string,
  key: string,
  kind: string,
  name: string,
  fields: Readonly<Record<string, string>> = {},
) {
  const names = Object.keys(fields).sort()
  const value = names.map((key) => ({ key, value: { type: 'string', value: fields[key] } }))
  const response = await fetch(`${origin}/v1/${kind}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-key': key },
    body: JSON.stringify({
      ...{ version: 1, target: 'channel:dev', function: name },
      arguments: { type: 'object', value },
      ...(kind === 'mutation' && { operationId: 'opn_01JZ0000000000000000000000' }),
    }),
  })
  return JSON.stringify(await response.json())
}

test.skipIf(!hasTmux)(
  'an author starts, calls, edits, errs, corrects, changes the schema and ends (needs tmux)',
  async () => {
    const port = await freePort()
    const command = `${CLIENT} dev --root ${join(directory, 'app')} --port ${port}`
    const line = `cd ${directory} && ${command}; echo ended with $?`
    tmux('-f', '/dev/null', 'new-session', '-d', '-s', 'tape', '-x', '200', '-y', '50', 'sh')
    tmux('send-keys', '-t', 'tape', line, 'Enter')
    const first = await shows(/Try .*curl/)
    expect(first).toMatch(/served .*4 Functions, 2 tables in \d+ ms/)
    const [, key = ''] = /Key +(rk_pub_v1_[\w-]{43})/.exec(first) ?? []
    const origin = `http://127.0.0.1:${port}`

    // The printed line works as it is pasted.
    const [, sample = ''] = /Try +(curl .*\}')/.exec(first) ?? []
    expect(
      runSync(['/bin/sh', '-c', `${sample} -s`], { environment: process.env as never }).stdout,
    ).toContain('"status":"ok"')
    await shows(/query {2}channels\.list {2}ok/)

    const fields = { name: 'general', author: 'me' }
    expect(await call(origin, key, 'mutation', 'channels.create', fields)).toContain('"ok"')
    await shows(/mutation {2}channels\.create {2}ok/)

    edit(
      'functions/channels.ts',
      'handler: (ctx) =>',
      `handler: (ctx) => (console.log('edited'), 0) ||`,
    )
    await shows(/served[\s\S]*served/)
    expect(await call(origin, key, 'query', 'channels.list')).toContain('general')
    await shows(/info {2}channels\.list {2}edited/)

    edit('functions/channels.ts', 'export const list', 'export const = list')
    await shows(/WORKSPACE_INVALID[\s\S]*functions\/channels\.ts:\d+[\s\S]*last valid code/)
    expect(await call(origin, key, 'query', 'channels.list')).toContain('general')
    edit('functions/channels.ts', 'export const = list', 'export const list')

    edit('schema.ts', 'topic: v.optional', 'color: v.string(),\n    topic: v.optional')
    await shows(/documents:channels: 1 stored documents[\s\S]*--reset/)
    edit('schema.ts', 'color: v.string()', 'color: v.optional(v.string())')
    await shows(/~ table channels \(color\)/)
    expect(await call(origin, key, 'query', 'channels.list')).toContain('general')

    const other = runSync([CLIENT, 'dev', '--root', join(directory, 'app')])
    expect(other.stderr).toContain(`It is svc dev at ${origin}, process`)

    tmux('send-keys', '-t', 'tape', 'C-c')
    await shows(/ended with \d+/)
    expect(screen()).toMatch(/ended with 0$/m)
  },
)
