/**
 * Bundles the writing thread of the document store into a TypeScript module of text, since a
 * compiled executable can only start a Worker from text that it carries. `--check` changes nothing
 * and fails where the module is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { assert } from '../src/errors/assert.ts'

const ENTRY = 'src/documents/sqlite/writer.ts'
const MODULE = 'src/documents/sqlite/writer.generated.ts'

/** The text of the generated module. The same sources give the same bytes on every machine. */
export async function renderWriter(root: string): Promise<string> {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [ENTRY],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    target: 'esnext',
    external: ['bun:sqlite'],
    charset: 'ascii',
    legalComments: 'none',
    minifySyntax: true,
    minifyWhitespace: true,
  })
  const output = result.outputFiles[0]
  assert(output !== undefined && result.outputFiles.length === 1, 'the bundle is not one file')
  return (
    `/** Generated from ${ENTRY} by build/embed-writer.ts. Do not edit. */\n\n` +
    `export const WRITER_SOURCE =\n  ${JSON.stringify(output.text)}\n`
  )
}

/** Whether the module does not equal what the sources say. */
export async function isWriterStale(root: string): Promise<boolean> {
  return readModule(root) !== (await renderWriter(root))
}

function readModule(root: string): string | null {
  try {
    return readFileSync(join(root, MODULE), 'utf8')
  } catch {
    return null
  }
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..')
  if (await isWriterStale(root)) {
    const check = process.argv.includes('--check')
    if (!check) writeFileSync(join(root, MODULE), await renderWriter(root))
    const note = check ? ' is stale: run bun build/embed-writer.ts' : ''
    process.stdout.write(`${MODULE}${note}\n`)
    process.exitCode = check ? 1 : 0
  }
}
