/**
 * Permissions of the server's secret files, as the executable checks them.
 *
 * @module-tag slow
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { OIDC_FILE } from '../../testing/environments/oidc-files.ts'
import { argv } from '../argv.ts'
import { type Environment, runSync, SERVER } from '../harness.ts'

/** The short run has the first mode of each rule: src/system/files.test.ts checks modes as well. */
const modes = (...all: readonly string[]) =>
  process.env.SVC_TEST_LONG === '1' ? all : all.slice(0, 1)

const PEPPER = 'SERVICE_PLATFORM_IDENTITY_PEPPER_FILE'
const OIDC = 'SERVICE_PLATFORM_OIDC_CONFIG'

let directory: string
let environment: Environment
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-e2e-secrets-'))
  // Each file is in two directories of its own.
  const secret = (name: string, content: string): string => {
    const folder = join(directory, name, 'inner')
    mkdirSync(folder, { recursive: true, mode: 0o755 })
    writeFileSync(join(folder, name), content, { mode: 0o600 })
    return join(folder, name)
  }
  environment = {
    SERVICE_IDENTITY_DATABASE_URL_FILE: secret('url', 'postgres://ada:secret@127.0.0.1:1/identity'),
    SERVICE_STATE_DIRECTORY: join(directory, 'state'),
    [PEPPER]: secret('pepper', 'A'.repeat(43)),
    [OIDC]: secret('oidc', OIDC_FILE),
  }
})
afterEach(() => rmSync(directory, { recursive: true }))

const check = () => runSync(argv`${SERVER} check`, { environment })

describe.each([
  [PEPPER, 'SERVER_CONFIGURATION_INVALID'],
  [OIDC, 'SERVER_OIDC_CONFIG_INVALID'],
])('the file of %s', (name, code) => {
  const path = (): string => environment[name]!

  test.each(modes('0660', '0600', '0400', '0640'))('a secret file may have mode %s', (mode) => {
    chmodSync(path(), Number.parseInt(mode, 8))
    const result = check()
    expect(result.stderr).toBe('')
    expect(result.stdout).not.toContain('Readable by every user')
  })

  test.each(modes('0604', '0644', '0444'))(
    'a secret file of mode %s is reported, since every user can read it',
    (mode) => {
      chmodSync(path(), Number.parseInt(mode, 8))
      const checked = check()
      expect(checked.status).toBe(0)
      expect(checked.stdout).toContain(`\nReadable by every user: the file of ${name}\n`)
      const served = runSync(argv`${SERVER} serve`, { environment })
      const [warning = ''] = served.stderr.split('\n')
      expect(JSON.parse(warning)).toMatchObject({
        level: 'warn',
        event: 'server.exposed_secret',
        name,
      })
    },
  )

  test.each(modes('0602', '0622', '0646', '0666'))(
    'a secret file of mode %s is rejected, since others can write it',
    (mode) => {
      chmodSync(path(), Number.parseInt(mode, 8))
      const result = check()
      expect(result.status).toBe(78)
      expect(result.stderr).toContain(`${code}: ${name}: `)
      expect(result.stderr).toContain('Expected: a file that other users cannot write')
    },
  )

  test.each(['the directory', 'the directory above'])(
    'a secret file is rejected if others can write %s of it',
    (which) => {
      const inner = dirname(path())
      const folder = which === 'the directory' ? inner : dirname(inner)
      for (const mode of modes('703', '777', '773').map((each) => Number.parseInt(each, 8))) {
        chmodSync(folder, mode)
        const result = check()
        expect(result.status).toBe(78)
        expect(result.stderr).toContain(`${code}: ${name}: `)
        expect(result.stderr).toContain(
          'Expected: a file in directories that other users cannot write',
        )
      }
      chmodSync(folder, 0o1777)
      expect(check().status).toBe(0)
      chmodSync(folder, 0o775)
      expect(check().status).toBe(0)
    },
  )
})
