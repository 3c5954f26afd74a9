/**
 * @module-tag slow
 */
import { join } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../../..')
const ENTRY = 'src/client/main.ts'

/** Returns the files that are evaluated at start: those that are imported statically. */
function loadedAtStart({ outputs }: Metafile): string[] {
  const start = Object.keys(outputs).find((path) => outputs[path]?.entryPoint === ENTRY)!
  const reached = new Set([start])
  for (const path of reached) {
    for (const each of outputs[path]?.imports ?? []) {
      if (each.kind === 'import-statement') reached.add(each.path)
    }
  }
  return [...reached].flatMap((path) => Object.keys(outputs[path]?.inputs ?? {}))
}

test('the protocol library is loaded by a browser login and not at the start', async () => {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [ENTRY],
    outdir: 'dist/unused',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    metafile: true,
    write: false,
  })
  const library = 'node_modules/oauth4webapi/build/index.js'
  expect(Object.keys(metafile.inputs)).toContain(library)
  const atStart = loadedAtStart(metafile)
  expect(atStart).toContain('src/client/commands/login.ts')
  expect(atStart).not.toContain(library)
})
