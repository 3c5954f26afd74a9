/** The machines that executables are built for, and the source of the base of each. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../src/errors/assert.ts'
import { ROOT } from './bundle.ts'

export interface Target {
  /** The target's name in the names of released files. */
  readonly name: string
  /** The target's name for the compiler. */
  readonly compiler: string
  /** The package that contains the base executable, and its path in the package. */
  readonly package: string
  readonly executable: string
}

export const TARGETS: readonly Target[] = [
  target('linux-x64', 'linux-x64'),
  target('linux-x64-musl', 'linux-x64-musl'),
  target('linux-arm64', 'linux-aarch64'),
  target('linux-arm64-musl', 'linux-aarch64-musl'),
  target('darwin-arm64', 'darwin-aarch64'),
  target('darwin-x64', 'darwin-x64'),
  target('windows-x64', 'windows-x64'),
]

function target(name: string, base: string): Target {
  return {
    name,
    compiler: `bun-${name}`,
    package: `@oven/bun-${base}`,
    executable: base.startsWith('windows') ? 'bin/bun.exe' : 'bin/bun',
  }
}

/**
 * Returns the unpatched base of a target: the installed one where the target is this machine's,
 * else one that npm fetches, which is checked against the lock file.
 */
export function fetchBase(wanted: Target): string {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  const entry = lock.packages[`node_modules/${wanted.package}`]
  assert(typeof entry?.integrity === 'string', `${wanted.package} is not in package-lock.json`)
  const installed = join(ROOT, 'node_modules', wanted.package)
  if (existsSync(join(installed, wanted.executable))) {
    const about = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    if (about.version === entry.version) return join(installed, wanted.executable)
  }
  const folder = join(ROOT, 'dist/base', `${wanted.name}-${entry.version}`)
  const executable = join(folder, 'package', wanted.executable)
  if (existsSync(executable)) return executable

  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const name = `${wanted.package}@${entry.version}`
  const packed = run('npm', [
    'pack',
    name,
    '--json',
    '--loglevel=error',
    `--pack-destination=${folder}`,
  ])
  const archive = join(folder, packedName(packed))
  const digest = createHash('sha512').update(readFileSync(archive)).digest('base64')
  assert(
    `sha512-${digest}` === entry.integrity,
    `${name} does not have the digest of the lock file`,
  )
  run('tar', ['-xzf', archive, '-C', folder])
  rmSync(archive)
  return executable
}

/** Reads the output of npm pack: a list from npm 10, an object by name since npm 11. */
function packedName(json: string): string {
  const output = JSON.parse(json)
  const first = Array.isArray(output) ? output[0] : Object.values(output)[0]
  assert(typeof first?.filename === 'string', 'npm pack reported no file name')
  return first.filename.replace('@', '').replace('/', '-')
}

function run(command: string, args: readonly string[]): string {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 << 20 })
  assert(result.status === 0, `${command} ${args[0]} failed: ${result.stderr}`)
  return result.stdout
}
