/**
 * Generates one TypeScript module with the files of the npm package `svc`: `svc/client` and
 * `svc/react` as ES modules, and their types. `svc codegen --client` writes them, a release packs
 * them. `--check` changes nothing and fails if the module is stale.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { build } from 'esbuild'
import { assert } from '../src/errors/assert.ts'
import { VERSION } from '../src/value/version.ts'
import { pureModules } from './bundled-text.ts'
import { updateFiles } from './generated-files.ts'

const SOURCE = 'src/app-client'
const MODULE = `${SOURCE}/embedded.generated.ts`
const ENTRIES = { client: 'browser.ts', 'client-node': 'node.ts', react: 'react/react.ts' }

const PACKAGE = {
  name: 'svc',
  version: VERSION,
  description: 'The client of applications whose backend is svc',
  license: 'Apache-2.0',
  type: 'module',
  sideEffects: false,
  engines: { node: '>=20.12' },
  exports: {
    './client': {
      types: './client.d.ts',
      browser: './client.js',
      'react-native': './client.js',
      bun: './client.js',
      node: './client-node.js',
      default: './client.js',
    },
    './react': { types: './react.d.ts', default: './react.js' },
    './package.json': './package.json',
  },
  peerDependencies: { react: '>=18', ws: '^8.0.0' },
  peerDependenciesMeta: { react: { optional: true }, ws: { optional: true } },
}

/** Bundles an entry. The same sources give the same bytes on every machine. */
export async function bundleEntry(root: string, entry: string, minify: boolean): Promise<string> {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [join(SOURCE, entry)],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    minify,
    external: ['ws', 'react'],
    plugins: [pureModules],
  })
  const output = result.outputFiles?.[0]
  assert(output !== undefined && result.outputFiles?.length === 1, 'the bundle is not one file')
  return output.text
}

/** Returns the declarations of everything that the entries import, by path. */
function declarations(root: string): Record<string, string> {
  const out = mkdtempSync(join(tmpdir(), 'svc-types-'))
  try {
    const entries = Object.values(ENTRIES).map((entry) => join(root, SOURCE, entry))
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const options = ['--declaration', '--emitDeclarationOnly', '--outDir', out]
    const settings = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        noEmit: false,
        rootDir: join(root, 'src'),
        stripInternal: true,
        removeComments: false,
      },
      include: [],
      exclude: [],
      files: entries,
    }
    const project = join(root, 'dist-types.json')
    writeFileSync(project, JSON.stringify(settings))
    const result = spawnSync('node', [compiler, '-p', project, ...options], { encoding: 'utf8' })
    rmSync(project)
    assert(result.status === 0, `tsc failed: ${result.stdout}${result.stderr}`)
    const files = readdirSync(out, { recursive: true, encoding: 'utf8' })
    const paths = files.map((path) => path.replaceAll('\\', '/'))
    const texts = new Map(
      paths
        .filter((path) => path.endsWith('.d.ts'))
        .map((path) => [path, declaration(readFileSync(join(out, path), 'utf8'))]),
    )
    const needed = reachable(texts, ['app-client/browser.d.ts', 'app-client/react/react.d.ts'])
    return Object.fromEntries(needed.map((path) => [`types/${path}`, texts.get(path)!]))
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}

/**
 * The compiler keeps the endings of imports, which a package must not have, and the citations of
 * files that only the repository has.
 */
function declaration(text: string): string {
  return text
    .replace(/((?:from|import\()\s*['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2')
    .replace(/(?:\s*\n\s*\*)?\s\(contract\/[^)]*\)/g, '')
}

/** Returns the declarations that the entries import, directly or not; sorted. */
function reachable(texts: ReadonlyMap<string, string>, entries: readonly string[]): string[] {
  const reached = new Set<string>()
  const queue = [...entries]
  for (const path of queue) {
    if (reached.has(path)) continue
    reached.add(path)
    for (const [, target] of texts.get(path)!.matchAll(/(?:from|import\()\s*['"](\.[^'"]*)\.js/g)) {
      queue.push(posix.join(posix.dirname(path), `${target}.d.ts`))
    }
  }
  return [...reached].sort()
}

/** Returns the files of the package by path. */
export async function packageFiles(root: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {
    'package.json': `${JSON.stringify(PACKAGE, null, 2)}\n`,
  }
  for (const [name, entry] of Object.entries(ENTRIES)) {
    files[`${name}.js`] = await bundleEntry(root, entry, false)
  }
  // Beside the modules, so that a plain alias of the directory finds the types too.
  files['client.d.ts'] = "export * from './types/app-client/browser.js'\n"
  files['react.d.ts'] = "export * from './types/app-client/react/react.js'\n"
  return { ...files, ...declarations(root) }
}

async function renderModule(root: string): Promise<string> {
  const files = Object.entries(await packageFiles(root))
  const named = Object.fromEntries(files.map(([path, text]) => [`svc/${path}`, text]))
  return [
    `/** Generated from ${SOURCE} by build/embed-app-client.ts. Do not edit. */\n`,
    '/** The files of the npm package `svc`, by path. */',
    'export const APP_CLIENT_FILES: Readonly<Record<string, string>> =',
    `  ${JSON.stringify(named, null, 2)}\n`,
  ].join('\n')
}

if (import.meta.main) {
  updateFiles({ [MODULE]: await renderModule(join(import.meta.dirname, '..')) })
}
