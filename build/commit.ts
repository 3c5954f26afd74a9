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

/** Returns all digits of the commit; null outside a checkout. */
export function wholeCommit(root: string = ROOT): string | null {
  if (sourceCommit(root) === '') return null
  return spawnSync('git', ['-C', root, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).stdout.trim()
}

/**
 * Returns the Unix seconds that a build gives its files: SOURCE_DATE_EPOCH if it is set, else the
 * time of the commit, else 0.
 */
export function sourceTime(root: string = ROOT): number {
  const given = process.env.SOURCE_DATE_EPOCH
  if (given !== undefined && /^\d{1,10}$/.test(given)) return Number(given)
  if (sourceCommit(root) === '') return 0
  const args = ['-C', root, 'log', '-1', '--format=%ct']
  return Number(spawnSync('git', args, { encoding: 'utf8' }).stdout.trim())
}

/** The values by which an executable knows its release. */
export interface ReleaseValues {
  /** The public key for minisign; empty where the release is unsigned. */
  readonly publicKey: string
  /** The address of the newest release; empty where none is known. */
  readonly upgradeUrl: string
}

/** The values of what belongs to no release. */
export const NO_RELEASE: ReleaseValues = { publicKey: '', upgradeUrl: '' }

/** Defines for esbuild what src/value/version.ts declares. */
export function versionDefine({ publicKey, upgradeUrl }: ReleaseValues): Record<string, string> {
  return {
    SVC_COMMIT: JSON.stringify(sourceCommit()),
    SVC_RELEASE_PUBLIC_KEY: JSON.stringify(publicKey),
    SVC_UPGRADE_URL: JSON.stringify(upgradeUrl),
  }
}
