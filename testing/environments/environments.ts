/** A valid environment and files of every kind, for tests of the settings. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { encodeBase64Url } from '../../src/value/base64url.ts'

// Every value contains the canary or is one of a few words that rules name. One assertion per row
// can then show that no error repeats a configured value.
export const PEPPER = encodeBase64Url(new TextEncoder().encode('canary-pepper-of-32-bytes-000000'))
export const OTHER_PEPPER = encodeBase64Url(
  new TextEncoder().encode('canary-subject-pepper-32-bytes-0'),
)
export const URL_OK =
  'postgresql://canary:canary%40pw@canary-db.test:5433/canary_db?sslmode=require'
export const TOKEN = 'canary-token-0123456789-0123456789'
export const DIR = mkdtempSync(join(tmpdir(), 'canary-'))

export const BASE: Readonly<Record<string, string>> = {
  SERVICE_IDENTITY_DATABASE_URL: URL_OK,
  SERVICE_PLATFORM_IDENTITY_PEPPER: PEPPER,
  SERVICE_STATE_DIRECTORY: '/var/lib/canary',
}
export const ROOT = { SERVICE_PRODUCT_ROOT: '/srv/canary' }
export const APPLICATION = {
  ...ROOT,
  SERVICE_APPLICATION_LISTEN: '127.0.0.9:4567',
  SERVICE_APPLICATION_TLS_TERMINATED: 'true',
}
export const MANAGED = {
  SERVICE_PLATFORM_MANAGED_ENROLLMENT_TOKEN: TOKEN,
  SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY: 'https://canary.test',
}

afterAll(() => rmSync(DIR, { recursive: true }))

export function file(name: string, content: string | Uint8Array): string {
  writeFileSync(join(DIR, name), content)
  return join(DIR, name)
}

export function special(name: string, make: (path: string) => void): string {
  make(join(DIR, name))
  return join(DIR, name)
}

export const FIFO = special('canary-fifo', (path) => spawnSync('mkfifo', [path]))
export const LINK = special('canary-link', (path) => symlinkSync(file('target', PEPPER), path))
export const DANGLING = special('dangling', (path) => symlinkSync('/canary/nowhere', path))
export const FOLDER = special('folder', (path) => mkdirSync(path))
export const OVERSIZED = file('canary-oversized', `canary${'x'.repeat(64 * 1024)}`)
