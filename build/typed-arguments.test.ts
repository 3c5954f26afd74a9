/**
 * The types of arguments, in every entry that takes a reference and arguments.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { APP_CLIENT_FILES } from '../src/app-client/embedded.generated.ts'
import { generateReferences } from '../src/dev/codegen/codegen.ts'
import { writeWorkspace } from '../src/dev/new-workspaces.ts'
import {
  CALLED,
  CLIENT_CALLS,
  FUNCTION_CALLS,
} from '../testing/typed-functions/argument-mistakes.ts'

const ROOT = join(import.meta.dirname, '..')
let root = ''

/** A project with a Workspace, the package `svc` of applications, and both kinds of calls. */
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-arguments-'))
  const workspace = join(root, 'workspace')
  writeWorkspace(workspace, { name: 'Arguments', template: 'empty' })
  const settings = {
    compilerOptions: {
      target: 'es2022',
      module: 'esnext',
      moduleResolution: 'bundler',
      strict: true,
      noEmit: true,
      types: [],
      skipLibCheck: true,
      lib: ['es2023', 'esnext.disposable'],
      paths: {
        svc: ['./workspace/_generated/svc.d.ts'],
        'svc/test': ['./workspace/_generated/testing.d.ts'],
        'svc/client': ['./package/svc/client.d.ts'],
        'svc/react': ['./package/svc/react.d.ts'],
        react: [join(ROOT, 'node_modules/@types/react/index.d.ts')],
      },
    },
    files: ['client-calls.ts', 'function-calls.ts'],
  }
  const files = {
    ...Object.fromEntries(
      Object.entries(APP_CLIENT_FILES).map(([path, text]) => [`package/${path}`, text]),
    ),
    'api.ts': generateReferences({ functions: CALLED, tables: [] }),
    'client-calls.ts': CLIENT_CALLS,
    'function-calls.ts': FUNCTION_CALLS,
    'tsconfig.json': JSON.stringify(settings),
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('every entry accepts correct arguments and rejects each mistake in them', () => {
  const compiler = join(ROOT, 'node_modules/.bin/tsc')
  const { stdout, stderr } = spawnSync(compiler, ['-p', root], { encoding: 'utf8' })
  expect(stdout + stderr).toBe('')
})
