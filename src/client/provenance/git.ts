/** Reads the state of a work tree from Git. A machine without Git is not a failure. */
import { execFile } from 'node:child_process'
import type { Git } from '../environment.ts'

export interface WorkTree {
  readonly commit: string | null
  /** Null where no branch is checked out. */
  readonly branch: string | null
  /** True if a file below the directory differs from the commit, or is new and not ignored. */
  readonly dirty: boolean
}

const TIMEOUT_MS = 10_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
/** Takes no lock of the index, and does not start the monitor that a repository may configure. */
const OPTIONS = ['--no-optional-locks', '-c', 'core.fsmonitor=false']
const STATUS = ['status', '--porcelain=v2', '--branch', '--untracked-files=normal', '--', '.']

export const runGit: Git = (directory, parameters) =>
  new Promise((resolve) => {
    const bounds = { cwd: directory, timeout: TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX }
    execFile('git', [...OPTIONS, ...parameters], bounds, (error, stdout) => {
      resolve(error === null ? stdout : null)
    })
  })

/** Returns null if the directory is not in a repository. */
export async function readWorkTree(git: Git, directory: string): Promise<WorkTree | null> {
  const status = await git(directory, STATUS)
  if (status === null) return null
  const lines = status.split('\n').filter((line) => line !== '')
  const head = (name: string): string | null =>
    lines.find((line) => line.startsWith(`# ${name} `))?.slice(name.length + 3) ?? null
  const [commit, branch] = [head('branch.oid'), head('branch.head')]
  return {
    commit: commit === '(initial)' ? null : commit,
    branch: branch === '(detached)' ? null : branch,
    dirty: lines.some((line) => !line.startsWith('#')),
  }
}
