/**
 * Bundles an entry with everything that it imports into a TypeScript module of text, for code that
 * a compiled executable can only run as text that it carries.
 */
import { join } from 'node:path'
import { type BuildOptions, build, type Plugin } from 'esbuild'
import { assert } from '../src/errors/assert.ts'
import { isFileStale, updateFiles } from './generated-files.ts'

export interface BundledText {
  /** Path of the script that generates the module, which the module names. */
  readonly generator: string
  readonly entry: string
  readonly module: string
  /** Name of the constant that the module exports. */
  readonly constant: string
  readonly options: Pick<BuildOptions, 'external' | 'format' | 'globalName'>
}

/** Lets the bundler remove unused modules, including their top-level constants. */
export const pureModules: Plugin = {
  name: 'pure-modules',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.?\// }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path),
      sideEffects: false,
    }))
  },
}

/** Returns the generated module. The same sources give the same bytes on every machine. */
async function renderModule(root: string, text: BundledText): Promise<string> {
  const result = await build({
    ...text.options,
    absWorkingDir: root,
    entryPoints: [text.entry],
    bundle: true,
    write: false,
    platform: 'neutral',
    target: 'esnext',
    charset: 'ascii',
    legalComments: 'none',
    minifySyntax: true,
    minifyWhitespace: true,
    plugins: [pureModules],
  })
  const output = result.outputFiles?.[0]
  assert(output !== undefined && result.outputFiles?.length === 1, 'the bundle is not one file')
  return (
    `/** Generated from ${text.entry} by ${text.generator}. Do not edit. */\n\n` +
    `export const ${text.constant} =\n  ${JSON.stringify(output.text)}\n`
  )
}

/** Returns whether the module is stale. */
export async function isStale(root: string, text: BundledText): Promise<boolean> {
  return isFileStale(root, text.module, await renderModule(root, text))
}

/** Writes a stale module; with `--check` it changes nothing and the process fails. */
export async function updateModule(text: BundledText): Promise<void> {
  const root = join(import.meta.dirname, '..')
  updateFiles({ [text.module]: await renderModule(root, text) })
}
