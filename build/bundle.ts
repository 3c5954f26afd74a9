/**
 * Bundles src/main.ts with its dependencies into one module, dist/bundle/main.js, and collects the
 * licences of the packages inside. The same source always gives the same bytes.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'
import { assert } from '../src/errors/assert.ts'

export const ROOT = join(import.meta.dirname, '..')
export const BUNDLE = join(ROOT, 'dist/bundle/main.js')

/** CommonJS packages require Node's modules, for which an ES module has no `require`. */
const REQUIRE =
  "import { createRequire } from 'node:module';" + 'const require = createRequire(import.meta.url);'

/** Licences of the runtime inside the executable; its package contains no licence file. */
const RUNTIME = [
  'Bun (MIT), https://github.com/oven-sh/bun, is the runtime inside the executable. It links',
  'JavaScriptCore and other parts of WebKit (LGPL-2.1); its own list of what it contains is at',
  'https://bun.com/docs/project/license.',
  '',
]
const RULE = '-'.repeat(79)

/** Embedded beside the bundle by build/compile.ts. */
const COMPILER = join(ROOT, 'node_modules/typescript-api')

/** Keeps ws from looking for optional native modules in folders of the machine. */
export const WITHOUT_NATIVE_MODULES = {
  'process.env.WS_NO_BUFFER_UTIL': '"1"',
  'process.env.WS_NO_UTF_8_VALIDATE': '"1"',
}

/** Optional dependencies of pg, which works without them. */
const OPTIONAL = ['pg-native', 'pg-cloudflare']

export interface BundleOptions {
  readonly outfile?: string
  readonly plugins?: Plugin[]
}

export async function bundle(options: BundleOptions = {}): Promise<void> {
  const { outfile = BUNDLE, plugins = [] } = options
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/main.ts'],
    outfile,
    plugins,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    // Selects the code that packages export for this runtime.
    conditions: ['bun'],
    external: ['bun', 'bun:*', 'node:*', ...OPTIONAL],
    banner: { js: REQUIRE },
    define: {
      ...WITHOUT_NATIVE_MODULES,
      'process.env.NODE_ENV': '"production"',
      // The variable would make pg load a module of the current directory.
      'process.env.NODE_PG_FORCE_NATIVE': 'undefined',
    },
    charset: 'utf8',
    legalComments: 'none',
    sourcemap: 'linked',
    sourcesContent: false,
    metafile: true,
    logLevel: 'warning',
  })
  const texts = [RUNTIME.join('\n'), licenceOf(COMPILER), licences(result.metafile)]
  writeFileSync(join(ROOT, 'dist/THIRD-PARTY-LICENSES'), texts.join(`\n${RULE}\n\n`))
}

/** Returns the licences of all packages with code in the output, sorted by name. */
export function licences(metafile: Metafile): string {
  const folders = new Set<string>()
  for (const input of Object.keys(metafile.inputs)) {
    const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)
    if (match?.[1] !== undefined) folders.add(match[1])
  }
  const parts = [...folders].sort().map((folder) => licenceOf(join(ROOT, folder)))
  return `${parts.join(`\n${RULE}\n\n`)}\n`
}

function licenceOf(folder: string): string {
  const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder).filter((name) => /^(licen[cs]e|notice)/i.test(name))
  assert(
    files.length > 0 || typeof about.license === 'string',
    `${about.name} has no licence file: do not ship it`,
  )
  const texts = files.sort().map((name) => readFileSync(join(folder, name), 'utf8').trim())
  const head = `${about.name} ${about.version} (${about.license ?? 'see below'})`
  return [head, ...texts].join('\n\n')
}

if (import.meta.main) {
  mkdirSync(join(ROOT, 'dist/bundle'), { recursive: true })
  const started = performance.now()
  await bundle()
  const size = readFileSync(BUNDLE).length
  const millis = Math.round(performance.now() - started)
  process.stdout.write(`dist/bundle/main.js  ${Math.round(size / 1024)} KiB  ${millis} ms\n`)
}
