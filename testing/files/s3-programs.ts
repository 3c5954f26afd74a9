/** Runs the S3 clients of the system. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { S3Remote } from './s3-remotes.ts'

export const RCLONE = '/usr/bin/rclone'
export const S3CMD = '/usr/bin/s3cmd'
export const RESTIC = '/usr/bin/restic'
export const KOPIA = '/usr/bin/kopia'

/** Returns a suffix for names of tests that need the program: the reason if they are skipped. */
export function reasonWithout(program: string): string {
  return existsSync(program) ? '' : ` (skipped: there is no ${program})`
}

export interface Ran {
  readonly code: number | null
  /** Standard output and standard error. */
  readonly output: string
}

/** Runs a program without blocking, since the server may be in this process. */
export function run(program: string, ...parameters: readonly string[]): Promise<Ran> {
  return runWith({}, program, ...parameters)
}

/** Runs a program with variables of its own. */
export async function runWith(
  variables: Readonly<Record<string, string>>,
  program: string,
  ...parameters: readonly string[]
): Promise<Ran> {
  // Variables such as AWS_CA_BUNDLE would change what the programs do.
  const env = { PATH: process.env.PATH, LANG: 'C.UTF-8', HOME: tmpdir(), ...variables }
  const child = spawn(program, parameters, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, output }
}

/** Writes the configurations of both programs; returns the parameters that name them. */
export function configurePrograms(directory: string, { endpoint, keys }: S3Remote) {
  const [rclone, s3cmd] = [join(directory, 'rclone.conf'), join(directory, 's3cmd.conf')]
  writeFileSync(
    rclone,
    [
      '[svc]',
      'type = s3',
      'provider = Other',
      `endpoint = ${endpoint}`,
      `access_key_id = ${keys.accessKeyId}`,
      `secret_access_key = ${keys.secretAccessKey}`,
      'force_path_style = true',
    ].join('\n'),
  )
  const host = endpoint.replace('http://', '')
  writeFileSync(
    s3cmd,
    [
      '[default]',
      `host_base = ${host}`,
      `host_bucket = ${host}`,
      'use_https = False',
      `access_key = ${keys.accessKeyId}`,
      `secret_key = ${keys.secretAccessKey}`,
    ].join('\n'),
  )
  return { rclone: ['--config', rclone], s3cmd: ['-c', s3cmd] }
}

/** Writes files of different sizes below a directory, and the file `large` of zeros. */
export function writeFiles(directory: string, count: number, largeBytes: number): void {
  for (let i = 0; i < count; i++) {
    const folder = join(directory, `folder ${i % 7}`, 'ü')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `file+${i}.txt`), `${i} `.repeat((i * 37) % 3_000))
  }
  writeFileSync(join(directory, 'large'), '')
  truncateSync(join(directory, 'large'), largeBytes)
}
