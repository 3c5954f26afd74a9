import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { describeHere } from '../../../testing/describe-here.ts'
import { TEMPLATE_NAMES } from '../../client/development/workspace-tools.ts'
import { TEMPLATES } from '../../sdk/embedded.generated.ts'
import { sha256 } from '../../system/digests.ts'
import { parseId } from '../../value/ids.ts'
import { decodePackage } from '../../value/packages/workspace-package.ts'
import { parseManifest } from '../../wire/files/manifest.ts'
import { writeWorkspace } from '../new-workspaces.ts'
import { workspaceTools } from '../workspace-tools.ts'
import { runBuild, runPackage } from './commands.ts'

const projectId = parseId('prj', 'prj_01JZ0000000000000000000000')
const tools = workspaceTools({ describe: describeHere })
let root = ''
let workspaceDirectory = ''

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'svc-commands-'))
  workspaceDirectory = join(root, 'chat')
  await tools.writeWorkspace({
    workspaceDirectory,
    name: 'Chat',
    template: 'chat',
    rootDirectory: join(workspaceDirectory, '..'),
  })
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const request = () => ({ workspaceDirectory, describe: describeHere })

test('a build writes only generated files that change', { tags: ['slow'] }, async () => {
  expect((await runBuild(request())).changed).toEqual([])
  const types = join(workspaceDirectory, '_generated/svc.d.ts')
  const before = statSync(types).mtimeMs
  const source = join(workspaceDirectory, 'functions/messages.ts')
  writeFileSync(source, readFileSync(source, 'utf8').replace('const send', 'const post'))
  expect((await runBuild(request())).changed).toEqual([
    '_generated/api.js',
    '_generated/api.ts',
    'web/_generated/api.ts',
  ])
  expect(statSync(types).mtimeMs).toBe(before)
  const api = readFileSync(join(workspaceDirectory, '_generated/api.ts'), 'utf8')
  expect(api).toContain("post: { kind: 'mutation', name: 'messages.post', arguments: {")
})

test('a build writes the client that svc.json names, and none without it', {
  tags: ['slow'],
}, async () => {
  rmSync(join(workspaceDirectory, 'web/_generated'), { recursive: true })
  const { changed } = await runBuild(request())
  expect(changed).toContain('web/_generated/svc/client.js')
  const client = readFileSync(join(workspaceDirectory, 'web/_generated/svc/client.js'), 'utf8')
  expect(client).toContain('createClient')
  writeFileSync(join(workspaceDirectory, 'svc.json'), '{ "workspace": "default" }')
  rmSync(join(workspaceDirectory, 'web/_generated'), { recursive: true })
  expect((await runBuild(request())).changed).toEqual([])
})

test('a failed build does not change the generated files', async () => {
  writeFileSync(join(workspaceDirectory, 'functions/channels.ts'), 'export const = 1')
  rmSync(join(workspaceDirectory, '_generated'), { recursive: true })
  await expect(runBuild(request())).rejects.toMatchObject({ code: 'WORKSPACE_INVALID' })
  expect(statSync(join(workspaceDirectory, '_generated'), { throwIfNoEntry: false })).toBe(
    undefined,
  )
})

test('a linked generated file is replaced, and its target is not changed', async () => {
  const api = join(workspaceDirectory, '_generated/api.ts')
  writeFileSync(join(root, 'elsewhere'), 'mine')
  rmSync(api)
  symlinkSync(join(root, 'elsewhere'), api)
  expect((await runBuild(request())).changed).toEqual(['_generated/api.ts'])
  expect(readFileSync(join(root, 'elsewhere'), 'utf8')).toBe('mine')
})

test('a package file has the frame that is published', async () => {
  const out = join(root, 'out/chat.svcpkg')
  await runPackage({ ...request(), projectId, out })
  const frame = readFileSync(out)
  const built = await tools.build({ workspaceDirectory, projectId, checksTypes: false })
  expect([frame.equals(built.frame), built.warnings]).toEqual([true, []])
  const manifest = parseManifest(decodePackage(frame, sha256).manifest)
  expect(manifest).toMatchObject({ projectId, workspace: 'default' })
})

test('a package file that cannot be written is named', async () => {
  writeFileSync(join(root, 'taken'), '')
  const out = join(root, 'taken/chat.svcpkg')
  await expect(runPackage({ ...request(), projectId, out })).rejects.toMatchObject({
    code: 'CLIENT_FILE_FAILED',
    detail: expect.stringContaining(out),
  })
})

test.each(Object.keys(TEMPLATES))(
  'the template %s builds, and is current already',
  { tags: ['slow'] },
  async (name) => {
    const directory = join(root, 'new', name)
    writeWorkspace(directory, { name: 'New', template: name })
    const { build, changed } = await runBuild({ ...request(), workspaceDirectory: directory })
    expect(changed).toEqual([])
    const warnings = name === 'empty' ? ['The Workspace has no Functions.'] : []
    expect(build.diagnostics.map(({ message }) => message)).toEqual(warnings)
  },
)

test('the templates are those that svc init offers', () => {
  expect(Object.keys(TEMPLATES).sort()).toEqual([...TEMPLATE_NAMES].sort())
})
