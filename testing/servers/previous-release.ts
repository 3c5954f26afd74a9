/**
 * The programs of the release before this one, from the history of the checkout: the last commit
 * with another version. Its sources run as they are, with the packages of this checkout.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../build/bundle.ts'
import { VERSION } from '../../src/value/version.ts'

/** Both programs of one version, as paths of executables. */
export interface Programs {
  readonly version: string
  readonly server: string
  readonly client: string
}

const VERSION_FILE = 'src/value/version.ts'

function git(...args: readonly string[]): string {
  const { status, stdout } = spawnSync('git', ['-C', ROOT, ...args], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : ''
}

/** The commit of the previous release; an empty text without the history that names it. */
export function previousCommit(): string {
  const bumped = git('log', '-1', '--format=%H', `-SVERSION = '${VERSION}'`, '--', VERSION_FILE)
  return bumped === '' ? '' : git('rev-parse', '--verify', '--quiet', `${bumped}^`)
}

/** Unpacks the sources of the programs at the commit below `dist/previous`, once for all runs. */
export function previousPrograms(commit: string): Programs {
  const folder = join(ROOT, 'dist/previous', commit)
  if (!existsSync(folder)) unpack(commit, folder)
  const [, version = ''] = /'(.+)'/.exec(readFileSync(join(folder, VERSION_FILE), 'utf8')) ?? []
  return { version, server: join(folder, 'svc-server'), client: join(folder, 'svc') }
}

function unpack(commit: string, folder: string): void {
  mkdirSync(join(ROOT, 'dist/previous'), { recursive: true })
  const work = mkdtempSync(join(ROOT, 'dist/previous/work-'))
  const tar = spawnSync('git', ['-C', ROOT, 'archive', commit, 'src', 'package.json'], {
    maxBuffer: 256 << 20,
  })
  const unpacked = spawnSync('tar', ['-x', '-C', work], { input: tar.stdout })
  if (tar.status !== 0 || unpacked.status !== 0) throw new Error(`git archive ${commit} failed`)
  symlinkSync(join(ROOT, 'node_modules'), join(work, 'node_modules'))
  for (const name of ['svc', 'svc-server']) {
    const main = join(folder, 'src/main.ts')
    const program = `#!/bin/sh\nexec '${process.execPath}' '${main}' ${name} "$@"\n`
    writeFileSync(join(work, name), program)
    chmodSync(join(work, name), 0o755)
  }
  // Another test file may have been first.
  if (!existsSync(folder)) renameSync(work, folder)
}
