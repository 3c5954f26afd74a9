/**
 * Compiles dist/bundle/main.js and the runtime into executables: dist/svc-server and dist/svc for
 * this machine, or with `--all` one folder per target below dist/targets.
 *
 * An unchanged runtime obeys environment variables that load code into it (BUN_OPTIONS), turn it
 * into the bare runtime (BUN_BE_BUN), print tokens or trust other certificates. build/runtime
 * neutralises them and lists every variable that the runtime reads.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { constants, zstdCompressSync } from 'node:zlib'
import { EMBEDDED_COMPILER, readCompiler } from '../src/dev/type-check/compilers.ts'
import { assert } from '../src/errors/assert.ts'
import { BUNDLE, ROOT } from './bundle.ts'
import { isMachO, isSignatureValid, signAdHoc } from './runtime/mach-o.ts'
import { neutralise } from './runtime/neutralise.ts'
import { requireKnownVariables } from './runtime/scan.ts'
import { fetchBase, TARGETS, type Target } from './targets.ts'

interface CompileOptions {
  /** The module to compile; BUNDLE by default. */
  readonly module?: string
  readonly compiler?: string
  readonly suffix: string
}

/**
 * Compiles a module and the runtime `base` into the executables of a folder. Returns the path of
 * the server.
 */
export function compile(base: string, folder: string, options: CompileOptions): string {
  mkdirSync(folder, { recursive: true })
  const patched = join(ROOT, 'dist/base', `patched-${process.pid}${options.suffix}`)
  mkdirSync(dirname(patched), { recursive: true })
  const bytes = readFileSync(base)
  requireKnownVariables(bytes)
  neutralise(bytes)
  writeFileSync(patched, bytes)
  chmodSync(patched, 0o755)
  const server = join(folder, `svc-server${options.suffix}`)
  rmSync(server, { force: true })
  const args = ['build', options.module ?? BUNDLE, writeCompiler(), '--compile']
  args.push(`--compile-executable-path=${patched}`, '--asset-naming=[name].[ext]')
  args.push(`--target=${options.compiler ?? 'bun'}`, `--outfile=${server}`)
  args.push('--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig')
  // With bytecode, `svc-server check` takes 15 ms instead of 100.
  args.push('--bytecode', '--format=esm')
  const result = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
  rmSync(patched)
  assert(result.status === 0, `compiling failed: ${result.stderr}`)
  if (isMachO(bytes)) signIfBroken(server)
  chmodSync(server, 0o755)
  // Both names are one executable, which distinguishes them by the name it was started with.
  const client = join(folder, `svc${options.suffix}`)
  rmSync(client, { force: true })
  linkSync(server, client)
  return server
}

function printSize(server: string): void {
  const size = Math.round(statSync(server).size / 1024 / 1024)
  process.stdout.write(`${server.slice(ROOT.length + 1)}  ${size} MiB\n`)
}

/** Writes the compiler that checks types; it is decompressed when a check begins. */
function writeCompiler(): string {
  const path = join(ROOT, 'dist/bundle', EMBEDDED_COMPILER)
  const content = JSON.stringify(readCompiler(join(ROOT, 'node_modules/typescript-api/lib')))
  writeFileSync(
    path,
    zstdCompressSync(content, { params: { [constants.ZSTD_c_compressionLevel]: 19 } }),
  )
  return path
}

/** The compiler signs executables for arm64 alone; others keep the signature of their base. */
function signIfBroken(path: string): void {
  const executable = readFileSync(path)
  if (!isSignatureValid(executable)) writeFileSync(path, signAdHoc(executable, 'svc-server'))
}

export function compileTarget(target: Target): void {
  const suffix = target.name.startsWith('windows') ? '.exe' : ''
  const folder = join(ROOT, 'dist/targets', target.name)
  printSize(compile(fetchBase(target), folder, { compiler: target.compiler, suffix }))
}

if (import.meta.main) {
  const wanted = process.argv.slice(2)
  if (wanted.length === 0) {
    const suffix = process.platform === 'win32' ? '.exe' : ''
    printSize(compile(process.execPath, join(ROOT, 'dist'), { suffix }))
  } else {
    const chosen = TARGETS.filter((each) => wanted.includes('--all') || wanted.includes(each.name))
    assert(chosen.length > 0, `targets are ${TARGETS.map((each) => each.name).join(', ')}`)
    for (const target of chosen) compileTarget(target)
  }
}
