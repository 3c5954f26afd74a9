import {
  chmodSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  BASE as ANYWHERE,
  APPLICATION,
  DIR,
  file,
  MANAGED,
  PEPPER,
  URL_OK,
} from '../../testing/environments/environments.ts'
import { OIDC_FILE, WORKLOADS } from '../../testing/environments/oidc-files.ts'
import { type Environment, ROWS } from '../../testing/environments/rows.ts'
import { TLS } from '../../testing/environments/tls-rows.ts'
import { ENVIRONMENT_ID, makeRoot, PROJECT_ID } from '../../testing/product-roots.ts'
import { makeKey } from '../../testing/providers/identity-providers.ts'
import { openBootstrapFiles } from '../identity/bootstrap-files.ts'
import { RECOVERY_PHRASE } from '../settings/settings.ts'
import { openProductRoot } from '../storage/root.ts'
import { realSystem } from '../system/system.ts'
import { renderFailure } from './failures.ts'
import { runServer } from './modes.ts'

const BASE: Readonly<Record<string, string>> = {
  ...ANYWHERE,
  SERVICE_STATE_DIRECTORY: join(DIR, 'state'),
}
const roots: string[] = []

function newRoot(): string {
  const root = makeRoot()
  roots.push(root)
  return root
}

afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true })
})

/** Values that the rules of settings mention themselves. */
const SPEAKABLE = ['true', 'required', RECOVERY_PHRASE]

async function check(environment: Environment) {
  let [out, err] = ['', '']
  const io = {
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
    },
    errIsTerminal: false,
  }
  return { exit: await runServer(['check'], environment, io), out, err }
}

function linkParent(state: string, target: string): void {
  rmdirSync(dirname(state))
  symlinkSync(target, dirname(state))
}

describe('svc-server check', () => {
  it.each(ROWS)(
    'check rejects in one line without a value: %s',
    async (_rule, code, name, given) => {
      const environment = { ...BASE, ...given }
      const { exit, out, err } = await check(environment)
      expect(exit).toBe(78)
      expect(out).toBe('')
      expect(err.startsWith(`svc-server: ${code}: ${name}: `)).toBe(true)
      expect(err.endsWith('.\n')).toBe(true)
      expect(err.slice(0, -1)).not.toMatch(/[\n\r]/)
      expect(err).not.toMatch(/canary/i)
      expect(err).not.toContain(PEPPER)
      for (const value of Object.values(environment)) {
        if (value && value.length > 1 && !SPEAKABLE.includes(value))
          expect(err).not.toContain(value)
      }
    },
  )
})

