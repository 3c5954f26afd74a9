import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Fault } from '../../errors/fault.ts'
import { readWorkspaceFiles } from './workspace-files.ts'

test('an unreadable folder or settings file is reported by name', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-files-'))
  chmodSync(directory, 0o755)
  mkdirSync(join(directory, 'functions/a'), { recursive: true })
  for (const file of ['schema.ts', 'svc.json']) writeFileSync(join(directory, file), '{}')
  for (const path of ['functions/a', 'svc.json']) chmodSync(join(directory, path), 0)
  const error = asNobody(() => failureOf(directory))
  chmodSync(join(directory, 'functions/a'), 0o700)
  rmSync(directory, { recursive: true })
  expect(error).toMatchObject({ code: 'WORKSPACE_INVALID' })
  expect(error.detail).toContain('functions/a\n  It cannot be read: EACCES.')
  expect(error.detail).toContain('svc.json\n  It cannot be read: EACCES.')
})

test('a script that is not a .ts file is rejected, since its Functions would be missing', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-files-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  mkdirSync(join(directory, 'functions/b'), { recursive: true })
  const tests = ['a.test.js', 'a.spec.tsx', 'b/a.d.mts']
  const files = ['a.ts', 'a.json', 'b/c.js', 'd.jsx', 'e.tsx', 'f.mts', 'g.mjs', 'h.cts', 'i.cjs']
  for (const name of [...tests, ...files]) writeFileSync(join(directory, 'functions', name), '')
  writeFileSync(join(directory, 'schema.ts'), '')
  const { detail } = failureOf(directory)
  expect(detail).toContain('functions/b/c.js\n  Functions are in .ts files.\n  Rename it to c.ts')
  expect(detail?.match(/^functions.*/gm)?.sort()).toEqual(
    files.slice(2).map((name) => `functions/${name}`),
  )
})

test('settings may begin with the byte order mark that editors of Windows write', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-files-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  writeFileSync(join(directory, 'schema.ts'), '')
  writeFileSync(join(directory, 'svc.json'), '\ufeff{ "workspace": "marked" }')
  expect(readWorkspaceFiles(directory).workspace).toBe('marked')
})

test.each([
  ['[]', 'Expected an object ($).'],
  ['["workspace"]', 'Expected an object ($).'],
  ['null', 'Expected an object ($).'],
  ['{ "workspace": null }', 'Expected a Workspace name ($.workspace).'],
  ['{ "workspace": ["default"] }', 'Expected a Workspace name ($.workspace).'],
  ['{ "workspace": "Default" }', 'Expected a Workspace name ($.workspace).'],
  ['{ "workspace": "default", "Workspace": "x" }', 'Expected no unknown field ($.Workspace).'],
  ['{ "clients": "public" }', 'Expected'],
  ['{ "clients": ["anyone"] }', 'Expected'],
  ['{ "clients": ["public", "public"] }', 'Expected each kind once ($.clients).'],
  ...['../web', '/tmp', 'web/../..', '.ssh', 'functions/web', '_generated', 'node_modules', ''].map(
    (client): [string, string] => [
      JSON.stringify({ client }),
      'Expected a directory of the Workspace, such as web/_generated ($.client).',
    ],
  ),
])('the settings %s are rejected', (content, message) => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-files-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  writeFileSync(join(directory, 'schema.ts'), '')
  writeFileSync(join(directory, 'svc.json'), content)
  expect(failureOf(directory).detail).toContain(`svc.json\n  ${message}`)
})

function failureOf(directory: string): Fault {
  try {
    readWorkspaceFiles(directory)
  } catch (error) {
    return error as Fault
  }
  return expect.unreachable('it is read')
}

/** The root user can read every file. */
function asNobody<T>(work: () => T): T {
  if (process.geteuid?.() !== 0) return work()
  process.seteuid?.(65_534)
  try {
    return work()
  } finally {
    process.seteuid?.(0)
  }
}
