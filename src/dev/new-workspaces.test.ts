import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { APP_CLIENT_FILES } from '../app-client/embedded.generated.ts'
import { writeWorkspace } from './new-workspaces.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-new-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const CLIENT_FILES = Object.keys(APP_CLIENT_FILES).map((path) => `web/_generated/${path}`)
const FILES = [
  '.gitignore',
  '.mcp.json',
  'AGENTS.md',
  '_generated/README.md',
  '_generated/api.js',
  '_generated/api.ts',
  '_generated/globals.d.ts',
  '_generated/package.json',
  '_generated/svc.d.ts',
  '_generated/svc.js',
  '_generated/testing.d.ts',
  '_generated/testing.js',
  'README.md',
  'crons.ts',
  'functions/channels.ts',
  'functions/messages.ts',
  'package.json',
  'schema.ts',
  'svc.json',
  'tests/messages.test.js',
  'tsconfig.json',
  ...['.gitignore', 'api.ts'].map((path) => `web/_generated/${path}`),
  ...CLIENT_FILES,
  'web/index.html',
  'web/src/app.tsx',
  'web/src/main.tsx',
  'web/src/messages.tsx',
  'web/src/settings.ts',
  'web/src/style.css',
  'web/tsconfig.json',
  'web/vite.config.ts',
]

test('a Workspace is written with its directories', () => {
  const directory = join(root, 'a/b')
  expect([...writeWorkspace(directory, { name: 'Chat' })].sort()).toEqual(FILES.toSorted())
  for (const file of FILES) expect(existsSync(join(directory, file))).toBe(true)
  const read = (path: string) => readFileSync(join(directory, path), 'utf8')
  expect(read('web/_generated/api.ts')).toBe(read('_generated/api.ts'))
  expect(read('web/_generated/.gitignore')).toBe('dev.json\n')
})

test('editors find the server of agents, with a relative path to the root', () => {
  const directory = join(root, 'app')
  writeWorkspace(directory, { name: 'Chat', rootDirectory: join(root, 'app root') })
  expect(JSON.parse(readFileSync(join(directory, '.mcp.json'), 'utf8'))).toEqual({
    mcpServers: { svc: { command: 'svc', args: ['mcp', '--root', '../app root'] } },
  })
})

test('files for agents that exist already stay as they are', () => {
  writeFileSync(join(root, 'AGENTS.md'), 'mine')
  symlinkSync(join(root, 'elsewhere'), join(root, '.mcp.json'))
  const written = writeWorkspace(root, { name: 'Chat' })
  expect(written).toContain('schema.ts')
  expect(written).not.toContain('AGENTS.md')
  expect(readFileSync(join(root, 'AGENTS.md'), 'utf8')).toBe('mine')
  expect(existsSync(join(root, 'elsewhere'))).toBe(false)
})

test('existing files are all named, and nothing is written', () => {
  mkdirSync(join(root, 'functions'))
  writeFileSync(join(root, 'schema.ts'), 'mine')
  writeFileSync(join(root, 'functions/messages.ts'), 'mine')
  expect(() => writeWorkspace(root, { name: 'Chat' })).toThrow(
    expect.objectContaining({
      code: 'CLIENT_FILE_FAILED',
      detail: expect.stringContaining('functions/messages.ts, schema.ts'),
    }),
  )
  expect(readdirSync(root, { recursive: true }).sort()).toEqual([
    'functions',
    'functions/messages.ts',
    'schema.ts',
  ])
  expect(readFileSync(join(root, 'schema.ts'), 'utf8')).toBe('mine')
})

test('a failure removes the files that were written before it', () => {
  // A dangling link looks like a missing file but cannot be created.
  symlinkSync(join(root, 'elsewhere'), join(root, 'svc.json'))
  expect(() => writeWorkspace(root, { name: 'Chat' })).toThrow(
    expect.objectContaining({ code: 'CLIENT_FILE_FAILED' }),
  )
  expect(readdirSync(root)).toEqual(['svc.json'])
  expect(existsSync(join(root, 'elsewhere'))).toBe(false)
})

test('a file instead of a directory is named, and nothing is written', () => {
  writeFileSync(join(root, 'functions'), 'mine')
  expect(() => writeWorkspace(root, { name: 'Chat' })).toThrow(
    expect.objectContaining({ code: 'CLIENT_FILE_FAILED' }),
  )
  expect(readdirSync(root)).toEqual(['functions'])
})

test('the README of a Workspace has its name as the title', () => {
  const directory = join(root, 'named')
  writeWorkspace(directory, { name: 'Zoë & *Co* #1' })
  const [title] = readFileSync(join(directory, 'README.md'), 'utf8').split('\n')
  expect(title).toBe('# Zoë \\& \\*Co\\* \\#1')
})
