/**
 * Bundles src/main.ts with its dependencies into one module, dist/bundle/main.js, and collects the
 * licences of the packages inside. The same source always gives the same bytes.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { NO_RELEASE, type ReleaseValues, versionDefine } from './commit.ts'
import { bundleSite } from './docs-site/assets.ts'
import { compressedTexts } from './docs-site/compressed-texts.ts'
import { bundleConsole } from './embed-console.ts'
import { type BundledPackage, bundledPackages } from './origin/packages.ts'
import { joinLicences, packageLicences, runtimeLicences } from './third-party-licences.ts'

export const ROOT = join(import.meta.dirname, '..')
export const BUNDLE = join(ROOT, 'dist/bundle/main.js')
const LICENCES = join(ROOT, 'dist/THIRD-PARTY-LICENSES')

/** CommonJS packages require Node's modules, for which an ES module has no `require`. */
const REQUIRE =
  "import { createRequire } from 'node:module';" + 'const require = createRequire(import.meta.url);'

/** Embedded beside the bundle by build/compile.ts. */
const COMPILER = 'node_modules/typescript-api'

/** Keeps ws from looking for optional native modules in folders of the machine. */
export const WITHOUT_NATIVE_MODULES = {
  'process.env.WS_NO_BUFFER_UTIL': '"1"',
  'process.env.WS_NO_UTF_8_VALIDATE': '"1"',
}

/**
 * Leaves out the validator of the Model Context Protocol, and ajv with it. Only a server that asks
 * the user of an editor for input needs it; ajv makes code from schemas.
 */
export const withoutSchemaValidator: Plugin = {
  name: 'without-schema-validator',
  setup({ onLoad }) {
    const filter = /@modelcontextprotocol\/sdk\/dist\/esm\/validation\/ajv-provider\.js$/
    const contents = 'export class AjvJsonSchemaValidator {}'
    onLoad({ filter }, () => ({ contents, loader: 'js' }))
  },
}

/** Optional dependencies of pg, which works without them. */
const OPTIONAL = ['pg-native', 'pg-cloudflare']

export interface BundleOptions {
  readonly outfile?: string
  /** Path of the licences; dist/THIRD-PARTY-LICENSES by default. */
  readonly licences?: string
  readonly plugins?: Plugin[]
  readonly release?: ReleaseValues
}

/** Writes the bundle and its licences. Returns the packages inside. */
export async function bundle(options: BundleOptions = {}): Promise<readonly BundledPackage[]> {
  const { outfile = BUNDLE, licences = LICENCES, plugins = [], release = NO_RELEASE } = options
  const result = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/main.ts'],
    outfile,
    plugins: [...plugins, withoutSchemaValidator, compressedTexts],
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
      ...versionDefine(release),
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
  // The pages are texts in the bundle, which therefore names none of their packages.
  const pages = [(await bundleConsole(ROOT)).metafile, (await bundleSite(ROOT)).metafile]
  const packages = bundledPackages([result.metafile, ...pages], [COMPILER])
  const texts = [runtimeLicences(), packageLicences(packages)]
  writeFileSync(licences, joinLicences(texts))
  return packages
}

if (import.meta.main) {
  mkdirSync(join(ROOT, 'dist/bundle'), { recursive: true })
  const started = performance.now()
  await bundle()
  const size = readFileSync(BUNDLE).length
  const millis = Math.round(performance.now() - started)
  process.stdout.write(`dist/bundle/main.js  ${Math.round(size / 1024)} KiB  ${millis} ms\n`)
}
