/** The commit that a build is made from, which versions name. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/**
 * Returns the first 8 digits of the commit, with `.modified` where tracked files differ from it;
 * an empty text outside a checkout.
 */
export function sourceCommit(root: string = ROOT): string {
  const git = (...args: readonly string[]) => {
    const result = spawnSync('git', ['-C', root, ...args], { encoding: 'utf8' })
    return result.status === 0 ? result.stdout.trim() : null
  }
  // A copy of the sources inside another checkout has the commit of neither.
  if (git('rev-parse', '--show-prefix') !== '') return ''
  const commit = git('rev-parse', '--short=8', 'HEAD')
  if (commit === null) return ''
  const changes = git('status', '--porcelain', '--untracked-files=no')
  return changes === '' ? commit : `${commit}.modified`
}

/** Defines for esbuild the commit that src/value/version.ts names. */
export function commitDefine(): Record<string, string> {
  return { SVC_COMMIT: JSON.stringify(sourceCommit()) }
}
