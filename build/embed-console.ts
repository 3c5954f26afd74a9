/**
 * Generates one TypeScript module with the files of the page of `svc console`, which its loopback
 * server sends. `--check` changes nothing and fails if the module is stale.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { assert } from '../src/errors/assert.ts'
import { pureModules } from './bundled-text.ts'
import { isFileStale, updateFiles } from './generated-files.ts'

const SOURCE = 'src/console'
const MODULE = 'src/client/console/assets.generated.ts'
const PLOT_STYLE = 'node_modules/uplot/dist/uPlot.min.css'

export interface BundledConsole {
  /** Texts of the files by name, with their media types. */
  readonly files: Readonly<Record<string, { readonly type: string; readonly text: string }>>
  /** Names the packages that the script contains. */
  readonly metafile: Metafile
}

/** Bundles the page. The same sources give the same bytes on every machine. */
export async function bundleConsole(root: string): Promise<BundledConsole> {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const script = await build({
    absWorkingDir: root,
    entryPoints: [`${SOURCE}/main.tsx`],
    bundle: true,
    write: false,
    metafile: true,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    charset: 'ascii',
    legalComments: 'none',
    minify: true,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [pureModules],
  })
  const style = await build({
    stdin: { contents: `${read(PLOT_STYLE)}\n${read(`${SOURCE}/style.css`)}`, loader: 'css' },
    write: false,
    minify: true,
    charset: 'ascii',
  })
  const [code, css] = [script.outputFiles[0]?.text, style.outputFiles[0]?.text]
  assert(code !== undefined && css !== undefined, 'the bundle of the console has no files')
  const files = {
    'index.html': { type: 'text/html; charset=utf-8', text: read(`${SOURCE}/index.html`) },
    'console.js': { type: 'text/javascript; charset=utf-8', text: code },
    'style.css': { type: 'text/css; charset=utf-8', text: css },
    'icon.svg': { type: 'image/svg+xml', text: read(`${SOURCE}/icon.svg`) },
  }
  return { files, metafile: script.metafile }
}

async function renderConsole(root: string): Promise<string> {
  const { files } = await bundleConsole(root)
  return (
    `/** Generated from ${SOURCE} by build/embed-console.ts. Do not edit. */\n` +
    "import type { Asset } from './console-server.ts'\n\n" +
    'export const CONSOLE_ASSETS: Readonly<Record<string, Asset>> =\n' +
    `  ${JSON.stringify(files, null, 2)}\n`
  )
}

/** Returns whether the module is stale. */
export async function isConsoleStale(root: string): Promise<boolean> {
  return isFileStale(root, MODULE, await renderConsole(root))
}

if (import.meta.main) {
  updateFiles({ [MODULE]: await renderConsole(join(import.meta.dirname, '..')) })
}
