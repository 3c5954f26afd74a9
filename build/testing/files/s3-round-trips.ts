/** The ordinary work of rclone and s3cmd: sync both ways, compare, list, info, delete. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { S3Door } from './s3-doors.ts'
import { configurePrograms, RCLONE, run, S3CMD, writeFiles } from './s3-programs.ts'

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
export function syncWithRclone(door: S3Door, { count, largeBytes }: RoundTrip): Promise<void> {
  return withDirectory(async (directory) => {
    const rclone = programOf(RCLONE, configurePrograms(directory, door).rclone)
    const [there, back] = [join(directory, 'there'), join(directory, 'back')]
    writeFiles(there, count, largeBytes)
    const parts = ['--s3-upload-cutoff', '5Mi', '--s3-chunk-size', '5Mi']
    const remote = 'svc:default/rclone'
    await rclone(...parts, 'sync', there, remote)
    await rclone('sync', remote, back)
    await rclone('check', '--download', back, remote)
    // Nothing is left to do: modification times are kept with the objects.
    const again = await rclone('sync', '--dry-run', '-v', there, remote)
    expect(again).toContain('There was nothing to transfer')
  })
}

/** Lists, copies and deletes with rclone what `syncWithRclone` left. */
export function manageWithRclone(door: S3Door): Promise<void> {
  return withDirectory(async (directory) => {
    const rclone = programOf(RCLONE, configurePrograms(directory, door).rclone)
    const remote = 'svc:default/rclone'
    expect(await rclone('lsf', 'svc:')).toContain('default/')
    expect(await rclone('lsf', remote)).toContain('large')
    await rclone('copyto', `${remote}/large`, `${remote}/copy`)
    await rclone('check', `${remote}/`, `${remote}/`)
    await rclone('cleanup', 'svc:default')
    await rclone('delete', remote)
    expect(await rclone('lsf', '-R', remote)).toBe('')
  })
}

const S3CMD_REMOTE = 's3://default/s3cmd/'

/** Syncs files to the bucket and back with s3cmd, and a large one in parts. */
export function syncWithS3cmd(door: S3Door, { count, largeBytes }: RoundTrip): Promise<void> {
  return withDirectory(async (directory) => {
    const s3cmd = programOf(S3CMD, configurePrograms(directory, door).s3cmd)
    const [there, back] = [join(directory, 'there'), join(directory, 'back')]
    writeFiles(there, count, largeBytes)
    await s3cmd('--multipart-chunk-size-mb', '5', 'sync', `${there}/`, S3CMD_REMOTE)
    await s3cmd('sync', S3CMD_REMOTE, `${back}/`)
    const names = readdirSync(there, { recursive: true }).map(String).sort()
    expect(readdirSync(back, { recursive: true }).map(String).sort()).toEqual(names)
    expect(readFileSync(join(back, 'large')).equals(readFileSync(join(there, 'large')))).toBe(true)
  })
}

/** Uses the other commands of s3cmd on what `syncWithS3cmd` left. */
export function manageWithS3cmd(door: S3Door): Promise<void> {
  return withDirectory(async (directory) => {
    const s3cmd = programOf(S3CMD, configurePrograms(directory, door).s3cmd)
    expect(await s3cmd('ls')).toContain('s3://default')
    expect(await s3cmd('ls', S3CMD_REMOTE)).toContain(`${S3CMD_REMOTE}large`)
    expect(await s3cmd('info', `${S3CMD_REMOTE}large`)).toContain('File size')
    expect(await s3cmd('info', 's3://default')).toContain('Location')
    await s3cmd('cp', `${S3CMD_REMOTE}large`, `${S3CMD_REMOTE}copy`)
    await s3cmd('multipart', 's3://default')
    await s3cmd('rm', '--recursive', '--force', S3CMD_REMOTE)
    expect(await s3cmd('ls', '--recursive', S3CMD_REMOTE)).toBe('')
  })
}

/** Returns a function that runs the program with its configuration, which must succeed. */
function programOf(program: string, configuration: readonly string[]) {
  return async (...parameters: readonly string[]): Promise<string> => {
    const { code, output } = await run(program, ...configuration, ...parameters)
    expect(code, output).toBe(0)
    return output
  }
}
