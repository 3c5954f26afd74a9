/**
 * The samples of applications have correct types, in a project with the package `svc`.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { APP_CLIENT_FILES } from '../../src/app-client/embedded.generated.ts'
import { runBuild } from '../../src/dev/building/commands.ts'
import { generateReferences } from '../../src/dev/codegen/codegen.ts'
import { describeHere } from '../../testing/describe-here.ts'
import { kitWorkspace } from '../../testing/test-kit/workspaces.ts'
import { ROOT } from '../bundle.ts'
import { applicationSamples } from './applications.ts'
import { readSamples } from './blocks.ts'

const TEXTS = new Map(readSamples(ROOT).map(({ place, text }) => [place, text]))
const packages = (name: string): string => join(ROOT, 'node_modules', name)

let project: string

/** A project beside the chat Workspace, whose Functions the samples call. */
beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'svc-samples-'))
  const workspace = kitWorkspace('chat')
  const workspaceDirectory = realpathSync(workspace.directory)
  const { build } = await runBuild({ workspaceDirectory, describe: describeHere })
  workspace.remove()
  const settings = {
    compilerOptions: {
      target: 'es2022',
      module: 'esnext',
      moduleResolution: 'bundler',
      strict: true,
      noEmit: true,
      types: [],
      allowJs: true,
      checkJs: true,
      jsx: 'react-jsx',
      skipLibCheck: true,
      lib: ['es2023', 'dom', 'esnext.disposable'],
      paths: {
        'svc/client': ['./package/svc/client.d.ts'],
        'svc/react': ['./package/svc/react.d.ts'],
        react: [packages('@types/react/index.d.ts')],
        'react/jsx-runtime': [packages('@types/react/jsx-runtime.d.ts')],
        '@aws-sdk/client-s3': [packages('@aws-sdk/client-s3')],
      },
    },
    include: ['*.ts', '*.tsx', '*.js'],
  }
  write({
    ...Object.fromEntries(
      Object.entries(APP_CLIENT_FILES).map(([path, text]) => [`package/${path}`, text]),
    ),
    'generated/api.ts': generateReferences(build.description),
    'tsconfig.json': JSON.stringify(settings),
  })
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, path)), { recursive: true })
    writeFileSync(join(project, path), text)
  }
}

function compile(): string {
  const { stdout, stderr } = spawnSync(packages('.bin/tsc'), ['-p', project], { encoding: 'utf8' })
  return stdout + stderr
}

test('the samples of applications have correct types, and a wrong one is found', () => {
  const samples = applicationSamples((place) => TEXTS.get(place)!)
  write(samples)
  expect(compile()).toBe('')
  write({ 'calls.ts': samples['calls.ts']!.replace("author: 'me'", 'author: 5') })
  expect(compile()).toContain('calls.ts')
})
