/**
 * AGENTS.md of a new Workspace: its samples are a Workspace, which builds and keeps its word.
 *
 * @module-tag slow
 */
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runBuild } from '../src/dev/building/commands.ts'
import { startTypeChecker } from '../src/dev/type-check/type-check.ts'
import { testEnvironment } from '../src/test-kit/test-kit.ts'
import { describeHere } from '../testing/describe-here.ts'
import { workspaceSamples } from '../testing/markdown/workspace-samples.ts'
import { type KitWorkspace, kitWorkspace } from '../testing/test-kit/workspaces.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../src/sdk/agents.md'), 'utf8')
/** Files with which the Workspace builds: its tests need an installed test runner. */
function filesOf(guide: string): Record<string, string> {
  const { 'tests/notes.test.ts': _, ...files } = workspaceSamples(guide)
  return files
}

let workspace: KitWorkspace
beforeAll(() => {
  workspace = kitWorkspace('empty', filesOf(GUIDE))
  process.env.SVC_EXECUTABLE = workspace.executable
})
afterAll(() => workspace.remove())

const build = (directory: string) =>
  runBuild({
    workspaceDirectory: realpathSync(directory),
    describe: describeHere,
    startTypeChecker,
  })

test('the samples build and have correct types', async () => {
  const { build: built } = await build(workspace.directory)
  const { functions, tables } = built.description
  expect(functions.map(({ name }) => name)).toEqual(['notes.list', 'notes.star'])
  expect(tables.map(({ name }) => name)).toEqual(['notes'])
})

test('a wrong type in a sample is found', async () => {
  const wrong = kitWorkspace('empty', filesOf(GUIDE.replace('found.stars + 1n', 'found.stars + 1')))
  try {
    await expect(build(wrong.directory)).rejects.toMatchObject({ code: 'WORKSPACE_INVALID' })
  } finally {
    wrong.remove()
  }
})

test('the Functions do what the text says', async () => {
  await using backend = await testEnvironment({ workspace: workspace.directory })
  expect(await backend.query('notes.list', { owner: 'Ada' })).toEqual([])
  const note = 'notes_01ARZ3NDEKTSV4RRFFQ69G5FAV'
  await expect(backend.mutation('notes.star', { note })).rejects.toMatchObject({
    code: 'APP_NOTE_NOT_FOUND',
  })
})
