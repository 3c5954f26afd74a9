/** The ordinary work of rclone, s3cmd, restic and kopia: store, compare, list, restore, delete. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import {
  configurePrograms,
  KOPIA,
  RCLONE,
  RESTIC,
  run,
  runWith,
  S3CMD,
  writeFiles,
} from './s3-programs.ts'
import type { S3Remote } from './s3-remotes.ts'

/** The folder that each program uses. */
const rcloneTarget = ({ bucket }: S3Remote) => `svc:${bucket}/rclone`
const s3cmdTarget = ({ bucket }: S3Remote) => `s3://${bucket}/s3cmd/`

async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-s3-'))
  try {
    await work(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

export interface RoundTrip {
  readonly count: number
  readonly largeBytes: number
}

/** Syncs files to the bucket and back with rclone, and a large one in parts. */
export function syncWithRclone(remote: S3Remote, { count, largeBytes }: RoundTrip): Promise<void> {
  return withDirectory(async (directory) => {
    const rclone = programOf(RCLONE, configurePrograms(directory, remote).rclone)
    const [there, back] = [join(directory, 'there'), join(directory, 'back')]
    writeFiles(there, count, largeBytes)
    const parts = ['--s3-upload-cutoff', '5Mi', '--s3-chunk-size', '5Mi']
    const target = rcloneTarget(remote)
    await rclone(...parts, 'sync', there, target)
    await rclone('sync', target, back)
    await rclone('check', '--download', back, target)
    // Nothing is left to do: modification times are kept with the objects.
    const again = await rclone('sync', '--dry-run', '-v', there, target)
    expect(again).toContain('There was nothing to transfer')
  })
}

/** Lists, copies and deletes with rclone what `syncWithRclone` left. */
export function manageWithRclone(remote: S3Remote): Promise<void> {
  return withDirectory(async (directory) => {
    const rclone = programOf(RCLONE, configurePrograms(directory, remote).rclone)
    const target = rcloneTarget(remote)
    expect(await rclone('lsf', 'svc:')).toContain(`${remote.bucket}/`)
    expect(await rclone('lsf', target)).toContain('large')
    await rclone('copyto', `${target}/large`, `${target}/copy`)
    await rclone('check', `${target}/`, `${target}/`)
    await rclone('cleanup', `svc:${remote.bucket}`)
    await rclone('delete', target)
    expect(await rclone('lsf', '-R', target)).toBe('')
  })
}

/** Syncs files to the bucket and back with s3cmd, and a large one in parts. */
export function syncWithS3cmd(remote: S3Remote, { count, largeBytes }: RoundTrip): Promise<void> {
  return withDirectory(async (directory) => {
    const s3cmd = programOf(S3CMD, configurePrograms(directory, remote).s3cmd)
    const target = s3cmdTarget(remote)
    const [there, back] = [join(directory, 'there'), join(directory, 'back')]
    writeFiles(there, count, largeBytes)
    await s3cmd('--multipart-chunk-size-mb', '5', 'sync', `${there}/`, target)
    await s3cmd('sync', target, `${back}/`)
    const names = readdirSync(there, { recursive: true }).map(String).sort()
    expect(readdirSync(back, { recursive: true }).map(String).sort()).toEqual(names)
    expect(readFileSync(join(back, 'large')).equals(readFileSync(join(there, 'large')))).toBe(true)
  })
}

/** Uses the other commands of s3cmd on what `syncWithS3cmd` left. */
export function manageWithS3cmd(remote: S3Remote): Promise<void> {
  return withDirectory(async (directory) => {
    const s3cmd = programOf(S3CMD, configurePrograms(directory, remote).s3cmd)
    const target = s3cmdTarget(remote)
    expect(await s3cmd('ls')).toContain(`s3://${remote.bucket}`)
    expect(await s3cmd('ls', target)).toContain(`${target}large`)
    expect(await s3cmd('info', `${target}large`)).toContain('File size')
    expect(await s3cmd('info', `s3://${remote.bucket}`)).toContain('Location')
    await s3cmd('cp', `${target}large`, `${target}copy`)
    await s3cmd('multipart', `s3://${remote.bucket}`)
    await s3cmd('rm', '--recursive', '--force', target)
    expect(await s3cmd('ls', '--recursive', target)).toBe('')
  })
}

/** Backs files up with restic, checks every byte of the backup, and restores it. */
export function backUpWithRestic({ endpoint, bucket, keys }: S3Remote): Promise<void> {
  return withDirectory(async (directory) => {
    const [files, back] = [join(directory, 'files'), join(directory, 'back')]
    writeFiles(files, 10, 1024 * 1024)
    const variables = {
      AWS_ACCESS_KEY_ID: keys.accessKeyId,
      AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
      RESTIC_PASSWORD: 'a password of this test',
      RESTIC_REPOSITORY: `s3:${endpoint}/${bucket}/restic`,
      RESTIC_CACHE_DIR: join(directory, 'cache'),
    }
    const restic = async (...parameters: readonly string[]) => {
      const { code, output } = await runWith(variables, RESTIC, ...parameters)
      expect(code, output).toBe(0)
      return output
    }
    await restic('init')
    await restic('backup', files)
    expect(await restic('check', '--read-data')).toContain('no errors were found')
    await restic('restore', 'latest', '--target', back)
    expectEqualFiles(files, join(back, files))
  })
}

/** Makes a snapshot with kopia, checks every byte of it, and restores it. */
export function backUpWithKopia({ endpoint, bucket, keys }: S3Remote): Promise<void> {
  return withDirectory(async (directory) => {
    const [files, back] = [join(directory, 'files'), join(directory, 'back')]
    writeFiles(files, 10, 1024 * 1024)
    const variables = {
      AWS_ACCESS_KEY_ID: keys.accessKeyId,
      AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
      HOME: directory,
      KOPIA_CHECK_FOR_UPDATES: 'false',
      KOPIA_PASSWORD: 'a password of this test',
    }
    const kopia = async (...parameters: readonly string[]) => {
      const { code, output } = await runWith(variables, KOPIA, ...parameters)
      expect(code, output).toBe(0)
    }
    const repository = [`--bucket=${bucket}`, '--prefix=kopia/', '--disable-tls']
    const place = `--endpoint=${new URL(endpoint).host}`
    await kopia('repository', 'create', 's3', ...repository, place)
    await kopia('snapshot', 'create', files)
    await kopia('snapshot', 'verify', '--verify-files-percent=100')
    await kopia('snapshot', 'restore', files, back)
    expectEqualFiles(files, back)
  })
}

function expectEqualFiles(files: string, restored: string): void {
  const [names, found] = [files, restored].map((each) => {
    return readdirSync(each, { recursive: true }).map(String).sort()
  })
  expect(found).toEqual(names)
  const [stored, back] = [files, restored].map((each) => readFileSync(join(each, 'large')))
  expect(back!.equals(stored!)).toBe(true)
}

/** Returns a function that runs the program with its configuration, which must succeed. */
function programOf(program: string, configuration: readonly string[]) {
  return async (...parameters: readonly string[]): Promise<string> => {
    const { code, output } = await run(program, ...configuration, ...parameters)
    expect(code, output).toBe(0)
    return output
  }
}
