/**
 * Packs the svc client into one file for Node 20.12 and newer, dist/svc-client/svc.mjs, for
 * pipelines that have Node and want no executable. esbuild creates one module that still imports on
 * demand; ncc packs it.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { assert } from '../src/errors/assert.ts'
import { ROOT, WITHOUT_NATIVE_MODULES, withoutSchemaValidator } from './bundle.ts'
import { NO_RELEASE, type ReleaseValues, versionDefine } from './commit.ts'
import { bundleConsole } from './embed-console.ts'
import { bundledPackages } from './origin/packages.ts'
import { packageLicences } from './third-party-licences.ts'

const OUT = join(ROOT, 'dist/svc-client')
const WORK = join(OUT, 'work')
/** The packed client. */
export const CLIENT = join(OUT, 'svc.mjs')
const ENTRY = {
  contents: [
    "import { processEnvironment } from './src/client/process-environment.ts'",
    "import { runClient } from './src/client/main.ts'",
    'process.exitCode = await runClient(process.argv.slice(2), processEnvironment())',
  ].join('\n'),
  resolveDir: ROOT,
  sourcefile: 'svc.ts',
  loader: 'ts',
} as const

/** ws is a CommonJS package and requires modules of Node, for which a module has no `require`. */
const REQUIRE =
  "import { createRequire } from 'node:module';" +
  'const require = createRequire(process.execPath);'

/** Fails if the client imports or uses what only Bun has. */
function rejectBun(metafile: Metafile): void {
  for (const [path, input] of Object.entries(metafile.inputs)) {
    for (const each of input.imports) {
      const name = each.original ?? each.path
      assert(!/^bun(:|$)/.test(name), `${path} imports ${name}, which Node does not have`)
    }
  }
  // Packages may test for the runtime that they are in; the project's own files must not.
  for (const path of Object.keys(metafile.inputs).filter((input) => input.startsWith('src/'))) {
    const use = /\bBun\s*\.\s*\w+/.exec(readFileSync(join(ROOT, path), 'utf8'))
    assert(use === null, `${path} uses ${use?.[0]}, which Node does not have`)
  }
}

/**
 * Writes CLIENT, which ends with its licences and names the public key of the release. Throws if
 * Node cannot run it.
 */
export async function packClient(release: ReleaseValues = NO_RELEASE): Promise<void> {
  rmSync(OUT, { recursive: true, force: true })
  mkdirSync(WORK, { recursive: true })
  const result = await build({
    absWorkingDir: ROOT,
    stdin: ENTRY,
    outfile: join(WORK, 'svc.mjs'),
    plugins: [withoutSchemaValidator],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    banner: { js: REQUIRE },
    define: { ...WITHOUT_NATIVE_MODULES, ...versionDefine(release) },
    charset: 'utf8',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const code = result.outputFiles[0]?.text ?? ''
  rejectBun(result.metafile)
  writeFileSync(join(WORK, 'svc.mjs'), code)

  const ncc = join(ROOT, 'node_modules/@vercel/ncc/dist/ncc/cli.js')
  const args = [ncc, 'build', join(WORK, 'svc.mjs'), '--out', join(WORK, 'out'), '--quiet']
  const packed = spawnSync('node', [...args, '--target', 'es2022', '--no-cache'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  assert(packed.status === 0, `ncc failed: ${packed.stderr}${packed.stdout}`)
  const file = readdirSync(join(WORK, 'out')).find((name) => /^index\.m?js$/.test(name))
  assert(file !== undefined, 'ncc wrote no index')
  const text = readFileSync(join(WORK, 'out', file), 'utf8')
  // The file is downloaded alone, so it contains the licences.
  const page = await bundleConsole(ROOT)
  const packages = bundledPackages([result.metafile, page.metafile])
  const notices = packageLicences(packages).replaceAll('*/', '* /')
  const program = `#!/usr/bin/env node\n${text}\n/*!\n${notices}*/\n`
  writeFileSync(CLIENT, program, { mode: 0o755 })
  rmSync(WORK, { recursive: true })
  const run = spawnSync('node', [CLIENT, '--help'], { encoding: 'utf8', cwd: '/' })
  assert(run.status === 0, `the packed client does not run under Node: ${run.stderr}`)
}

if (import.meta.main) {
  await packClient()
  process.stdout.write('dist/svc-client/svc.mjs\n')
}