describe('svc-server check', () => {
  it('check prints the settings, aligned and without secrets', async () => {
    const origins = 'https://app.test,http://localhost:5173'
    const root = newRoot()
    const environment = {
      ...BASE,
      ...APPLICATION,
      SERVICE_PRODUCT_ROOT: root,
      SERVICE_PRODUCT_ALLOWED_ORIGINS: origins,
      SERVICE_S3_HOST: 's3.test',
      SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.test',
      SERVICE_MANAGEMENT_TLS_TERMINATED: 'true',
      SERVICE_PLATFORM_DATABASE_URL: URL_OK,
      SERVICE_RUNNER_SANDBOX: 'required',
      SERVICE_SESSION_RETENTION_DAYS: '1',
      SERVICE_ACTION_ALLOWED_NETWORKS: '10.1.0.0/16',
      SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG: file('workloads.json', JSON.stringify(WORKLOADS)),
    }
    expect(await check(environment)).toEqual({
      exit: 0,
      err: '',
      out: `The configuration is valid. \`svc-server serve\` would use:

  Management listener    127.0.0.1:3220 (TLS ends at a proxy before it)
  Public Management URL  https://manage.test
  Identity database      canary_db at canary-db.test:5433
  Identity pepper        [redacted]
  State directory        ${join(DIR, 'state')}
  Identity provider      none
  Workload providers     canary-ci (https://ci.canary.test), canary-pods (https://pods.canary.test)
  Managed source         none
  Kept                   audit records for 730 days, ended sessions for 1 day
  Product root           ${root}
  Environment            My app (${ENVIRONMENT_ID} of ${PROJECT_ID})
  Application listener   127.0.0.9:4567 (TLS ends at a proxy before it)
  Documents              canary_db at canary-db.test:5433
  Files                  in the Product root
  S3 clients             at / of the host s3.test, and at /v1/s3
  Allowed origins        https://app.test, http://localhost:5173
  JWT providers          none: guests only
  Networks of Actions    public, 10.1.0.0/16
  Function sandbox       required: refuses to start where Functions cannot be contained
  Traces                 none
`,
    })
  })

  it('check prints the certificate of listeners that stand behind no proxy', async () => {
    const { SERVICE_APPLICATION_LISTEN, ...tls } = TLS
    const root = { SERVICE_PRODUCT_ROOT: newRoot() }
    const environment = { ...BASE, ...tls, ...root, SERVICE_APPLICATION_LISTEN }
    const named = { SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.test' }
    const { exit, out } = await check({ ...environment, ...named })
    expect(exit).toBe(0)
    expect(out).toContain('Management listener    127.0.0.1:3220 (TLS)')
    expect(out).toMatch(/Certificate {12}DNS:canary\.test, until \d{4}-/)
    expect(out).toContain('Application listener   127.0.0.9:4567 (TLS)')
    expect(out).not.toContain('SERVICE_MANAGEMENT_TLS_TERMINATED')
    const mixed = await check({ ...environment, SERVICE_MANAGEMENT_TLS_TERMINATED: 'true' })
    expect(mixed.out).toContain('127.0.0.1:3220 (TLS ends at a proxy before it)')
    expect(mixed.out).not.toContain('No listener uses')
    const application = { SERVICE_APPLICATION_TLS_TERMINATED: 'true' }
    const proxied = { SERVICE_MANAGEMENT_TLS_TERMINATED: 'true', ...application }
    const advice = 'No listener uses SERVICE_TLS_CERTIFICATE_FILE'
    expect((await check({ ...environment, ...proxied })).out).toContain(advice)
  })

  it('check prints deprecated and misspelled names, never their values', async () => {
    const { SERVICE_IDENTITY_DATABASE_URL: _, ...rest } = BASE
    const { exit, out } = await check({
      ...rest,
      SERVICE_DATABASE_URL_FILE: file('database', URL_OK),
      SERVICE_MANAGMENT_LISTEN: 'secret-by-mistake',
    })
    expect(exit).toBe(0)
    expect(out).toContain('\nDeprecated name in use: SERVICE_DATABASE_URL_FILE\n')
    expect(out).toContain('\nNot a setting of this server: SERVICE_MANAGMENT_LISTEN\n')
    expect(out).not.toMatch(/secret-by-mistake|canary%40pw|canary@pw/)
  })

  it('check reports an HTTPS address whose proxy is not declared', async () => {
    const named = { ...BASE, SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.test' }
    const advice = 'set SERVICE_MANAGEMENT_TLS_TERMINATED=true'
    const { exit, out } = await check(named)
    expect(exit).toBe(0)
    expect(out).toContain('127.0.0.1:3220 (loopback, plain)')
    expect(out).toContain(advice)
    const declared = await check({ ...named, SERVICE_MANAGEMENT_TLS_TERMINATED: 'true' })
    expect(declared.out).not.toContain(advice)
    const local = await check({ ...BASE, SERVICE_PUBLIC_MANAGEMENT_URL: 'http://127.0.0.1:3220' })
    expect(local.out).not.toContain(advice)
  })

  it('check prints the JWT providers and checks their keys', async () => {
    const about = { kind: 'user', issuer: 'https://idp.test', audience: 'a', algorithms: ['ES256'] }
    const fitting = { jwks: { keys: [(await makeKey('key-1')).jwk] } }
    const useless = { jwks: { keys: [(await makeKey('key-1', 'RS256')).jwk] } }
    const root = newRoot()
    const checked = (keys: object) => {
      const providers = [{ name: 'idp', ...about, ...keys }]
      writeFileSync(join(root, 'auth.json'), JSON.stringify({ version: 1, providers }))
      const environment = { SERVICE_PRODUCT_ROOT: root, SERVICE_PRODUCT_AUTH_CONFIG: 'auth.json' }
      return check({ ...BASE, ...environment })
    }
    expect((await checked(fitting)).out).toContain('idp (user, https://idp.test)\n')
    const { exit, err } = await checked(useless)
    expect(exit).toBe(78)
    expect(err).toMatch(/^svc-server: SERVER_CONFIGURATION_INVALID: SERVICE_PRODUCT_AUTH_CONFIG/)
    expect(err).toContain('provider idp: a key set with a key of its algorithms')
  })

  it('check prints an identity provider and a managed source without a connection', async () => {
    const oidc = { SERVICE_PLATFORM_OIDC_CONFIG: file('provider.json', OIDC_FILE) }
    const { exit, out } = await check({ ...BASE, ...MANAGED, ...oidc })
    expect(exit).toBe(0)
    expect(out).toMatch(/Identity provider +https:\/\/canary\.test\/tenant\n/)
    expect(out).toMatch(/Managed source +https:/)
    expect(out).not.toMatch(/\[object|canary-client/)
  })

  it('check changes no file', async () => {
    const root = newRoot()
    const seen = () => [DIR, root].map((path) => [readdirSync(path), statSync(path).mtimeMs])
    const before = seen()
    expect((await check({ ...BASE, SERVICE_PRODUCT_ROOT: root })).exit).toBe(0)
    expect(seen()).toEqual(before)
  })

  it('check prints the same for a root that a server has open', async () => {
    const path = newRoot()
    const root = await openProductRoot(path, realSystem())
    try {
      expect((await check({ ...BASE, SERVICE_PRODUCT_ROOT: path })).exit).toBe(0)
    } finally {
      root.close()
    }
  })
})

/** Returns the line that `serve` prints if `start` fails. */
async function failureLine(start: () => unknown): Promise<string> {
  try {
    await start()
  } catch (error) {
    return renderFailure(error).text
  }
  return expect.unreachable('the start did not fail')
}

describe('svc-server check', () => {
  const write = (name: string, text: string) => (root: string) =>
    writeFileSync(join(root, name), text, { mode: 0o600 })
  it.each<[string, (root: string) => void]>([
    ['is missing', (root) => rmSync(root, { recursive: true })],
    ['can be written by others', (root) => chmodSync(root, 0o777)],
    ['has no descriptor', (root) => unlinkSync(join(root, 'service.json'))],
    ['has a descriptor with an unknown field', write('service.json', '{"canary":1}')],
    ['has no keyring', (root) => unlinkSync(join(root, 'keyring.json'))],
    ['has a keyring that others can read', (root) => chmodSync(join(root, 'keyring.json'), 0o640)],
    ['has lost its control database', write('documents.db', '')],
    [
      'has a control database that is a link',
      (root) => symlinkSync('/canary/nowhere', join(root, 'control.db')),
    ],
    [
      'has a control database that others can read',
      (root) => writeFileSync(join(root, 'control.db'), '', { mode: 0o644 }),
    ],
    ['has a lock that is a directory', (root) => mkdirSync(join(root, 'lock.db'))],
  ])('check fails with the line of serve if the Product root %s', async (_, spoil) => {
    const root = newRoot()
    spoil(root)
    const line = await failureLine(() => openProductRoot(root, realSystem()))
    expect(line).toContain('SERVER_PRODUCT_ROOT_INVALID')
    const environment = { ...BASE, SERVICE_PRODUCT_ROOT: root }
    expect(await check(environment)).toEqual({ exit: 1, out: '', err: line })
  })

  it('check fails if the root records another store of documents than the settings', async () => {
    const root = newRoot()
    const given = { ...BASE, SERVICE_PRODUCT_ROOT: root }
    ;(await openProductRoot(root, realSystem())).close()
    writeFileSync(join(root, 'documents.postgres'), `${'A'.repeat(22)}\n`, { mode: 0o600 })
    expect((await check(given)).err).toContain('set SERVICE_PLATFORM_DATABASE_URL')
    expect((await check({ ...given, SERVICE_PLATFORM_DATABASE_URL: URL_OK })).exit).toBe(0)
    rmSync(join(root, 'documents.postgres'))
    writeFileSync(join(root, 'documents.db'), '', { mode: 0o600 })
    const { err } = await check({ ...given, SERVICE_PLATFORM_DATABASE_URL: URL_OK })
    expect(err).toContain('unset SERVICE_PLATFORM_DATABASE_URL')
    expect((await check(given)).exit).toBe(0)
  })

  it.each<[string, (state: string) => void]>([
    ['is a link', (state) => symlinkSync(DIR, state)],
    ['is a file', (state) => writeFileSync(state, '')],
    ['is below a file', (state) => writeFileSync(join(state, '..'), '')],
    ['is in /proc', (state) => linkParent(state, '/proc')],
    ['is in /sys', (state) => linkParent(state, '/sys')],
    [
      'can be written by others',
      (state) => {
        mkdirSync(state)
        chmodSync(state, 0o777)
      },
    ],
    [
      'has a bootstrap directory that others can write',
      (state) => {
        mkdirSync(join(state, 'bootstrap'), { recursive: true, mode: 0o700 })
        chmodSync(join(state, 'bootstrap'), 0o770)
      },
    ],
  ])('check fails with the line of serve if the state directory %s', async (rule, spoil) => {
    const parent = join(DIR, rule.replaceAll(/[ /]/g, '-'))
    const state = join(parent, 'state')
    if (rule !== 'is below a file') mkdirSync(parent)
    spoil(state)
    const line = await failureLine(() => openBootstrapFiles(state).prepare())
    expect(line).toContain('SERVER_STATE_DIRECTORY_INVALID')
    const environment = { ...BASE, SERVICE_STATE_DIRECTORY: state }
    expect(await check(environment)).toEqual({ exit: 78, out: '', err: line })
  })
})
